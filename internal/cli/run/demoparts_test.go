package run

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A ledger passes only if each order is there once.
func TestLedgerNamesOrdersThatWereNotShippedOnce(t *testing.T) {
	const all = "order 1 shipped by process 7\norder 2 shipped by process 7\norder 3 shipped by process 7\norder 4 shipped by process 7\n" +
		"order 5 shipped by process 7\norder 6 shipped by process 8\norder 7 shipped by process 8\norder 8 shipped by process 8\n"
	file := filepath.Join(t.TempDir(), "ledger.txt")
	for last, want := range map[string]string{
		"order 9 shipped by process 8\n":                               "9 of 9 orders shipped, each once: 5 by process 7, 4 by process 8",
		"order 8 shipped by process 8\n":                               "8 of 9 orders shipped: 5 by process 7, 4 by process 8",
		"order 9 shipped by process 8\norder 1 shipped by process 8\n": "9 of 9 orders shipped: 5 by process 7, 5 by process 8",
	} {
		if err := os.WriteFile(file, []byte(all+last), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := readLedger(file)
		if err != nil || l.summary() != want {
			t.Errorf("%q %v, want %q", l.summary(), err, want)
		}
		if whole := len(last) < 30 && last[6] == '9'; (l.check() == nil) != whole || !whole && !errors.Is(l.check(), errLedger) {
			t.Errorf("%q: %v", last, l.check())
		}
	}
	if l, err := readLedger(filepath.Join(t.TempDir(), "none")); err != nil || l.summary() != "0 of 9 orders shipped" {
		t.Errorf("no ledger: %q %v", l.summary(), err)
	}
	if err := os.WriteFile(file, []byte("order nine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readLedger(file); err == nil {
		t.Error("a broken ledger passes")
	}
}
