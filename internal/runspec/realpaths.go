package runspec

import (
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/workdir"
)

// withRealPaths adds to rules about files those about the paths that links lead to, because calls are compared with the
// path of the directory without links. A rule that denies or asks follows all links. One that allows follows only those
// on the way to the directory: a link within it may be anyone's.
func withRealPaths(p spec.Permissions, workspace string) (spec.Permissions, error) {
	if workspace == "" {
		return p, nil
	}
	var err error
	for _, list := range []*[]spec.PermissionRule{&p.Deny, &p.Ask} {
		if *list, err = withTargets(*list, workspace, guardedTargets); err != nil {
			return p, err
		}
	}
	for _, list := range []*[]spec.PermissionRule{&p.Allow, &p.Only} {
		if *list, err = withTargets(*list, workspace, targetsAbove); err != nil {
			return p, err
		}
	}
	p.Within = slices.Clone(p.Within)
	for i := range p.Within {
		if p.Within[i], err = withTargets(p.Within[i], workspace, targetsAbove); err != nil {
			return p, err
		}
	}
	return p, nil
}

// withTargets adds a rule for each path that links of another lead to.
func withTargets(rules []spec.PermissionRule, workspace string, targets func(workspace, fixed string) []string) ([]spec.PermissionRule, error) {
	all := slices.Clip(rules)
	for _, r := range rules {
		split, ok := permission.SplitPathRule(r.Text)
		if !ok {
			continue
		}
		for _, fixed := range targets(workspace, filepath.FromSlash(split.Fixed)) {
			more := r
			more.Text = split.Text(filepath.ToSlash(fixed))
			if _, err := permission.Parse(more.Text); err != nil {
				return nil, refuse.Bad(permissionsHint,
					"the rule %s leads by links to a path that no rule can name: %v", r.Text, err)
			}
			if !slices.ContainsFunc(all, func(o spec.PermissionRule) bool { return o.Text == more.Text && o.Confined == more.Confined }) {
				all = append(all, more)
			}
		}
	}
	return all, nil
}

// guardedTargets returns where all links of a path lead, and where those above the directory do.
func guardedTargets(workspace, fixed string) (found []string) {
	found = targetsAbove(workspace, fixed)
	named := fixed
	if !filepath.IsAbs(fixed) {
		named = filepath.Join(workspace, fixed)
	}
	real := realPath(named)
	if real == named {
		return found
	}
	if below, ok := workdir.Below(workspace, real); ok {
		return append(found, below)
	}
	return append(found, real)
}

// targetsAbove returns where the links of a path of the machine lead, of those on the way to the directory. It goes
// from the top, and no further than the directory.
func targetsAbove(workspace, fixed string) []string {
	if !filepath.IsAbs(fixed) {
		return nil
	}
	named, real := "", ""
	for at := range pathsDown(fixed) {
		next, err := filepath.EvalSymlinks(at)
		if err != nil || !workdir.IsBelow(next, workspace) {
			break
		}
		if named, real = at, next; real == workspace {
			break
		}
	}
	if named == real {
		return nil
	}
	return []string{real + strings.TrimPrefix(fixed, named)}
}

// pathsDown are a path and those above it, the shortest first.
func pathsDown(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := 1; i <= len(name); i++ {
			if (i == len(name) || name[i] == filepath.Separator) && !yield(name[:i]) {
				return
			}
		}
	}
}

// realPath follows the links of a path as far as it exists.
func realPath(name string) string {
	for above := name; above != filepath.Dir(above); above = filepath.Dir(above) {
		if real, err := filepath.EvalSymlinks(above); err == nil {
			return filepath.Join(real, strings.TrimPrefix(name, above))
		}
	}
	return name
}
