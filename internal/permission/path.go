package permission

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/troupe-run/troupe/agent/spec"
)

// localPath returns the path of an argument relative to the directory of the run; ok is false if it leads
// out of it. It reads names as the tools do.
func localPath(workspace, name string) (local string, ok bool) {
	name = strings.TrimSpace(name)
	if name == "" {
		return ".", true
	}
	if strings.HasPrefix(name, "/") {
		rest, below := strings.CutPrefix(path.Clean(name)+"/", strings.TrimSuffix(path.Clean(workspace), "/")+"/")
		if !below || workspace == "" {
			return "", false
		}
		name = rest
	}
	name = path.Clean(name)
	return name, name != ".." && !strings.HasPrefix(name, "../")
}

// matchesPath reports whether a pattern of paths fits a path, or a directory above it. A pattern without
// a slash fits a name in any directory, as in .gitignore; /a and ./a are a in the directory of the run,
// and //a is a path of the machine.
func matchesPath(pattern, workspace, name string) bool {
	if rest, ok := strings.CutPrefix(pattern, "//"); ok {
		pattern, name = "/"+rest, path.Join(workspace, name)
	} else {
		anchored := strings.Contains(strings.TrimSuffix(pattern, "/"), "/")
		pattern = strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "/")
		if !anchored {
			pattern = "**/" + pattern
		}
	}
	pattern = path.Clean(pattern)
	for _, p := range []string{pattern, pattern + "/**"} {
		if ok, err := doublestar.Match(p, name); ok && err == nil {
			return true
		}
	}
	return false
}

// mayReach reports whether a pattern could fit a file below a directory: a search there may read the file.
func mayReach(pattern, workspace, dir string) bool {
	if dir == "." || matchesPath(pattern, workspace, dir) {
		return true
	}
	if strings.HasPrefix(pattern, "//") {
		return true // whether it lies below is not looked at: the stricter answer counts
	}
	plain := strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "/")
	if !strings.Contains(strings.TrimSuffix(pattern, "/"), "/") {
		return true // it fits in any directory
	}
	fixed := plain
	if i := strings.IndexAny(plain, "*?[{\\"); i >= 0 {
		fixed = plain[:i]
	}
	return strings.HasPrefix(fixed, dir+"/") || strings.HasPrefix(dir+"/", fixed) || strings.HasPrefix(strings.ToLower(fixed), strings.ToLower(dir)+"/")
}

// FilePatterns returns the patterns of the rules that deny reading files, and of those that ask for it, of an agent and
// its ancestors.
func FilePatterns(list []spec.Permissions) (denied, asked []string) {
	patterns := func(rules []spec.PermissionRule) (found []string) {
		for _, text := range rules {
			// a rule without a pattern denies every call
			if r, err := ParseGuard(text.Text); err == nil && r.tool == "read_file" && r.pattern != "" {
				found = append(found, r.pattern)
			}
		}
		return found
	}
	for _, p := range list {
		denied, asked = append(denied, patterns(p.Deny)...), append(asked, patterns(p.Ask)...)
	}
	return denied, asked
}

// MatchesFile reports whether one of the patterns of FilePatterns fits a path relative to the directory of a run.
func MatchesFile(patterns []string, workspace, name string) bool {
	workspace, name = strings.ToLower(workspace), strings.ToLower(name)
	return slices.ContainsFunc(patterns, func(p string) bool { return matchesPath(strings.ToLower(p), workspace, name) })
}
