package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAttackSettingsOfTheRepositoryRunNoProgram: git runs the program that checks signatures for a signed commit,
// and that of a remote for an object that is missing in a partial clone.
func TestAttackSettingsOfTheRepositoryRunNoProgram(t *testing.T) {
	dir, first, _ := makeRepository(t)
	git := func(input string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	tree := git("", "rev-parse", first+"^{tree}")
	who := "a <a@b> 1700000000 +0000"
	signed := git("tree "+tree+"\nauthor "+who+"\ncommitter "+who+
		"\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n", "hash-object", "-t", "commit", "-w", "--stdin")
	marker := filepath.Join(t.TempDir(), "ran")
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho ran >>'"+marker+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"log.showSignature": "true", "gpg.program": program, "core.repositoryFormatVersion": "1",
		"extensions.partialClone": "origin", "remote.origin.promisor": "true", "remote.origin.url": dir, "remote.origin.uploadpack": program} {
		git("", "config", name, value)
	}
	j, err := newChecker(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	for _, commit := range []string{signed, strings.Repeat("1", len(first))} {
		err := j.checkEvidence(evidence{Commit: commit, Path: "a.go"})
		if (err == nil) != (commit == signed) {
			t.Errorf("%s: %v", commit, err)
		}
		if text, err := os.ReadFile(marker); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a program of the repository ran: %q %v", commit, text, err)
			_ = os.Remove(marker)
		}
	}
}
