package agentfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/agentmemory"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/toolname"
)

// modeKey is the key of the permission mode in a settings file.
const modeKey = "permission_mode"

const modeWords = "default, acceptEdits, dontAsk, plan or bypassPermissions"

var permissionModes = map[string]spec.PermissionMode{
	"": "", "default": spec.ModeDefault, "acceptedits": spec.ModeAcceptEdits, "accept-edits": spec.ModeAcceptEdits, "dontask": spec.ModeDontAsk,
	"dont-ask": spec.ModeDontAsk, "bypasspermissions": spec.ModeBypass, "bypass": spec.ModeBypass, "plan": spec.ModePlan,
}

// errMode is the error of an unknown permission mode.
var errMode = errors.New("there is no such permission mode")

// ParseMode reads a permission mode in any spelling that other tools write.
func ParseMode(text string) (spec.PermissionMode, error) {
	mode, ok := permissionModes[strings.ToLower(strings.TrimSpace(text))]
	if !ok {
		return "", fmt.Errorf("%w: %.40q; write %s", errMode, text, modeWords)
	}
	return mode, nil
}

// ParseRule reads a rule with the names of other tools, such as Bash(git log:*), and returns it in
// troupe's: shell(git log:*). allows: the rule lets calls run, so it must be narrow.
func ParseRule(text, from string, allows bool) (spec.PermissionRule, error) {
	ref := parseToolRefs([]string{strings.TrimSpace(text)})[0]
	r := spec.PermissionRule{Text: ref.String(), From: from}
	parse := permission.Parse
	if allows {
		parse = permission.ParseAllow
	}
	parsed, err := parse(r.Text)
	if err != nil {
		return r, err
	}
	if name := parsed.Tool(); !ref.isKnown() && !ref.isForeign() && SuggestTool(name) != "" {
		return r, fmt.Errorf("%w: no tool is called %.80q%s", permission.ErrRule, name, SuggestTool(name))
	}
	return r, nil
}

// ParseRules is ParseRule for a list.
func ParseRules(texts []string, from string, allows bool) (list []spec.PermissionRule, err error) {
	for _, text := range texts {
		r, err := ParseRule(text, from, allows)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// NamesUnknownTool returns the name of the tool of a rule if troupe has no such tool. A tool of that name may still
// come with an agent file or a program; names of MCP tools and patterns count as known.
func NamesUnknownTool(r spec.PermissionRule) (name string, unknown bool) {
	parsed, err := permission.Parse(r.Text)
	if err != nil {
		return "", false
	}
	name = parsed.Tool()
	return name, !(ToolRef{Name: name}).isKnown()
}

func (r ToolRef) String() string {
	if r.Args == "" {
		return r.Name
	}
	return r.Name + "(" + r.Args + ")"
}

// readPermissions takes {allow: [Read], ask: [Bash(git push:*)], deny: [Read(./secrets/**)]}. A rule that
// cannot be read is an error: without it, calls would run that its author wanted to prevent.
func (d *decoder) readPermissions(key string, n *yaml.Node, into *spec.Permissions) {
	list := func(rules *[]spec.PermissionRule, allows bool) fieldReader {
		return func(d *decoder, k string, n *yaml.Node) {
			items := n.Content
			if n.Kind != yaml.SequenceNode {
				items = []*yaml.Node{n}
			}
			for _, item := range items {
				if item.Kind != yaml.ScalarNode || len(*rules) >= rulesMax {
					d.rejectValue(item, k, fmt.Sprintf("a list of at most %d rules, such as [Read, Bash(git log:*)]", rulesMax))
					return
				}
				if item.Tag != "!!str" { // it would be the name of a tool, and match nothing
					d.rejectValue(item, k, `a rule as a text, such as Write(docs/**); quote a name that is a number, as in "7"`)
					continue
				}
				r, err := ParseRule(item.Value, fmt.Sprintf("%s:%d", d.path, item.Line+1), allows)
				if err != nil {
					d.addProblem(item.Line+1, "%s: %v", k, err)
					continue
				}
				*rules = append(*rules, r)
			}
		}
	}
	d.readFields(n, key+".", map[string]fieldReader{"allow": list(&into.Allow, true), "ask": list(&into.Ask, false), "deny": list(&into.Deny, false),
		"approvals": func(d *decoder, k string, n *yaml.Node) { into.Approvals = readApprovals(d, k, n) },
		"allow_tainted": func(d *decoder, k string, n *yaml.Node) {
			into.Allow = append(into.Allow, readTaintedRules(d, k, n, list)...)
		},
		"taint":       func(d *decoder, k string, n *yaml.Node) { into.Taint = readTaint(d, k, n) },
		"taint_files": func(d *decoder, k string, n *yaml.Node) { into.TaintFiles = d.readBool(n, k) }})
	// without a number, a person would think that two must approve
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "approvals" && n.Content[i+1].Tag == "!!null" {
			d.rejectValue(n.Content[i+1], key+".approvals", approvalsWanted)
		}
	}
}

func readApprovals(d *decoder, key string, n *yaml.Node) int {
	count, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || count < 1 || count > permission.ApprovalsMax {
		d.rejectValue(n, key, approvalsWanted)
		return 0
	}
	return count
}

const approvalsWanted = "1 or 2: how many people must approve a call that is asked about"

// rulesMax bounds each list of rules of a file.
const rulesMax = 256

// checkDirPermissions refuses what only the user may set, and not the file of a directory: it may come
// from anyone, so it can only take trust away.
func checkDirPermissions(file string, p spec.Permissions) error {
	switch {
	case len(p.Allow) > 0:
		return &Problem{Path: file, Err: fmt.Errorf("%w: permissions.allow: troupe.yaml of a directory cannot allow calls; move this to your own troupe.yaml", ErrField)}
	case p.Taint == spec.TaintOff:
		return &Problem{Path: file, Err: fmt.Errorf("%w: permissions.taint: troupe.yaml of a directory cannot set off, only ask or deny; move this to your own troupe.yaml", ErrField)}
	case !lowersTrust(p.Mode):
		return &Problem{Path: file, Err: fmt.Errorf("%w: %s: troupe.yaml of a directory cannot set %s, only plan, dontAsk or default; move this to your own troupe.yaml", ErrField, modeKey, p.Mode)}
	}
	return nil
}

// lowersTrust reports whether a mode allows nothing that the default does not.
func lowersTrust(m spec.PermissionMode) bool {
	return permission.StricterMode(m, spec.ModeDefault) == m || m == ""
}

// partlyAllowed are tools that a pattern in `tools` allows in part, while other calls of them need an approval.
// partlyGranted are tools that such a pattern grants only in part.
var (
	partlyAllowed = append([]string{"shell"}, permission.WriteTools...)
	partlyGranted = append([]string{"http_get", "skill"}, permission.ReadTools...)
)

// GrantsPart reports whether a ref grants only a part of a tool.
func GrantsPart(r ToolRef) bool {
	return r.Args != "" && r.Args != "*" && slices.Contains(partlyGranted, r.Name)
}

// OwnPermissions returns the permissions that the file gives its agent: those of x-troupe, its mode, and
// the patterns in its lists of tools.
func (d Definition) OwnPermissions() spec.Permissions {
	p := d.Permissions
	p.Mode, p.NoUserNotes = d.PermissionMode, d.Untrusted
	p.Allow, p.Only, p.Deny = slices.Clone(p.Allow), slices.Clone(p.Only), slices.Clone(p.Deny)
	for _, ref := range d.Tools {
		var into *[]spec.PermissionRule
		switch {
		case d.Untrusted && !slices.Contains(partlyGranted, ref.Name):
		case ref.IsRemote() || ref.Args != "" && slices.Contains(partlyAllowed, ref.Name):
			into = &p.Allow
		case GrantsPart(ref):
			into = &p.Only
		}
		if into == nil {
			continue // most are plain names, and a file may have thousands
		}
		if r, err := ParseRule(ref.String(), d.Path, true); err == nil {
			*into = append(*into, r)
		}
	}
	for _, ref := range d.DisallowedTools {
		if !ref.deniesPart() {
			continue
		}
		if r, err := ParseRule(ref.String(), d.Path, false); err == nil {
			p.Deny = append(p.Deny, r)
		}
	}
	return p
}

// WithoutTrust returns a definition whose permissions only take trust away, because anyone may have
// written it; off names what it loses.
func (d Definition) WithoutTrust() (less Definition, off []string) {
	if len(d.Permissions.Allow) > 0 {
		d.Permissions.Allow, off = nil, append(off, "rules that allow")
	}
	if !lowersTrust(d.PermissionMode) {
		d.PermissionMode, off = "", append(off, "permission mode")
	}
	if d.Memory == agentmemory.User { // a repository's agent must not read what the user's agents note elsewhere
		d.Memory, off = agentmemory.Project, append(off, "notes of the user (memory: user)")
	}
	d, reaches := d.withoutForeignDelegates()
	if reaches {
		off = append(off, "agents of other programs (x-troupe.delegates)")
	}
	d.Untrusted, d.Tools = true, slices.Clone(d.Tools)
	for i, ref := range d.Tools {
		if ref.Args != "" && slices.Contains(partlyAllowed, ref.Name) {
			if d.Tools[i].Args = ""; ref.Name == "shell" {
				off = append(off, "rules for shell")
			} else {
				off = append(off, "rules for writing")
			}
		}
	}
	return d, slices.Compact(off)
}

// IsRemote reports whether a ref names tools of an MCP server.
func (r ToolRef) IsRemote() bool { return strings.HasPrefix(r.Name, toolname.MCPPrefix) }
