package schedules

import (
	"fmt"
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/refuse"
)

// TestAttackOwnerUsesUpTheSchedules: an owner makes as many schedules as it can. Others still make theirs.
func TestAttackOwnerUsesUpTheSchedules(t *testing.T) {
	t.Parallel()
	cfg, _ := newConfig(t)
	c := NewRegistry(cfg)
	create := func(owner string, n int) error {
		_, err := c.Create(t.Context(), client.RunRequest{RunID: fmt.Sprintf("%s%d", owner, n), Owner: owner, Prompt: "p", Every: "1h"})
		return err
	}
	for n := range ownedMax {
		if err := create("bob", n); err != nil {
			t.Fatalf("%d: %v", n, err)
		}
	}
	if err := create("bob", ownedMax); !refuse.HasCode(err, client.CodeLimit) {
		t.Errorf("one more of bob: %v", err)
	}
	for _, owner := range []string{"alice", ""} {
		if err := create(owner, 0); err != nil {
			t.Errorf("the first of %q: %v", owner, err)
		}
	}
}
