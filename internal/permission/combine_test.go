package permission_test

import (
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
)

// A mode that came with a request counts for commands only in a sandbox, whatever the file of an agent says.
func TestADefinitionDoesNotUnconfineARequest(t *testing.T) {
	t.Parallel()
	run := spec.Permissions{Mode: spec.ModeBypass, Confined: true}
	if got := permission.Merge(run, &spec.Permissions{Mode: spec.ModeBypass}); !got.Confined || got.Mode != spec.ModeBypass {
		t.Errorf("%+v", got)
	}
	if got := permission.Merge(spec.Permissions{}, &spec.Permissions{Mode: spec.ModeBypass}); got.Confined || got.Mode != spec.ModeBypass {
		t.Errorf("a mode that the user's own file sets: %+v", got)
	}
}
