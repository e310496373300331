package permission

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/permission/rule"
)

// Call is a call that rules are compared with.
type Call struct {
	Tool      string
	Args      string // JSON that fits the schema of the tool
	Workspace string // the directory of the run
}

// fit is the result of comparing one rule with a call.
type fit int

const (
	fitsNot fit = iota
	fitsPerhaps
	fits
)

// callFacts are the arguments that rules are about.
type callFacts struct {
	Command string `json:"command"`
	Path    string `json:"path"`
	URL     string `json:"url"`
	Agent   string `json:"agent"`
	Name    string `json:"name"`
	Rev     string `json:"rev"`
}

func factsOf(c Call) (f callFacts) {
	_ = json.Unmarshal([]byte(c.Args), &f) // arguments that do not fit have no facts: the schema refuses them
	return f
}

// WrittenPath is the path that a call of a tool that writes files names; "" for any other call.
func WrittenPath(tool, args string) string {
	if !slices.Contains(WriteTools, tool) {
		return ""
	}
	return path.Clean(strings.TrimSpace(factsOf(Call{Tool: tool, Args: args}).Path))
}

// IsShell reports whether a tool runs command lines.
func IsShell(tool string) bool { return tool == shellTool }

// allows reports whether a rule that allows fits a call: it must be certain.
func (r Rule) allows(c Call) bool {
	if !r.isAbout(c.Tool) {
		return false
	}
	if r.pattern == "" {
		return !callsForeign(c) // a rule that allows an agent of another program names it
	}
	f := factsOf(c)
	switch {
	case c.Tool == shellTool:
		return rule.Allowed([]string{r.pattern}, f.Command)
	case c.Tool == webTool:
		host, ok := hostOf(f.URL)
		return ok && matchesHost(r.pattern, host)
	case c.Tool == delegateTool:
		return matchesAgent(r.pattern, f.Agent)
	case c.Tool == handoffTool:
		return f.Agent == r.pattern
	case c.Tool == skillTool:
		return f.Name == r.pattern
	}
	local, ok := localPath(c.Workspace, f.Path)
	if c.Tool == showTool && strings.Contains(f.Rev, ":") {
		return false // it names a second file
	}
	return ok && local != "." && matchesPath(r.pattern, c.Workspace, local)
}

// allowsCommand reports whether rules of the shell allow a command line together: each of its commands
// may match another rule.
func allowsCommand(list []Rule, c Call) bool {
	var patterns []string
	for _, r := range list {
		if r.isAbout(shellTool) {
			if r.pattern == "" {
				return true
			}
			patterns = append(patterns, r.pattern)
		}
	}
	return len(patterns) > 0 && rule.Allowed(patterns, factsOf(c).Command)
}

// catches compares a rule that denies or asks with a call: it fits wherever the call may do what the rule
// is about. The case of letters in paths does not matter, because some systems ignore it.
func (r Rule) catches(c Call) fit {
	if !r.isAbout(c.Tool) {
		return fitsNot
	}
	if r.pattern == "" {
		return fits
	}
	f := factsOf(c)
	switch {
	case c.Tool == shellTool:
		return map[rule.Finding]fit{rule.Clear: fitsNot, rule.Unclear: fitsPerhaps, rule.Denied: fits}[rule.Find([]string{r.pattern}, f.Command)]
	case c.Tool == webTool:
		host, ok := hostOf(f.URL)
		return certain(!ok || matchesHost(r.pattern, host))
	case c.Tool == delegateTool:
		return certain(matchesAgent(r.pattern, f.Agent))
	case c.Tool == handoffTool:
		return certain(f.Agent == r.pattern)
	case c.Tool == skillTool:
		return certain(f.Name == r.pattern)
	}
	if c.Tool == showTool {
		return r.catchesRevision(c, f)
	}
	return certain(r.catchesPath(c, f.Path))
}

// catchesRevision compares a rule with what git_show would show: a commit shows all files that it changes, an id may
// be that of any file, and the path behind a revision begins at the top of the repository.
func (r Rule) catchesRevision(c Call, f callFacts) fit {
	rev, name, isFile := strings.Cut(f.Rev, ":")
	switch {
	case isFile && r.catchesBelow(c, name), f.Path != "" && r.catchesBelow(c, f.Path):
		return fits
	case isFile && rev != "" && !strings.Contains(name, ":") && !strings.Contains(f.Rev, "{"):
		return fitsNot
	}
	return fitsPerhaps
}

// catchesBelow reports whether a rule catches a path, wherever above the directory of the run it begins.
func (r Rule) catchesBelow(c Call, name string) bool {
	for rest, more := name, true; more; _, rest, more = strings.Cut(rest, "/") {
		if r.catchesPath(c, rest) {
			return true
		}
	}
	return false
}

func certain(is bool) fit {
	if is {
		return fits
	}
	return fitsNot
}

// searching are the tools that read below a path, and the whole directory without one.
var searching = []string{"list_dir", "grep", "glob", "git_log", "git_numstat"}

func (r Rule) catchesPath(c Call, name string) bool {
	pattern := strings.ToLower(r.pattern)
	local, ok := localPath(strings.ToLower(c.Workspace), strings.ToLower(name))
	return !ok || matchesPath(pattern, strings.ToLower(c.Workspace), local) // outside of the directory the tool refuses it
}

// guardsFiles reports whether a rule that denies or asks is about files. A command may do with files what such a rule
// forbids, through an interpreter, a link or the history of git. Only a person who reads the command can tell.
func (r Rule) guardsFiles() bool {
	return isFamily(WriteTools, r.tool, r.tool) || isFamily(ReadTools, r.tool, r.tool)
}

// denies is catches for a rule that denies: a file that must not be read must not be written either, because the
// result of a write shows the old content.
func (r Rule) denies(c Call) fit {
	if r.tool == "read_file" && slices.Contains(WriteTools, c.Tool) {
		return certain(r.pattern == "" || r.catchesPath(c, factsOf(c).Path))
	}
	return r.catches(c)
}

// mayFind reports whether a search may read files that the rule is about. From tools that a rule denies,
// the directory hides them; a rule that asks must ask before the search.
func (r Rule) mayFind(c Call) bool {
	if r.pattern == "" || !slices.Contains(searching, c.Tool) || !r.isAbout(c.Tool) {
		return false
	}
	dir, ok := localPath(c.Workspace, factsOf(c).Path)
	return !ok || mayReach(r.pattern, c.Workspace, dir)
}
