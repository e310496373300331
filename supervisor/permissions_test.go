package supervisor

import (
	"math/rand/v2"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/model"
)

// randomPermissions draws the permissions of one definition.
func randomPermissions(r *rand.Rand) *spec.Permissions {
	texts := []string{"shell(git log:*)", "shell(rm:*)", "shell", "read_file(./a/**)", "edit_file(docs/**)", "edit_file", "http_get(domain:a.org)", "mcp__s", "mcp__s__t", "delegate(x)"}
	draw := func() (list []spec.PermissionRule) {
		for range r.IntN(3) {
			list = append(list, spec.PermissionRule{Text: texts[r.IntN(len(texts))], Confined: r.IntN(3) == 0})
		}
		return list
	}
	modes := append([]spec.PermissionMode{""}, spec.PermissionModes...)
	return &spec.Permissions{Mode: modes[r.IntN(len(modes))], Allow: draw(), Ask: draw(), Deny: draw(), Yes: r.IntN(4) == 0}
}

// In random trees of agents no child may do what its parent may not: whatever its definition allows, each
// call is decided at least as strictly as for its parent.
//
//behaviour:shows E6
func TestRightsOnlyShrinkDownwards(t *testing.T) {
	t.Parallel()
	calls := []permission.Call{{Tool: "shell", Args: `{"command":"git log"}`}, {Tool: "shell", Args: `{"command":"rm x"}`}, {Tool: "read_file", Args: `{"path":"a/b"}`}, {Tool: "write_file", Args: `{"path":"docs/x"}`},
		{Tool: "edit_file", Args: `{"path":"y"}`}, {Tool: "http_get", Args: `{"url":"https://a.org"}`}, {Tool: "mcp__s__t", Args: `{}`}, {Tool: "delegate", Args: `{"agent":"x"}`}}
	classes := map[string]model.Class{"read_file": model.Read, "http_get": model.Read, "delegate": model.Read}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		o := Opened{Permissions: randomPermissions(r)}
		var parent []spec.Permissions
		for depth := range 4 {
			list := o.permissionsOf(Definition{Permissions: randomPermissions(r)}, parent)
			own, inherited := permission.Compile(list, "/w", nil), permission.Compile(parent, "/w", nil)
			for _, c := range calls {
				tool := permission.Tool{Class: classes[c.Tool]}
				if tool.Class == "" {
					tool.Class = model.Effect
				}
				child := own.Decide(c, tool, nil)
				if depth == 0 {
					continue
				}
				if above := inherited.Decide(c, tool, nil); child.Decision < above.Decision {
					t.Fatalf("seed %d, depth %d: %+v is %+v for the child, and %+v for its parent", seed, depth, c, child, above)
				}
			}
			parent = list
		}
	}
}

// A rule that a person adds for the run reaches every other live agent, once, and later children.
func TestARuleOfAPersonReachesAllAgents(t *testing.T) {
	t.Parallel()
	s := State{Phase: Live}
	for _, id := range []spec.ID{spec.Root, "root-1-0"} {
		s = s.put(Member{ID: id})
	}
	rule := agent.AllowRule{Rule: spec.PermissionRule{Text: "shell(make)"}}
	s, fx := allowRule(s, "root-1-0", rule)
	if len(fx) != 1 || fx[0].(Tell).To != spec.Root || len(s.AddedRules) != 1 {
		t.Errorf("%+v %+v", fx, s.AddedRules)
	}
	if s, fx = allowRule(s, spec.Root, rule); len(fx) != 0 || len(s.AddedRules) != 1 {
		t.Errorf("the same rule twice: %+v %+v", fx, s.AddedRules)
	}
}
