package embedded_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// TestAStateDirectoryOfANewerFormIsNotTouched: a program that does not know its form says
// that it is too old, and leaves the directory as it is.
func TestAStateDirectoryOfANewerFormIsNotTouched(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "form")
	if err := os.WriteFile(path, fmt.Appendf(nil, "%d\n", statedir.StateForm+1), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := embedded.Config{StateDir: dir, DontListen: true, Lazy: true, LogStore: statedir.LogsInJetStream}
	_, err := embedded.Start(cfg)
	if !errors.Is(err, statedir.ErrNewerForm) || !strings.Contains(err.Error(), "written by a newer troupe: upgrade this one") {
		t.Errorf("it starts: %v", err)
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) != 1 {
		t.Errorf("the directory was touched: %v, %v", found, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds the form that the first has written
		e, err := embedded.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "1\n" {
		t.Errorf("%q, %v", data, err)
	}
}
