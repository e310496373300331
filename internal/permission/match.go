package permission

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/tool/shell/rule"
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

// allows reports whether a rule that allows fits a call: it must be certain.
func (r Rule) allows(c Call) bool {
	if !r.isAbout(c.Tool) {
		return false
	}
	if r.pattern == "" {
		return true
	}
	f := factsOf(c)
	switch {
	case c.Tool == shellTool:
		return rule.Allowed([]string{r.pattern}, f.Command)
	case c.Tool == webTool:
		host, ok := hostOf(f.URL)
		return ok && matchesHost(r.pattern, host)
	case c.Tool == delegateTool:
		return f.Agent == r.pattern
	case c.Tool == skillTool:
		return f.Name == r.pattern
	}
	local, ok := localPath(c.Workspace, f.Path)
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
		return certain(f.Agent == r.pattern)
	case c.Tool == skillTool:
		return certain(f.Name == r.pattern)
	}
	if c.Tool == "git_show" && !strings.Contains(f.Rev, ":") {
		return fitsPerhaps // a commit shows all files that it changes
	}
	return certain(r.catchesPath(c, f))
}

func certain(is bool) fit {
	if is {
		return fits
	}
	return fitsNot
}

// searching are the tools that read below a path, and the whole directory without one.
var searching = []string{"list_dir", "grep", "glob", "git_log", "git_numstat"}

func (r Rule) catchesPath(c Call, f callFacts) bool {
	pattern, name := strings.ToLower(r.pattern), strings.ToLower(f.Path)
	if c.Tool == "git_show" {
		_, name, _ = strings.Cut(strings.ToLower(f.Rev), ":")
	}
	local, ok := localPath(strings.ToLower(c.Workspace), name)
	return !ok || matchesPath(pattern, strings.ToLower(c.Workspace), local) // outside of the directory the tool refuses it
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
