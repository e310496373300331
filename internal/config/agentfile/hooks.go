package agentfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// hookPoints maps the events of other agent tools to hook points.
var hookPoints = map[string]spec.HookPoint{
	"PreToolUse": spec.HookPreTool, "PostToolUse": spec.HookPostTool, "PostToolUseFailure": spec.HookToolError,
	"Stop": spec.HookStop, "SubagentStop": spec.HookStop, "StopFailure": spec.HookStopFailure,
}

// eventsWithoutHook are events of those tools that have no hook point here.
var eventsWithoutHook = []string{"Notification", "PermissionRequest", "PreCompact", "PostCompact", "SessionEnd", "SessionStart", "Setup",
	"SubagentStart", "TaskCompleted", "TeammateIdle", "UserPromptSubmit"}

// LoadHooks reads the key `hooks` of settings files: of a troupe.yaml in the form of other agent tools, or as a list in
// troupe's own form; of a settings.json in the form of Claude Code. A missing file has none.
func LoadHooks(files ...string) (hooks []spec.Hook, notes []Note, err error) {
	for _, file := range files {
		data, err := readFile(file)
		parse := parseHooks
		if filepath.Ext(file) == ".json" {
			parse = parseClaudeHooks
		}
		more, about, err := parse(file, data, err)
		if err != nil {
			return nil, nil, err
		}
		hooks, notes = append(hooks, more...), append(notes, about...)
	}
	return hooks, notes, nil
}

func parseHooks(file string, data []byte, err error) ([]spec.Hook, []Note, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("hooks: %w", err)
	}
	root, err := parseDocument(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w: %w", file, ErrField, err)
	}
	var def Definition
	d := newDecoder(file, &def)
	d.shared = true
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Value != "hooks" || value.Tag == "!!null" {
			continue
		}
		if line, what := findForbidden(value, 0); what != "" {
			return nil, nil, fmt.Errorf("%s:%d: %w: %s", file, line, ErrField, what)
		}
		shiftLinesUp(value)
		if value.Kind == yaml.SequenceNode {
			readOwnHooks(d, "hooks", value)
		} else {
			readHooks(d, "hooks", value)
		}
	}
	return def.Hooks, d.notes, errors.Join(d.problems...)
}

// shiftLinesUp subtracts the line that a decoder adds for the fence of front matter.
func shiftLinesUp(n *yaml.Node) {
	n.Line--
	for _, c := range n.Content {
		shiftLinesUp(c)
	}
}

// readHooks reads hooks in the form of other agent tools:
// {PreToolUse: [{matcher: Bash, hooks: [{type: command, command: …, timeout: 30}]}]}.
func readHooks(d *decoder, key string, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.rejectValue(n, key,
			"a mapping of events, such as {PreToolUse: [{matcher: shell, hooks: [{type: command, command: ./check.sh}]}]}")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		event, groups := n.Content[i].Value, n.Content[i+1]
		point, known := hookPoints[event]
		switch {
		case slices.Contains(eventsWithoutHook, event):
			d.addNote(n.Content[i].Line+1, "%s.%s is kept and has no effect here", key, event)
		case !known && !d.hasRoomForNotes():
		case !known:
			d.addNote(n.Content[i].Line+1,
				"%s.%.60s is not an event and is ignored%s", key, event, didYouMean(event, slices.Sorted(mapKeys(hookPoints))))
		case groups.Kind != yaml.SequenceNode:
			d.rejectValue(groups, key+"."+event,
				"a list of groups, such as [{matcher: shell, hooks: [{type: command, command: ./check.sh}]}]")
		default:
			for _, g := range groups.Content {
				d.readHookGroup(key+"."+event, event, point, g)
			}
		}
	}
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// readHookGroup reads the hooks behind one matcher.
func (d *decoder) readHookGroup(key, event string, point spec.HookPoint, n *yaml.Node) {
	var matcher string
	var list []spec.Hook
	d.readFields(n, key+".", map[string]fieldReader{
		"matcher": func(d *decoder, k string, n *yaml.Node) { matcher = d.readText(n, k) },
		"hooks": func(d *decoder, k string, n *yaml.Node) {
			if n.Kind != yaml.SequenceNode {
				d.rejectValue(n, k, "a list, such as [{type: command, command: ./check.sh}]")
				return
			}
			for _, c := range n.Content {
				if h, ok := d.commandHook(k, c); ok {
					list = append(list, h)
				}
			}
		},
	})
	for _, h := range list {
		h.Name, h.Point = fmt.Sprintf("%s.%d", event, len(d.def.Hooks)+1), point
		switch point {
		case spec.HookPreTool, spec.HookPostTool, spec.HookToolError:
			h.Tools = ourTools(matcher)
		}
		if d.shared && event == "Stop" {
			h.Of = spec.OfRoot // a child's stop is another event there
		} else if d.shared && event == "SubagentStop" {
			h.Of = spec.OfChild
		}
		d.addHook(n, key, h)
	}
}

// commandHook reads {type: command, command: …, timeout: seconds}.
func (d *decoder) commandHook(key string, n *yaml.Node) (h spec.Hook, ok bool) {
	kind := "command"
	before := len(d.problems)
	d.readFields(n, key+".", map[string]fieldReader{
		"type":    func(d *decoder, k string, n *yaml.Node) { kind = d.readText(n, k) },
		"command": func(d *decoder, k string, n *yaml.Node) { h.Command = d.readText(n, k) },
		"timeout": func(d *decoder, k string, n *yaml.Node) {
			h.TimeoutMS = int64(d.readNumber(n, k, 0, secondsMax, "a number of seconds, such as 30") * 1000)
		},
		"prompt": func(*decoder, string, *yaml.Node) {}, "model": func(*decoder, string, *yaml.Node) {}, // of other types
	})
	switch {
	case len(d.problems) > before:
		return h, false
	case kind != "command":
		d.addNote(n.Line+1, "%s: a hook of type %.60q has no effect here; only commands do", key, kind)
		return h, false
	case h.Command == "":
		d.addProblem(n.Line+1, "%s: a hook has no command", key)
		return h, false
	}
	return h, true
}

const secondsMax = 24 * 3600

// readOwnHooks reads hooks in troupe's form: [{point: stop, command: make test, failing:
// prevent}].
func readOwnHooks(d *decoder, key string, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		d.rejectValue(n, key, "a list of hooks, such as [{point: stop, command: make test}]")
		return
	}
	for _, c := range n.Content {
		var h spec.Hook
		before := len(d.problems)
		d.readFields(c, key+".", map[string]fieldReader{
			"name":     func(d *decoder, k string, n *yaml.Node) { h.Name = d.readText(n, k) },
			"point":    func(d *decoder, k string, n *yaml.Node) { h.Point = spec.HookPoint(d.readText(n, k)) },
			"tools":    func(d *decoder, k string, n *yaml.Node) { h.Tools = ourTools(d.readText(n, k)) },
			"command":  func(d *decoder, k string, n *yaml.Node) { h.Command = d.readText(n, k) },
			"timeout":  func(d *decoder, k string, n *yaml.Node) { h.TimeoutMS = int64(d.readDuration(n, k) / time.Millisecond) },
			"severity": func(d *decoder, k string, n *yaml.Node) { h.Severity = spec.Severity(d.readText(n, k)) },
			"failing":  func(d *decoder, k string, n *yaml.Node) { h.Failing = spec.HookDecision(d.readText(n, k)) },
			"report":   func(d *decoder, k string, n *yaml.Node) { h.Report = d.readBool(n, k) },
			"of":       func(d *decoder, k string, n *yaml.Node) { h.Of = d.readText(n, k) },
		})
		if len(d.problems) > before {
			continue
		}
		if h.Name == "" && h.Command == "" {
			d.addProblem(c.Line+1, "%s: a hook has neither a command nor the name of a Go function", key)
			continue
		}
		if h.Name == "" {
			h.Name = fmt.Sprintf("%s.%d", h.Point, len(d.def.Hooks)+1)
		}
		d.addHook(c, key, h)
	}
}

// addHook adds a hook if it can do what its author wrote.
func (d *decoder) addHook(n *yaml.Node, key string, h spec.Hook) {
	if err := h.Validate(); err != nil {
		d.addProblem(n.Line+1, "%s: %v", key, err)
		return
	}
	if len(d.def.Hooks) >= spec.HooksMax {
		d.addProblem(n.Line+1, "%s: more than %d hooks", key, spec.HooksMax)
		return
	}
	d.def.Hooks = append(d.def.Hooks, h)
}

var toolWord = lazyregexp.New(`[A-Za-z_][A-Za-z0-9_]*`)

// patternNames are the names of Claude Code's tools as a pattern such as Re.* may mean them.
var patternNames = []string{"Agent", "AskUserQuestion", "Bash", "Edit", "Glob", "Grep", "LS", "MultiEdit", "Read", "SendMessage", "Skill", "Task", "WebFetch", "Write"}

// ourTools replaces tool names in a matcher by troupe's names: Bash|Write is
// shell|write_file. A pattern that matches other names also matches troupe's: Re.* is Re.*|read_file.
func ourTools(matcher string) string {
	ours := toolWord.ReplaceAllStringFunc(matcher, ToolName)
	theirs, err := spec.ToolPattern(matcher)
	known, err2 := spec.ToolPattern(ours)
	if err != nil || err2 != nil || theirs == nil || known == nil {
		return ours // the reader of the hook reports a pattern that does not compile
	}
	for _, name := range patternNames {
		if tool := ToolName(name); theirs.MatchString(name) && !known.MatchString(tool) {
			ours += "|" + tool
		}
	}
	return ours
}
