package approval

import (
	"context"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"

	"github.com/troupe-run/troupe/internal/hook"
	"github.com/troupe-run/troupe/internal/toolset/shell"
)

// The question about a command names the protections that the executing node does not
// enforce, so a node that lacks other protections asks another question, and one that lacks
// the same asks the same (E3, F2).
func TestCommandQuestionNamesMissingProtections(t *testing.T) {
	t.Parallel()
	asked := func(l Rules, missing string) string {
		t.Helper()
		c := hook.Call{Hook: l.NewHook(shell.Name), Data: spec.HookData{Tool: shell.Name, Args: `{"command":"touch made"}`}}
		a, err := DecideWithProtections(t.Context(), c, func(context.Context) string { return missing })
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(a.Decision) + " " + a.Text)
	}
	for _, c := range []struct {
		what          string
		l             Rules
		missing, want string
	}{
		{"a rule counts everywhere", Rules{Allow: []string{"touch:*"}}, "files", ""},
		{"the request's rule, where it is confined", Rules{Request: []string{"touch:*"}}, "", ""},
		{"the request's rule, where it is not", Rules{Request: []string{"*"}}, "files", "ask rules of the request do not count for commands here; this system does not enforce: files"},
		{"the request's rule beside another", Rules{Allow: []string{"ls:*"}, Request: []string{"touch:*"}}, "network", "ask rules of the request do not count for commands here; this system does not enforce: network"},
		{"the request's rule for something else", Rules{Request: []string{"ls:*"}}, "files", "ask no rule allows this command; this system does not enforce: files"},
		{"yes, where it is confined", Rules{Yes: true}, "", ""},
		{"yes, where it is not", Rules{Yes: true}, "files", "ask --yes does not count for commands here; this system does not enforce: files"},
		{"no rule", Rules{}, "", "ask no rule allows this command"},
		{"no rule, and no sandbox", Rules{}, "network", "ask no rule allows this command; this system does not enforce: network"},
		{"irreversible, and no sandbox", Rules{Yes: true, Asked: []string{shell.Name}}, "network", "ask what it does cannot be undone; this system does not enforce: network"},
	} {
		if got := asked(c.l, c.missing); got != c.want {
			t.Errorf("%s: %q", c.what, got)
		}
	}
}
