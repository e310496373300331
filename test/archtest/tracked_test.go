package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// trackedBytesMax is the size of a file of the repository above which it needs a reason.
const trackedBytesMax = 1 << 20

// largeFiles are the tracked files that may be binary or large, with the reason.
var largeFiles = map[string]string{
	"docs/ui-budget.png":   pageShown,
	"docs/ui-inbox.png":    pageShown,
	"docs/ui-timeline.png": pageShown,
	"docs/ui-tree.png":     pageShown,
}

const pageShown = "a picture of the page, made by `make page-pictures`"

// TestNoBinaryIsTracked: a binary that is committed by accident stays in every clone.
func TestNoBinaryIsTracked(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Logf("not a checkout, so no file is tracked: %v", err)
		return
	}
	listed, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Split(strings.Trim(string(listed), "\x00"), "\x00")
	if len(names) < 500 {
		t.Fatalf("only %d tracked files found", len(names))
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // deleted and not committed yet
		}
		if why := refuseTracked(data); why != "" && largeFiles[name] == "" {
			t.Errorf("%s %s: remove it from the repository, or name it in largeFiles with the reason", name, why)
		}
	}
}

// refuseTracked says what keeps a file out of the repository; "" if nothing does.
func refuseTracked(data []byte) string {
	switch {
	case len(data) > trackedBytesMax:
		return "is larger than 1 MiB"
	case !utf8.Valid(data) || slices.Contains(data, 0):
		return "is binary"
	}
	return ""
}

// TestBinariesAreFound: the rule sees what it is about.
func TestBinariesAreFound(t *testing.T) {
	for text, refused := range map[string]bool{
		"package main\n":                       false,
		"grüße\n":                              false,
		"\x7fELF\x02\x01\x01\x00\x00":          true,
		"\xff\xfe":                             true,
		strings.Repeat("a", trackedBytesMax):   false,
		strings.Repeat("a", trackedBytesMax+1): true,
	} {
		if why := refuseTracked([]byte(text)); (why != "") != refused {
			t.Errorf("%.20q: %q, want refused %v", text, why, refused)
		}
	}
}
