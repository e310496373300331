package permission_test

import (
	"errors"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
)

// A rule that keeps one read tool from files keeps all of them, so that a search of the directory above finds nothing.
func TestAttackAGuardOfOneReadToolHoldsForAll(t *testing.T) {
	for _, tool := range []string{"grep", "glob", "list_dir", "read_file", "git_show"} {
		r, err := permission.ParseGuard(tool + "(secrets/**)")
		if err != nil || r.Tool() != "read_file" {
			t.Errorf("%s: %v %s", tool, err, r.Tool())
		}
		denied, asked := permission.FilePatterns([]spec.Permissions{{Deny: []spec.PermissionRule{{Text: tool + "(secrets/**)"}}, Ask: []spec.PermissionRule{{Text: tool + "(private/**)"}}}})
		if len(denied) != 1 || len(asked) != 1 || !permission.MatchesFile(denied, "/w", "secrets/key") {
			t.Errorf("%s: the tools that read are told of %q and %q", tool, denied, asked)
		}
	}
	if r, err := permission.ParseGuard("grep"); err != nil || r.Tool() != "grep" {
		t.Errorf("a whole tool: %v %s", err, r.Tool())
	}
}

// A pattern that could only seem to guard something is refused.
func TestAttackPatternsThatFitNothingAreRefused(t *testing.T) {
	for _, text := range []string{"read_file(~/**)", "read_file(~/.ssh/**)", "edit_file(~root/x)", "read_file(./x/../secrets/k)", "read_file(a/..)"} {
		if r, err := permission.Parse(text); !errors.Is(err, permission.ErrRule) {
			t.Errorf("%s is read as %v", text, r)
		}
	}
}

// A part of a tool that is granted covers no call whose arguments name a file outside of it, in whichever of them.
func TestAttackNoArgumentNamesAFileOutsideOfTheGrantedPart(t *testing.T) {
	only := spec.Permissions{}
	for _, tool := range permission.ReadTools {
		only.Only = append(only.Only, spec.PermissionRule{Text: tool + "(src/**)"})
	}
	within := spec.Permissions{Only: only.Only, Within: [][]spec.PermissionRule{{{Text: "git_show(src/a/**)"}}}}
	for _, c := range []struct {
		p          spec.Permissions
		tool, args string
		want       permission.Decision
	}{
		{only, "git_show", `{"rev":"HEAD","path":"src/a"}`, permission.Allow},
		{only, "git_show", `{"rev":"HEAD:secrets/key","path":"src/a"}`, permission.Deny},
		{only, "git_show", `{"rev":":secrets/key","path":"src/a"}`, permission.Deny},
		{only, "git_show", `{"rev":"HEAD"}`, permission.Deny},
		{only, "git_show", `{"rev":"HEAD","path":"src/../secrets"}`, permission.Deny},
		{within, "git_show", `{"rev":"HEAD","path":"src/b"}`, permission.Deny},
		{within, "git_show", `{"rev":"HEAD","path":"src/a/b"}`, permission.Allow},
		{only, "grep", `{"pattern":"x"}`, permission.Deny},
		{only, "grep", `{"pattern":"x","glob":"secrets/**"}`, permission.Deny},
		{only, "grep", `{"pattern":"x","path":"src","glob":"../secrets/**"}`, permission.Allow}, // a glob only leaves out
		{only, "glob", `{"pattern":"src/**"}`, permission.Deny},
		{only, "git_numstat", `{}`, permission.Deny},
		{only, "git_blame", `{"path":"src2/x"}`, permission.Deny},
		{only, "git_log", `{"path":"."}`, permission.Deny},
		{only, "list_dir", `{"path":"src/../"}`, permission.Deny},
	} {
		if got := decide(c.p, c.tool, c.args); got.Decision != c.want {
			t.Errorf("%s %s: %+v", c.tool, c.args, got)
		}
	}
	limits := permission.FileLimits([]spec.Permissions{within, {Only: []spec.PermissionRule{{Text: "read_file(*)"}, {Text: "grep(/lib/**)"}}}})
	for _, c := range []struct {
		tool, name string
		want       bool
	}{
		{"git_show", "src/a/b", true}, {"git_show", "src/b", false}, {"read_file", "src/b", true}, {"read_file", "lib/b", false}, {"grep", "src/b", false}, {"grep", "lib/b", false}, {"write_file", "x", true}, {"glob", "src/x", true},
	} {
		if got := permission.KeepsWithin(limits, "/work", c.tool, c.name); got != c.want {
			t.Errorf("%s %s: %v", c.tool, c.name, got)
		}
	}
}
