package host

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// A client may name models without end, and one approved script by paths without end.
func TestAttackRoutesWithoutEndFillNoMemory(t *testing.T) {
	t.Parallel()
	root, state := realDir(t), t.TempDir()
	put(t, approvedScript, root, "play.yaml")
	path := filepath.Join(root, "play.yaml")
	h := restarted(state, root, env("OPENAI_API_KEY", "k"))
	if err := h.Approve(client.RunRequest{Model: "script/" + path}); err != nil {
		t.Fatal(err)
	}
	first := "openai/m0"
	gate := func() string {
		if _, _, err := h.models.client(first); err != nil {
			t.Fatal(err)
		}
		return h.models.gate(first)
	}
	before := gate()
	for i := range routesKept + scriptsKept {
		for _, route := range []string{fmt.Sprintf("openai/m%d", i), "script/" + strings.Repeat("/.", i) + path} {
			if _, err := h.models.choose(t.Context(), route); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := h.models.known.len(); n > routesKept {
		t.Errorf("%d routes are kept", n)
	}
	if n := h.models.scripts.len(); n != 1 {
		t.Errorf("%d scripts are kept of one file", n)
	}
	if h.models.gate(first) != before || gate() != before {
		t.Error("a route that was dropped has another gate")
	}
}
