package permission_test

import (
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
)

// Of what an agent and its ancestors want, the most counts, whichever of them wants it.
func TestTheMostApprovalsCount(t *testing.T) {
	one, two := spec.Permissions{}, spec.Permissions{Approvals: 2}
	for want, lists := range map[int][][]spec.Permissions{
		1: {nil, {one}, {one, one}},
		2: {{two}, {two, one}, {one, two}, {one, two, one}},
	} {
		for _, list := range lists {
			if got := permission.Compile(list, "", nil).Approvals(); got != want {
				t.Errorf("%+v: %d, want %d", list, got, want)
			}
		}
	}
	var none *permission.Set
	if none.Approvals() != 1 {
		t.Error("a task without permissions needs one")
	}
	if child := permission.Merge(spec.Permissions{Approvals: 2}, &spec.Permissions{Approvals: 1}); child.Approvals != 2 {
		t.Errorf("an agent file lowers what its run wants: %+v", child)
	}
}
