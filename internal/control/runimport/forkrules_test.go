package runimport

import (
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/supervisor"
)

// A rule that denies a path in the original's directory by its whole name says nothing about a copy elsewhere.
func TestAttackRulesThatWouldNotHoldInAFork(t *testing.T) {
	for text, want := range map[string]bool{
		"read_file(//home/me/proj/secrets/**)":   true,
		"read_file(//home/me/proj/**)":           true,
		"read_file(//home/me/proj/**/key.pem)":   true,
		"write_file(//home/me/pro*/secrets)":     false, // it fits the copy beside the original, too
		"read_file(//home/**/secrets/**)":        false,
		"read_file(//etc/**)":                    false,
		"read_file(./secrets/**)":                false,
		"read_file":                              false,
		"shell(cat //home/me/proj/secrets/*)":    false, // the text of a command, not a path
		"read_file(//home/me/projects/other/**)": false,
	} {
		rules := []spec.PermissionRule{{Text: text}}
		for place, o := range map[string]supervisor.Opened{
			"the run's denials":   {Workspace: "/home/me/proj", Permissions: &spec.Permissions{Deny: rules}},
			"an agent's question": {Workspace: "/home/me/proj", Definitions: []supervisor.Definition{{Permissions: &spec.Permissions{Ask: rules}}}},
		} {
			if got := checkRulesHold(o, "/home/me/proj-fork-1", "") != nil; got != want {
				t.Errorf("%s: %s: refused %v, want %v", place, text, got, want)
			}
		}
	}
	o := supervisor.Opened{Workspace: "/home/me/proj", Permissions: &spec.Permissions{Deny: []spec.PermissionRule{{Text: "read_file(//home/me/**)"}}}}
	if checkRulesHold(o, "/srv/copy", "") == nil {
		t.Error("the rule fits the original's directory, and not the copy")
	}
}

// A rule that an operator set while the run worked must hold in the copy of a fork, too.
func TestForkKeepsRulesThatWereSetLater(t *testing.T) {
	t.Parallel()
	s := supervisor.State{Run: supervisor.Opened{Workspace: "/home/me/proj", Permissions: &spec.Permissions{}}}
	if err := checkRulesHold(withNarrowings(s), "/srv/copy", ""); err != nil {
		t.Error(err)
	}
	s.Narrowings = []supervisor.PermissionsSet{{Rights: spec.Narrowing{Deny: []spec.PermissionRule{{Text: "read_file(//home/me/proj/secrets/**)"}}}}}
	if checkRulesHold(withNarrowings(s), "/srv/copy", "") == nil {
		t.Error("a rule about a path in the directory of the original is not refused")
	}
}
