package hook

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/workdir"
)

// claudePrefix begins the names of hooks of a settings.json of Claude Code (claudeHookPrefix of package agentfile).
// They are written for its tools, so they read calls with its names of tools and arguments, and troupe reads the
// arguments that they change in the same way.
const claudePrefix = "claude."

// claudeTool is a tool as Claude Code calls it.
type claudeTool struct {
	Name string
	Args map[string]string // troupe's names of arguments to those of Claude Code, where they differ
}

var claudeTools = map[string]claudeTool{
	"shell":      {Name: "Bash"},
	"read_file":  {"Read", map[string]string{"path": "file_path"}},
	"write_file": {"Write", map[string]string{"path": "file_path"}},
	"edit_file":  {"Edit", map[string]string{"path": "file_path", "old": "old_string", "new": "new_string"}},
	"list_dir":   {Name: "LS"},
	"glob":       {Name: "Glob"},
	"grep":       {Name: "Grep"},
	"http_get":   {Name: "WebFetch"},
	"delegate":   {"Task", map[string]string{"agent": "subagent_type", "task": "prompt"}},
	"skill":      {Name: "Skill"},
}

// claudeFile is the argument of Claude Code that is an absolute path.
const claudeFile = "file_path"

func isClaudeHook(h spec.Hook) bool { return strings.HasPrefix(h.Name, claudePrefix) }

// toClaude writes a call as Claude Code would: a tool that it does not have keeps its name.
func toClaude(c *commandInput) {
	t, known := claudeTools[c.ToolName]
	if !known {
		return
	}
	c.ToolName = t.Name
	args := renameArgs(c.ToolInput, t.Args)
	var path string
	if json.Unmarshal(args[claudeFile], &path) == nil && path != "" && !filepath.IsAbs(path) && c.Cwd != "" {
		if raw, err := json.Marshal(filepath.Join(c.Cwd, path)); err == nil {
			args[claudeFile] = raw
		}
	}
	if raw, err := json.Marshal(args); err == nil && args != nil {
		c.ToolInput = raw
	}
}

// fromClaude returns the arguments that a hook of Claude Code gave a call of one of troupe's tools. A path in the
// directory of the run is written as troupe's tools write it.
func fromClaude(tool, args, workspace string) string {
	back := map[string]string{}
	for ours, theirs := range claudeTools[tool].Args {
		back[theirs] = ours
	}
	renamed := renameArgs(json.RawMessage(args), back)
	var path string
	if back[claudeFile] != "" && json.Unmarshal(renamed[back[claudeFile]], &path) == nil && filepath.IsAbs(path) {
		local, ok := workdir.Below(workspace, path)
		if raw, err := json.Marshal(local); ok && err == nil {
			renamed[back[claudeFile]] = raw
		}
	}
	raw, err := json.Marshal(renamed)
	if err != nil || renamed == nil {
		return args // the loop reports their error
	}
	return string(raw)
}

// renameArgs renames the arguments of a call; nil if they are no object.
func renameArgs(args json.RawMessage, names map[string]string) map[string]json.RawMessage {
	var given, renamed map[string]json.RawMessage
	if json.Unmarshal(args, &given) != nil || given == nil {
		return nil
	}
	renamed = make(map[string]json.RawMessage, len(given))
	for name, value := range given {
		if names[name] == "" {
			renamed[name] = value
		}
	}
	for name, value := range given {
		if to := names[name]; to != "" { // it counts more than another value of its new name
			renamed[to] = value
		}
	}
	return renamed
}
