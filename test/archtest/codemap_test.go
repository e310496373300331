package archtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	mapGroup = regexp.MustCompile(`(internal/(?:[a-z]+/)?)\{([^}]*)\}`)
	mapPath  = regexp.MustCompile(`internal/[a-z0-9/]+`)
)

// TestTheCodeMapNamesEveryPackage: a package below internal has a place in the code map of ARCHITECTURE.md, itself or by
// the folder above it.
func TestTheCodeMapNamesEveryPackage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range mapGroup.FindAllStringSubmatch(string(text), -1) {
		for name := range strings.SplitSeq(m[2], ",") {
			named[m[1]+strings.TrimSpace(name)] = true
		}
	}
	for _, name := range mapPath.FindAllString(string(text), -1) {
		named[strings.TrimSuffix(name, "/")] = true
	}
	err = fs.WalkDir(os.DirFS("../.."), "internal", func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		if e.Name() == "testdata" {
			return fs.SkipDir
		}
		sources, err := filepath.Glob(filepath.Join("../..", name, "*.go"))
		if err != nil || len(sources) == 0 {
			return err
		}
		for at := name; at != "."; at = path.Dir(at) {
			if named[at] && (at == name || at != "internal/cli") { // whose packages are listed one by one
				return nil
			}
		}
		t.Errorf("ARCHITECTURE.md: the code map says nothing of %s", name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
