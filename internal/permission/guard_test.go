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
