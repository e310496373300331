package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var documentLink = regexp.MustCompile(`\]\(([^)#: ]+)(#[^)]*)?\)`)

var codeSpan = regexp.MustCompile("`[^`]*`")

// TestLinksLeadToFiles: each relative link of README.md and of the pages in docs/ leads to a file or folder of the project.
func TestLinksLeadToFiles(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages", err)
	}
	for _, page := range append(pages, "../../README.md", "../../ARCHITECTURE.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md") {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range documentLink.FindAllStringSubmatch(withoutCode(string(raw)), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", strings.TrimPrefix(page, "../../"), m[1])
			}
		}
	}
}

// withoutCode is a page without its code, in which brackets mean something else.
func withoutCode(page string) string {
	var kept []string
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		} else if !fenced && !strings.HasPrefix(line, "    ") {
			kept = append(kept, codeSpan.ReplaceAllString(line, ""))
		}
	}
	return strings.Join(kept, "")
}
