package trust

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/troupe-run/troupe/internal/config/agentfile"
)

// A file of the user's own place is a link to a file below a root. The node reads the evil content, and the run
// changes the target before the node looks where the link leads.
func TestAttackALinkThatChangesAfterTheReadIsNotTrusted(t *testing.T) {
	t.Parallel()
	const good, evil = "the user's own", "the run's"
	root, own := realDir(t), realDir(t)
	writeText(t, good, own, "good.md")
	writeText(t, evil, own, "plain.md")
	at := func(dir, name string) string { return filepath.Join(dir, name) }
	link := func(to, from string) {
		t.Helper()
		if err := errors.Join(os.RemoveAll(from), os.Symlink(to, from)); err != nil {
			t.Fatal(err)
		}
	}
	writeText(t, "", root, "sub", "x")
	link(at(own, "good.md"), at(own, "link.md"))
	link(at(root, "target.md"), at(own, "chain.md"))
	link(root+"/sub/../../"+filepath.Base(own)+"/good.md", at(own, "parent.md"))
	link(own, at(root, "dir"))
	link(at(root, "dir/good.md"), at(own, "bydir.md"))
	p := Policy{Roots: []string{root}, StateDir: t.TempDir()}
	for _, step := range []struct {
		what, file, content string
		change              func()
		want                bool
	}{
		{"a file of the user", "good.md", good, func() {}, true},
		{"a link to a file of the user", "link.md", good, func() {}, true},
		{"a file that changed after the read", "good.md", evil, func() {}, false},
		{"a link into the root", "chain.md", evil, func() { writeText(t, evil, root, "target.md") }, false},
		{"a link whose target the run removed", "chain.md", evil, func() { link("nowhere", at(root, "target.md")) }, false},
		{"a link that the run led back to the user's file", "chain.md", evil, func() { link(at(own, "good.md"), at(root, "target.md")) }, false},
		{"a link of a run that chooses the user's file", "chain.md", good, func() {}, false},
		{"a path through a directory of a run and back", "parent.md", good, func() {}, false},
		{"a path through a linked directory of a run", "bydir.md", good, func() {}, false},
		{"a file that is gone", "plain.md", evil, func() { link("nowhere", at(own, "plain.md")) }, false},
	} {
		step.change()
		if got := p.TrustsFile(at(own, step.file), agentfile.ContentDigest([]byte(step.content)), ""); got != step.want {
			t.Errorf("%s: trusted is %v", step.what, got)
		}
	}
}
