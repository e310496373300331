package routes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/trust"
)

// A client may name models without end, and one approved script by paths without end.
func TestAttackRoutesWithoutEndFillNoMemory(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "play.yaml")
	if err := os.WriteFile(path, []byte("default: [{text: hi}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := trust.Policy{Roots: []string{root}, StateDir: t.TempDir()}
	if err := p.ApproveRequest(client.RunRequest{Model: "script/" + path}, func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	m := New(Config{Trust: p, Mask: redact.New(redact.Config{}), Env: func(name string) string {
		return map[string]string{"OPENAI_API_KEY": "k"}[name]
	}})
	first := "openai/m0"
	gate := func() string {
		if _, _, err := m.ResolveClient(first); err != nil {
			t.Fatal(err)
		}
		return m.ThrottleName(first)
	}
	before := gate()
	for i := range routesKept + scriptsKept {
		for _, route := range []string{fmt.Sprintf("openai/m%d", i), "script/" + strings.Repeat("/.", i) + path} {
			if _, err := m.ChooseModel(t.Context(), route); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := m.known.len(); n > routesKept {
		t.Errorf("%d routes are kept", n)
	}
	if n := m.scripts.len(); n != 1 {
		t.Errorf("%d scripts are kept of one file", n)
	}
	if m.ThrottleName(first) != before || gate() != before {
		t.Error("a route that was dropped has another gate")
	}
}
