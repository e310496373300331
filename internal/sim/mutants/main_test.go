package main

import "testing"

// TestPatchesApply: each mutant still finds the rule that it takes out. Where
// this fails a rule has moved, and its mutant moves with it.
func TestPatchesApply(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range all() {
		if names[m.Name] {
			t.Errorf("two mutants are called %s", m.Name)
		}
		names[m.Name] = true
		if _, err := patch(root, t.TempDir(), m); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}
