package agentfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/toolname"
)

// claudeProjectFiles are the settings of Claude Code in a project.
var claudeProjectFiles = []string{".claude/settings.json", ".claude/settings.local.json"}

const (
	claudeUserFile = "settings.json"
	claudeUserName = "~/.claude/" + claudeUserFile
)

// ClaudeHome returns the directory of the user's own files of Claude Code: CLAUDE_CONFIG_DIR, or ~/.claude; "" if the
// user has no home directory.
func ClaudeHome() string {
	if dir := os.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		if abs, err := filepath.Abs(dir); err == nil {
			return abs
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".claude")
}

// ClaudeSettings are the parts of a settings.json of Claude Code that hold in troupe.
type ClaudeSettings struct {
	Name string // of the file, for people
	// Own: it is the user's own, and no run can change it. Any other only takes trust away, because
	// anyone may have written it.
	Own         bool
	Permissions spec.Permissions
	// NoBypass: no run may have the mode bypassPermissions (permissions.disableBypassPermissionsMode).
	NoBypass bool
	// HasEnv: it has variables for commands (LoadClaudeEnv).
	HasEnv bool
	// Without are the parts that have no effect, for a note.
	Without []string
}

// ReadClaudeSettings reads the settings of Claude Code: the user's own in userDir, if that is not empty, then those
// of a directory, if that is not empty; its path has no links (workdir.Open). isProtected reports whether no run can have
// changed the user's file. A rule that asks or denies and cannot be read is an error, as a broken file is: without it,
// calls would run that its author wanted to prevent. What allows and cannot be read is left out.
func ReadClaudeSettings(userDir, dir string, isProtected func(path, digest string) bool) (list []ClaudeSettings, err error) {
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		home = "" // a rule with ~ is an error
	}
	add := func(s ClaudeSettings, path string, data []byte, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("agentfile: %s: %w", s.Name, err)
		}
		r := claudeReader{out: s, isUser: s.Name == claudeUserName, home: filepath.ToSlash(home), d: newDecoder(path, &Definition{})}
		err = r.readFile(data)
		list = append(list, r.out)
		return err
	}
	var own string
	if userDir != "" {
		own = filepath.Join(userDir, claudeUserFile)
		data, err := safefile.Read(own, FileBytesMax)
		s := ClaudeSettings{Name: claudeUserName, Own: err == nil && isProtected(own, ContentDigest(data))}
		if err := add(s, own, data, err); err != nil {
			return nil, err
		}
	}
	if dir == "" {
		return list, nil
	}
	for _, name := range claudeProjectFiles {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if own != "" && isSameFile(own, path) {
			continue
		}
		data, err := safefile.ReadBelow(dir, filepath.FromSlash(name), FileBytesMax)
		if err := add(ClaudeSettings{Name: name}, path, data, err); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func isSameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// Bounds of the rules that allow in one file. Claude Code adds one with each approval, so files have many.
const (
	claudeAllowMax      = 128
	claudeAllowBytesMax = 8 << 10
)

// claudeItemsMax bounds the rules of one list and the keys of one object: each is compared
// with all words that troupe knows.
const claudeItemsMax = 1000

// claudeOtherModes are modes of Claude Code that troupe does not have.
var claudeOtherModes = []string{"auto", "delegate", "manual"}

// claudeReader reads one file.
type claudeReader struct {
	isUser bool   // the file is in ClaudeHome
	home   string // the directory that replaces ~; "": a path with ~ is an error
	d      *decoder
	out    ClaudeSettings

	strangers  int      // rules that allow, in a file that may not
	unreadable []string // rules that allow
	surplus    int      // rules that allow, after the first claudeAllowMax
	tools      []string // that troupe does not have
}

func (r *claudeReader) readFile(data []byte) error {
	root, err := parseJSON(r.d.path, data)
	if err != nil {
		return err
	}
	if root.Kind != yaml.MappingNode {
		return &Problem{r.d.path, root.Line + 1, fmt.Errorf("%w: it must be an object, such as {\"permissions\": {}}", ErrField)}
	}
	known := map[string]fieldReader{
		"permissions": r.readPermissions, "env": r.checkEnv,
	}
	if r.isUser { // only hooks of the user count here, which LoadHooks returns
		known["hooks"], known["disableAllHooks"] = r.checkHooks, func(*decoder, string, *yaml.Node) {}
	}
	r.d.readFields(root, "", known)
	r.noteLosses()
	if other := r.otherKeys(root, known); len(other) > 0 {
		r.out.Without = append(r.out.Without, clip.Names(other, namedMax))
	}
	return errors.Join(r.d.problems...)
}

func (r *claudeReader) readPermissions(d *decoder, key string, n *yaml.Node) {
	known := map[string]fieldReader{
		"allow":       func(_ *decoder, k string, n *yaml.Node) { r.readAllow(k, n) },
		"ask":         func(_ *decoder, k string, n *yaml.Node) { r.readGuards(k, n, &r.out.Permissions.Ask) },
		"deny":        func(_ *decoder, k string, n *yaml.Node) { r.readGuards(k, n, &r.out.Permissions.Deny) },
		"defaultMode": func(_ *decoder, k string, n *yaml.Node) { r.readMode(k, n) },
		"disableBypassPermissionsMode": func(d *decoder, k string, n *yaml.Node) {
			if r.out.NoBypass = n.Kind == yaml.ScalarNode && n.Value == "disable"; !r.out.NoBypass {
				d.rejectValue(n, k, `"disable"`)
			}
		},
	}
	d.readFields(n, key+".", known)
	if n.Kind != yaml.MappingNode {
		return
	}
	for _, name := range r.otherKeys(n, known) {
		r.out.Without = append(r.out.Without, key+"."+name)
	}
}

// readAllow reads rules that allow. Only those of the user's own file count.
func (r *claudeReader) readAllow(key string, n *yaml.Node) {
	if !r.out.Own {
		r.strangers = len(n.Content)
		return
	}
	size := 0
	for _, item := range r.listItems(key, n) {
		text, known := r.translate(item.Value)
		rule, err := ParseRule(text, r.placeOf(item), true)
		size += len(rule.Text)
		switch {
		case !known:
			r.addTool(item.Value)
		case err != nil:
			r.unreadable = append(r.unreadable, item.Value)
		case len(r.out.Permissions.Allow) >= claudeAllowMax || size > claudeAllowBytesMax:
			r.surplus++
		default:
			r.out.Permissions.Allow = append(r.out.Permissions.Allow, rule)
		}
	}
}

// readGuards reads rules that ask or deny.
func (r *claudeReader) readGuards(key string, n *yaml.Node, into *[]spec.PermissionRule) {
	for _, item := range r.listItems(key, n) {
		text, known := r.translate(aboutNotebooks(item.Value))
		rule, err := ParseRule(text, r.placeOf(item), false)
		name, _, _ := strings.Cut(rule.Text, "(")
		if !known && (err != nil || IsForeign(name)) { // any other name may be that of a command or of a tool in Go
			r.addTool(item.Value)
			continue
		}
		switch similar := SuggestTool(name); {
		case strings.Contains(item.Value, "(") && !strings.HasSuffix(item.Value, ")"):
			r.d.addProblem(item.Line+1, "%s: the \")\" of %.60q is missing: write %.60q", key, item.Value, item.Value+")")
		case strings.Contains(name, "*") && name != "*" && !strings.HasPrefix(name, toolname.MCPPrefix):
			r.d.addProblem(item.Line+1,
				"%s: %.60q: names of tools differ here, so a * may follow only mcp__; name each tool", key, item.Value)
		case name == toolname.Delegate && strings.Contains(rule.Text, ","):
			r.d.addProblem(item.Line+1, "%s: %.60q: write a rule for each agent", key, item.Value)
		case similar != "" && !(ToolRef{Name: name}).isKnown():
			r.d.addProblem(item.Line+1, "%s: no tool is called %.60q%s", key, name, similar)
		case err != nil:
			r.d.addProblem(item.Line+1, "%s: %v", key, err)
		case len(*into) >= rulesMax:
			r.d.addProblem(item.Line+1, "%s: more than %d rules; remove those that others cover", key, rulesMax)
			return
		default:
			*into = append(*into, rule)
		}
	}
}

func (r *claudeReader) listItems(key string, n *yaml.Node) (items []*yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		r.d.rejectValue(n, key, `a list of rules, such as ["Read(./secrets/**)"]`)
		return nil
	}
	if len(n.Content) > claudeItemsMax {
		r.d.addProblem(n.Content[claudeItemsMax].Line+1,
			"%s: more than %d rules; remove those that others cover", key, claudeItemsMax)
		return nil
	}
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode || item.Tag != "!!str" {
			r.d.rejectValue(item, key, `a rule as a text, such as "Bash(git push:*)"`)
			continue
		}
		items = append(items, item)
	}
	return items
}

func (r *claudeReader) placeOf(n *yaml.Node) string {
	return fmt.Sprintf("%s:%d", r.d.path, n.Line+1)
}

// literal escapes the letters that mean something else than themselves in a pattern.
var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`)

// aboutNotebooks makes a rule for the tool that edits notebooks, which troupe does not have, one for the tools that
// write files: a notebook is a file.
func aboutNotebooks(rule string) string {
	ref := parseToolRefs([]string{strings.TrimSpace(rule)})[0]
	if !strings.EqualFold(ref.Name, "NotebookEdit") {
		return rule
	}
	return ToolRef{Name: "Edit", Args: cmp.Or(ref.Args, "**/*.ipynb")}.String()
}

// translate returns a rule of Claude Code in a form that ParseRule reads; known is false if troupe has no such tool.
func (r *claudeReader) translate(text string) (rule string, known bool) {
	text = strings.TrimSpace(text)
	ref := parseToolRefs([]string{text})[0]
	isName := !strings.ContainsAny(ref.Name, "() \t") // else ParseRule reports the error
	if isName && !ref.isKnown() && (ref.isForeign() || SuggestTool(ref.Name) == "") {
		return text, false
	}
	isPath := slices.Contains(permission.WriteTools, ref.Name) || slices.Contains(permission.ReadTools, ref.Name)
	if rest, ok := strings.CutPrefix(ref.Args, "~/"); ok && isPath && r.home != "" {
		// two slashes begin a path of the machine
		ref.Args = "/" + literal.Replace(strings.TrimSuffix(r.home, "/")) + "/" + rest
		return ref.String(), true
	}
	if strings.ContainsAny(ref.Args, "*,") {
		return text, true // no name of one agent: a part of it would be another rule
	}
	if name := agentName(ref.Args); ref.Name == toolname.Delegate && name != "" {
		return ToolRef{Name: ref.Name, Args: name}.String(), true
	}
	return text, true
}

// readMode reads the default mode. That of another file than the user's own only takes trust away, and none lets all
// calls run: who wrote it meant another program.
func (r *claudeReader) readMode(key string, n *yaml.Node) {
	mode, err := ParseMode(n.Value)
	switch {
	case n.Kind != yaml.ScalarNode || err != nil && !slices.Contains(claudeOtherModes, n.Value):
		r.d.rejectValue(n, key, modeWords)
	case err != nil, mode == spec.ModeBypass, !r.out.Own && !lowersTrust(mode):
		r.out.Without = append(r.out.Without, fmt.Sprintf("%s %s (`permission_mode` in your own troupe.yaml sets a mode)", key, n.Value))
	default:
		r.out.Permissions.Mode = mode
	}
}

func (r *claudeReader) addTool(rule string) {
	name, _, _ := strings.Cut(rule, "(")
	if name = fmt.Sprintf("%.40s", printable(name)); !slices.Contains(r.tools, name) {
		r.tools = append(r.tools, name)
	}
}

// noteLosses names the rules that do not hold.
func (r *claudeReader) noteLosses() {
	add := func(format string, args ...any) { r.out.Without = append(r.out.Without, fmt.Sprintf(format, args...)) }
	switch {
	case r.strangers > 0 && r.isUser:
		add("permissions.allow (" + ownRunsOnly + ")")
	case r.strangers > 0:
		add("permissions.allow (this file may come from anyone: allow calls in ~/.claude/settings.json or your own troupe.yaml)")
	}
	if len(r.unreadable) > 0 {
		add("%d rules that allow and cannot be read, such as %.80q", len(r.unreadable), r.unreadable[0])
	}
	if r.surplus > 0 {
		add("%d rules that allow, after the first %d or %d KiB", r.surplus, claudeAllowMax, claudeAllowBytesMax>>10)
	}
	if len(r.tools) > 0 {
		add("rules for %s (troupe has no such tools)", clip.Names(r.tools, namedMax))
	}
}

// claudeDisplayKeys are about the screen and the texts of Claude Code itself, so they do not matter to a run.
var claudeDisplayKeys = strings.Fields(`$schema attribution autoUpdatesChannel cleanupPeriodDays companyAnnouncements editorMode feedbackSurveyRate
	includeCoAuthoredBy language preferredNotifChannel prefersReducedMotion showTurnDuration skipDangerousModePermissionPrompt spinnerTipsEnabled spinnerTipsOverride
	spinnerVerbs statusLine terminalProgressBarEnabled theme tui verbose`)

// otherKeys returns the keys of a mapping that have no reader. One that looks like a key with a reader is an error:
// rules that deny would be lost.
func (r *claudeReader) otherKeys(n *yaml.Node, known map[string]fieldReader) (names []string) {
	if len(n.Content) > 2*claudeItemsMax {
		r.d.addProblem(n.Line+1, "more than %d keys", claudeItemsMax)
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if known[key.Value] != nil || slices.Contains(claudeDisplayKeys, key.Value) {
			continue
		}
		if similar := didYouMean(key.Value, keysOf(known)); similar != "" {
			r.d.addProblem(key.Line+1, "unknown key %.60q%s", key.Value, similar)
			continue
		}
		names = append(names, fmt.Sprintf("%.40s", printable(key.Value)))
	}
	return names
}

// namedMax bounds the names in one note.
const namedMax = 12

// printable replaces what a terminal does not show as a letter.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c > 0x7e && c < 0xa0 {
			return '?'
		}
		return c
	}, text)
}
