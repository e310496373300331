package agentfile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/a2aclient"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/model"
)

// SharedSettings holds the settings of a file (troupe.yaml) that apply to all agents.
type SharedSettings struct {
	LoopOptions spec.LoopOptions
	Tools       []ToolRule // sorted by name
	// A2AAgents are the agents of the protocol A2A that agent files may name as delegates.
	A2AAgents []a2aclient.Agent
	Charges   map[string]float64 // for agents of other programs, in US dollars: see ChargeFor
	// Permissions are the rules and the mode of the file.
	Permissions spec.Permissions
	// Guardrails are the ready guardrails that the file switches on.
	Guardrails []spec.ReadyGuardrail
	// Policy is the stop-veto policy as JSON text, and PolicyFile the file that has it; package policy reads both.
	Policy     string
	PolicyFile string
	// OutputSchema is as in a Definition; Share reads it into LoopOptions.
	OutputSchema string
}

// ToolRule is an operator's rule about a tool, whichever source the tool comes from.
type ToolRule struct {
	Name  string      // ours: see ToolName
	Class model.Class // "": the tool's own class
	Data  string      // what the tool does with data, as permission.ParseData returns it; "": its kind decides
	Poll  bool        // the tool is meant to be called repeatedly
	Line  int
	// Allow lists what the tool may do without approval: hosts for http_get, commands for
	// shell. If Allow is set, even to an empty list, every agent that may have all tools has
	// this one.
	Allow []string
	// Deny are commands of shell that never run, even if a rule allows them.
	Deny []string
	// Private are addresses that http_get may reach although they are not public.
	Private []string
	// Read are files and directories that commands of shell may read.
	Read []string
	Git  bool // commands of shell may write git directories
	// Timeout of a call; 0 is the tool's own.
	Timeout time.Duration
}

// SharedKeys returns the keys of a settings file that Share reads; other packages read the
// rest.
func SharedKeys() []string {
	return append(slices.Sorted(maps.Keys(loopOptionFields())), "tools", "permissions", "policy", a2aKey, chargesKey)
}

// LoadShared reads a settings file. A missing file is an empty one.
func LoadShared(file string) (SharedSettings, error) {
	data, err := readFile(file)
	return parseSharedFile(file, data, err, func() (*os.Root, error) { return os.OpenRoot(filepath.Dir(file)) })
}

// ScriptPrefix begins the route of a model that is a file of this machine.
const ScriptPrefix = "script/"

// LoadDirShared reads the settings file of a directory that the user of this process names. The file may come from anyone:
// LoadDirShared follows no link that leads out of the directory, and the file names no script as a model.
func LoadDirShared(dir, name string) (SharedSettings, error) {
	real := workdir.Real(dir)
	data, err := safefile.ReadBelow(real, name, FileBytesMax)
	return parseDirShared(filepath.Join(dir, name), real, data, err)
}

// parseDirShared reads what the settings file of a directory contains. file is its path for messages, and dir that of the
// directory without links (workdir.Open).
func parseDirShared(file, dir string, data []byte, err error) (SharedSettings, error) {
	out, err := parseSharedFile(file, data, err, func() (*os.Root, error) {
		root, _, err := workdir.OpenRoot(dir)
		return root, err
	})
	if c := out.LoopOptions.Context.Model; err == nil && c != nil && strings.HasPrefix(c.Name, ScriptPrefix) {
		err = &Problem{Path: file, Err: fmt.Errorf("%w: context.model: a directory cannot name a script as a model: take it out here, and write it in your own file", ErrField)}
	}
	if err == nil {
		err = checkDirPermissions(file, out.Permissions)
	}
	if err == nil {
		err = errors.Join(rejectA2AAgents(file, out.A2AAgents), rejectCharges(file, out.Charges))
	}
	if err != nil {
		addLines(err, data)
		return SharedSettings{}, err
	}
	return out, nil
}

func parseSharedFile(file string, data []byte, err error, openDir func() (*os.Root, error)) (SharedSettings, error) {
	var none SharedSettings
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("agentfile: %w", err)
	}
	out, err := parseShared(file, data)
	if err != nil {
		return none, err
	}
	out.LoopOptions.Require.Schema, err = answerSchema(file, 0, out.OutputSchema, openDir)
	return out, err
}

// parseShared reads the text of a file of settings; path is for messages.
func parseShared(path string, data []byte) (SharedSettings, error) {
	var out SharedSettings
	if len(data) > FileBytesMax {
		return out, fmt.Errorf("%w: %s is %d bytes, at most %d are read", ErrTooLarge, path, len(data), FileBytesMax)
	}
	root, err := parseDocument(data)
	if err != nil {
		return out, &Problem{Path: path, Err: fmt.Errorf("%w: %w", ErrField, err)}
	}
	if root.Kind != yaml.MappingNode {
		return out, &Problem{path, root.Line, fmt.Errorf("%w: it must be a mapping of keys to values", ErrField)}
	}
	d, known := newDecoder(path, &Definition{}), loopOptionFields()
	d.strict = true
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		read := known[key.Value]
		switch key.Value {
		case "tools":
			read = func(d *decoder, k string, n *yaml.Node) { out.Tools = d.readToolRules(k, n) }
		case a2aKey:
			read = func(d *decoder, k string, n *yaml.Node) { out.A2AAgents = readA2AAgents(d, k, n) }
		case chargesKey:
			read = func(d *decoder, k string, n *yaml.Node) { out.Charges = readCharges(d, k, n) }
		case "guardrails":
			read = func(d *decoder, k string, n *yaml.Node) { out.Guardrails = d.readGuardrails(k, n) }
		case "policy":
			read = func(d *decoder, k string, n *yaml.Node) { out.Policy, out.PolicyFile = d.readPolicy(n, k) }
		case "permissions":
			read = func(d *decoder, k string, n *yaml.Node) { d.readPermissions(k, n, &out.Permissions) }
		case modeKey:
			read = func(d *decoder, k string, n *yaml.Node) {
				readMode(d, k, n)
				out.Permissions.Mode = d.def.PermissionMode
			}
		}
		if read == nil || value.Tag == "!!null" {
			continue
		}
		if line, what := findForbidden(value, 0); what != "" {
			return out, &Problem{path, line, fmt.Errorf("%w: %s", ErrField, what)}
		}
		shiftLinesUp(value)
		read(d, key.Value, value)
	}
	definitionCheck{&d.fileReport, d.def, d.lines}.checkLoopOptions(0)
	out.LoopOptions, out.OutputSchema = d.def.LoopOptions, d.def.OutputSchema
	return out, errors.Join(d.problems...)
}

// loopOptionFields are the keys below x-troupe, and at the top of a settings file.
func loopOptionFields() map[string]fieldReader {
	return map[string]fieldReader{
		"require":      readRequire,
		"continue":     readContinue,
		"watch":        readWatch,
		"breaker":      readBreaker,
		"context":      readContext,
		"polling":      func(d *decoder, k string, n *yaml.Node) { d.def.LoopOptions.Watch.Polling = ourNames(d.readList(n, k)) },
		"tool_retries": readToolRetries,
		"patience":     readPatience,
		"limit_notes":  readLimitNotes,
	}
}

func ourNames(names []string) []string {
	for i, name := range names {
		names[i] = ToolName(name)
	}
	return names
}

// isOff recognizes `off` and false, which other parsers take for the same word.
func isOff(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && slices.Contains([]string{"off", "false", "no"}, strings.ToLower(n.Value))
}

// readRequire takes {evidence: [grep, {tool: read_file, contains: refund}], schema: {…}, tries: 2}.
func readRequire(d *decoder, key string, n *yaml.Node) {
	r := &d.def.LoopOptions.Require
	d.readFields(n, key+".", map[string]fieldReader{
		"evidence": func(d *decoder, k string, n *yaml.Node) {
			if n.Kind != yaml.SequenceNode {
				d.rejectValue(n, k, "a list, such as [grep, {tool: read_file, contains: refund}]")
				return
			}
			for _, c := range n.Content {
				r.Evidence = append(r.Evidence, d.readEvidence(k, c))
			}
		},
		"schema": readSchema,
		"tries":  func(d *decoder, k string, n *yaml.Node) { r.Tries = d.readCount(n, k, "a number, such as 2") },
	})
}

func (d *decoder) readEvidence(key string, n *yaml.Node) (e spec.Evidence) {
	if n.Kind == yaml.ScalarNode {
		return ParseEvidence(d.readText(n, key))
	}
	d.readFields(n, key+".", map[string]fieldReader{
		"tool":     func(d *decoder, k string, n *yaml.Node) { e.Tool = ToolName(d.readText(n, k)) },
		"contains": func(d *decoder, k string, n *yaml.Node) { e.Contains = d.readText(n, k) },
	})
	return e
}

// ParseEvidence reads NAME or NAME=TEXT: a successful result of that tool, with that
// text in it.
func ParseEvidence(text string) spec.Evidence {
	name, contains, _ := strings.Cut(text, "=")
	return spec.Evidence{Tool: ToolName(strings.TrimSpace(name)), Contains: contains}
}

// readContinue takes a number of tokens, or {tokens: 50000, percent: 90, small: 500, rounds: 3}.
func readContinue(d *decoder, key string, n *yaml.Node) {
	c := &d.def.LoopOptions.Continue
	tokens := func(d *decoder, k string, n *yaml.Node) {
		c.Tokens = d.readInteger(n, k, "a number of output tokens to use up, such as 50000")
	}
	switch {
	case isOff(n):
		c.Tokens = spec.Off
	case n.Kind == yaml.ScalarNode:
		tokens(d, key, n)
	default:
		d.readFields(n, key+".", map[string]fieldReader{
			"tokens":  tokens,
			"percent": func(d *decoder, k string, n *yaml.Node) { c.Percent = d.readCount(n, k, "a percentage, such as 90") },
			"small": func(d *decoder, k string, n *yaml.Node) {
				c.Small = int64(d.readCount(n, k, "a number of tokens, such as 500"))
			},
			"rounds": func(d *decoder, k string, n *yaml.Node) { c.Rounds = d.readCount(n, k, "a number, such as 3") },
		})
	}
}

// readWatch reads off, or {of: 6, identical: 3, pattern: 4, stuck: 3, apart: 1}: missing keys keep
// their defaults.
func readWatch(d *decoder, key string, n *yaml.Node) {
	w := &d.def.LoopOptions.Watch
	polling := w.Polling
	if isOff(n) {
		w.Of = spec.Off
		return
	}
	*w = spec.DefaultLoopOptions().Watch
	w.Polling = polling
	number := func(into *int) fieldReader {
		return func(d *decoder, k string, n *yaml.Node) { *into = d.readCount(n, k, "a number, such as 6") }
	}
	d.readFields(n, key+".", map[string]fieldReader{"of": number(&w.Of), "identical": number(&w.Identical), "pattern": number(&w.Pattern), "stuck": number(&w.Stuck), "apart": number(&w.Apart)})
	if w.Of == 0 {
		w.Of = spec.Off
	}
}

// readBreaker takes off, or {failures: 2, forbidden: 3}; 0 is off.
func readBreaker(d *decoder, key string, n *yaml.Node) {
	b := &d.def.LoopOptions.Breaker
	if isOff(n) {
		*b = spec.Breaker{Failures: spec.Off, Forbidden: spec.Off}
		return
	}
	*b = spec.DefaultLoopOptions().Breaker
	number := func(into *int) fieldReader {
		return func(d *decoder, k string, n *yaml.Node) {
			if *into = d.readCount(n, k, "a number, such as 2"); *into == 0 {
				*into = spec.Off
			}
		}
	}
	d.readFields(n, key+".", map[string]fieldReader{"failures": number(&b.Failures), "forbidden": number(&b.Forbidden)})
}

// readContext takes off, or {percent: 70, tail: 10, prune_tail: 4, within: 20, summary_tokens: 1024, model: provider/model}.
func readContext(d *decoder, key string, n *yaml.Node) {
	c := &d.def.LoopOptions.Context
	if isOff(n) {
		c.Percent = spec.Off
		return
	}
	number := func(into *int) fieldReader {
		return func(d *decoder, k string, n *yaml.Node) { *into = d.readCount(n, k, "a number, such as 10") }
	}
	d.readFields(n, key+".", map[string]fieldReader{
		"percent": number(&c.Percent), "tail": number(&c.Tail), "prune_tail": number(&c.PruneTail), "within": number(&c.Within),
		"summary_tokens": func(d *decoder, k string, n *yaml.Node) {
			c.Summary = int64(d.readCount(n, k, "a number of tokens, such as 1024"))
		},
		"model": func(d *decoder, k string, n *yaml.Node) {
			if name := d.readText(n, k); name != "" && name != "inherit" {
				c.Model = &spec.Model{Name: name}
			}
		},
	})
}

func readToolRetries(d *decoder, key string, n *yaml.Node) {
	m := &d.def.LoopOptions
	if isOff(n) {
		m.ToolRetries = spec.Off
		return
	}
	if m.ToolRetries = d.readCount(n, key, "a number from 0 to 3"); m.ToolRetries == 0 {
		m.ToolRetries = spec.Off
	}
}

// readToolRules takes {shell: {class: irreversible}, check_job: {poll: true}}.
func (d *decoder) readToolRules(key string, n *yaml.Node) []ToolRule {
	if n.Kind != yaml.MappingNode {
		d.rejectValue(n, key, "a mapping of tools, such as {shell: {class: irreversible}}")
		return nil
	}
	rules := map[string]ToolRule{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := ToolName(n.Content[i].Value)
		r := ToolRule{Name: name, Line: n.Content[i].Line + 1}
		d.readFields(n.Content[i+1], key+"."+name+".", map[string]fieldReader{
			"class": func(d *decoder, k string, n *yaml.Node) {
				if r.Class = model.Class(d.readText(n, k)); r.Class.Risk() < 0 {
					d.rejectValue(n, k, "read, idempotent, effect or irreversible")
				}
			},
			"data":    func(d *decoder, k string, n *yaml.Node) { r.Data = readData(d, k, n) },
			"poll":    func(d *decoder, k string, n *yaml.Node) { r.Poll = d.readBool(n, k) },
			"allow":   func(d *decoder, k string, n *yaml.Node) { r.Allow = d.readList(n, k) },
			"deny":    func(d *decoder, k string, n *yaml.Node) { r.Deny = d.readList(n, k) },
			"private": func(d *decoder, k string, n *yaml.Node) { r.Private = d.readList(n, k) },
			"git":     func(d *decoder, k string, n *yaml.Node) { r.Git = d.readBool(n, k) },
			"read":    func(d *decoder, k string, n *yaml.Node) { r.Read = d.readPaths(n, k) },
			"timeout": func(d *decoder, k string, n *yaml.Node) { r.Timeout = d.readDuration(n, k) },
		})
		if _, twice := rules[name]; twice {
			d.addProblem(r.Line, "%s.%s is set twice, under this or another name of the tool; keep one", key, name)
		}
		rules[name] = r
	}
	return slices.SortedFunc(maps.Values(rules), func(a, b ToolRule) int { return strings.Compare(a.Name, b.Name) })
}
