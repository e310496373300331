package agentmemory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func openTestStore(t *testing.T, scope string) Store {
	t.Helper()
	dir := ""
	if scope == Project {
		dir = t.TempDir()
	}
	s, err := OpenStore(t.TempDir(), scope, "tester", dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newNote(name, content string) Note {
	return Note{Name: name, Description: "about " + name, Content: content}
}

func mustWrite(t *testing.T, s Store, n Note) Usage {
	t.Helper()
	u, err := s.Write(n, "")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (s Store) path() string { return filepath.Join(append([]string{s.stateDir}, s.parts()...)...) }

// Notes are there again when the store is opened again, for each scope, and an empty store leaves nothing behind.
//
//behaviour:shows K8
func TestNotesOutliveTheStore(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{User, Project} {
		s := openTestStore(t, scope)
		if notes, broken, err := s.Notes(); len(notes)+len(broken) > 0 || err != nil {
			t.Errorf("%s: an empty store has %v %v %v", scope, notes, broken, err)
		}
		if _, err := s.Read("a"); !errors.Is(err, ErrNoteNotFound) {
			t.Error(err)
		}
		mustWrite(t, s, newNote("b", "<B> & \"quotes\"\n\tand lines"))
		if u := mustWrite(t, s, newNote("a", "A")); u.Notes != 2 || u.Bytes != len("about aAabout b<B> & \"quotes\"\n\tand lines") {
			t.Errorf("%s: %+v", scope, u)
		}
		again, err := OpenStore(s.stateDir, scope, s.Agent, s.Dir)
		if err != nil {
			t.Fatal(err)
		}
		notes, broken, err := again.Notes()
		if len(notes) != 2 || len(broken) > 0 || err != nil || notes[0] != newNote("a", "A") || notes[1].Content != "<B> & \"quotes\"\n\tand lines" {
			t.Errorf("%s: %+v %v %v", scope, notes, broken, err)
		}
		info, err := os.Stat(filepath.Join(s.path(), "a.json"))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Error(info, err)
		}
		if info, err = os.Stat(s.path()); err != nil || info.Mode().Perm() != 0o700 {
			t.Error(info, err)
		}
		if stores, problems := Stores(s.stateDir); len(stores) != 1 || len(problems) > 0 || stores[0] != s {
			t.Errorf("%s: %+v %v", scope, stores, problems)
		}
		for _, name := range []string{"a", "b"} {
			if found, err := s.Delete(name); !found || err != nil {
				t.Error(name, found, err)
			}
		}
		if found, err := s.Delete("a"); found || err != nil {
			t.Error("deleted twice", found, err)
		}
		if stores, problems := Stores(s.stateDir); len(stores)+len(problems) > 0 {
			t.Errorf("%s: an empty store stays: %+v %v", scope, stores, problems)
		}
	}
}

func TestStoresAreApart(t *testing.T) {
	t.Parallel()
	state, one, two := t.TempDir(), t.TempDir(), t.TempDir()
	open := func(scope, agent, dir string) Store {
		s, err := OpenStore(state, scope, agent, dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	all := []Store{open(User, "a", ""), open(User, "b", ""), open(Project, "a", one), open(Project, "b", one), open(Project, "a", two)}
	for i, s := range all {
		mustWrite(t, s, newNote("n", fmt.Sprint(i)))
	}
	for i, s := range all {
		if n, err := s.Read("n"); err != nil || n.Content != fmt.Sprint(i) {
			t.Error(i, n, err)
		}
	}
	if _, err := all[2].Delete("n"); err != nil {
		t.Fatal(err)
	}
	if stores, problems := Stores(state); len(stores) != 4 || len(problems) > 0 {
		t.Error(stores, problems)
	}
}

// Beyond a limit nothing is written, and what is there stays.
//
//behaviour:shows K8
func TestLimitsOfAStore(t *testing.T) {
	t.Parallel()
	s := openTestStore(t, Project)
	large := strings.Repeat("\"", ContentBytesMax) // twice as long in JSON
	for i := range StoreBytesMax/ContentBytesMax - 1 {
		mustWrite(t, s, newNote(fmt.Sprintf("large-%d", i), large))
	}
	if _, err := s.Write(newNote("last", large), ""); !errors.Is(err, ErrFull) {
		t.Error("beyond the bytes of a store:", err)
	}
	if n, err := s.Read("large-0"); err != nil || n.Content != large {
		t.Error(err)
	}
	s = openTestStore(t, User)
	for i := range NotesMax {
		mustWrite(t, s, newNote(fmt.Sprintf("n%d", i), "x"))
	}
	if _, err := s.Write(newNote("more", "x"), ""); !errors.Is(err, ErrFull) {
		t.Error("beyond the notes of a store:", err)
	}
	mustWrite(t, s, newNote("n0", "a full store still takes changes"))
	if _, err := s.Delete("n1"); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, s, newNote("more", "x"))
}

// Nothing that a model or a log names becomes a path, and no text of a note hides from its reader.
func TestAttackNotesThatAreNone(t *testing.T) {
	t.Parallel()
	s := openTestStore(t, Project)
	long := strings.Repeat("a", nameBytesMax+1)
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/a", `a\b`, "a.b", "A", "a b", "-a", "a-", "a--b", "ä", "a\x00", long} {
		if _, err := s.Write(newNote(name, "x"), ""); !errors.Is(err, ErrNote) {
			t.Errorf("write %q: %v", name, err)
		}
		if _, err := s.Read(name); !errors.Is(err, ErrNote) {
			t.Errorf("read %q: %v", name, err)
		}
		if _, err := s.Delete(name); !errors.Is(err, ErrNote) {
			t.Errorf("delete %q: %v", name, err)
		}
	}
	for _, n := range []Note{
		{Name: "n", Description: "d", Content: strings.Repeat("x", ContentBytesMax+1)},
		{Name: "n", Description: strings.Repeat("x", DescriptionBytesMax+1), Content: "x"},
		{Name: "n", Description: "d", Content: " \n"}, {Name: "n", Description: " ", Content: "x"},
		{Name: "n", Description: "two\nlines", Content: "x"},
		{Name: "n", Description: "d", Content: "\x1b[2J"}, {Name: "n", Description: "d", Content: "a\u202eb"}, {Name: "n", Description: "d\u200b", Content: "x"},
		{Name: "n", Description: "d", Content: "\U000e0041"}, {Name: "n", Description: "d", Content: "\xff"}, {Name: "n", Description: "d", Content: "a\x00b"},
	} {
		if _, err := s.Write(n, ""); !errors.Is(err, ErrNote) {
			t.Errorf("%q %q: %v", n.Description, n.Content[:min(len(n.Content), 20)], err)
		}
	}
	for _, c := range [][3]string{{User, "../a", ""}, {User, "", ""}, {User, "A", ""}, {User, strings.Repeat("a", 65), ""}, {"planet", "a", ""}, {Project, "a", ""}, {Project, "a", "x"}, {Project, "a", "/x/../y"}} {
		if _, err := OpenStore(t.TempDir(), c[0], c[1], c[2]); !errors.Is(err, ErrStore) {
			t.Errorf("%q: %v", c, err)
		}
	}
	if entries, err := os.ReadDir(s.stateDir); len(entries) > 0 || err != nil {
		t.Error("something was written:", entries, err)
	}
}

// A link in the place of a note or of a directory is not followed, whoever made it.
func TestAttackLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	secret := filepath.Join(elsewhere, "secret.json")
	if err := os.WriteFile(secret, []byte(`{"description":"d","content":"secret"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openTestStore(t, User)
	mustWrite(t, s, newNote("a", "x"))
	if err := os.Symlink(secret, filepath.Join(s.path(), "link.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.json", filepath.Join(s.path(), "near.json")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "near"} {
		if n, err := s.Read(name); err == nil {
			t.Errorf("%s was read: %+v", name, n)
		}
	}
	mustWrite(t, s, newNote("link", "mine")) // it replaces the link
	if data, err := os.ReadFile(secret); err != nil || !strings.Contains(string(data), "secret") {
		t.Errorf("%s %v", data, err)
	}
	if found, err := s.Delete("near"); !found || err != nil {
		t.Error(found, err)
	}
	if _, err := s.Read("a"); err != nil {
		t.Error("the link's target is gone:", err)
	}
	for depth := 1; depth <= len(s.parts()); depth++ {
		s := openTestStore(t, User)
		at := filepath.Join(append([]string{s.stateDir}, s.parts()[:depth]...)...)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(elsewhere, at); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Notes(); !errors.Is(err, ErrLink) {
			t.Errorf("%d: %v", depth, err)
		}
		if _, err := s.Write(newNote("a", "x"), ""); !errors.Is(err, ErrLink) {
			t.Errorf("%d: %v", depth, err)
		}
		if written, err := os.ReadDir(elsewhere); err != nil || len(written) != 1 {
			t.Errorf("%d: something was written elsewhere: %v %v", depth, written, err)
		}
	}
}

// Files that people or a broken disk have changed are named, and stop no others.
func TestBrokenFilesAreNamed(t *testing.T) {
	t.Parallel()
	s := openTestStore(t, Project)
	mustWrite(t, s, newNote("good", "x"))
	for name, text := range map[string]string{"cut": `{"descr`, "empty": "", "huge": `{"description":"d","content":"` + strings.Repeat("x", fileBytesMax) + `"}`, "binary": "\xff\xfe",
		"none": `{"description":"","content":""}`, "bidi": "{\"description\":\"d\",\"content\":\"\u202e\"}"} {
		if err := os.WriteFile(filepath.Join(s.path(), name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []string{"README.md", ".json", "UPPER.json", tempPrefix + "left"} {
		if err := os.WriteFile(filepath.Join(s.path(), other), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	notes, broken, err := s.Notes()
	if len(notes) != 1 || len(broken) != 6 || err != nil {
		t.Errorf("%+v %v %v", notes, broken, err)
	}
	mustWrite(t, s, newNote("cut", "mended"))
	if n, err := s.Read("cut"); err != nil || n.Content != "mended" {
		t.Error(n, err)
	}
	if _, err := os.Stat(filepath.Join(s.path(), tempPrefix+"left")); !errors.Is(err, os.ErrNotExist) {
		t.Error("what a killed writer left is still there:", err)
	}
	// The directory of a project that names another one is not listed as that one.
	if err := os.WriteFile(filepath.Join(s.path(), "..", "..", pathFile), []byte("/elsewhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if stores, problems := Stores(s.stateDir); len(stores) > 0 || len(problems) != 1 {
		t.Error(stores, problems)
	}
	if _, err := s.Write(newNote("new", "x"), ""); !errors.Is(err, ErrStore) {
		t.Error(err)
	}
}

// A write that names a version replaces only that one, and a repeated write changes nothing.
func TestVersionOfANote(t *testing.T) {
	t.Parallel()
	s := openTestStore(t, User)
	first, second, third := newNote("n", "1"), newNote("n", "2"), newNote("n", "3")
	if _, err := s.Write(first, first.Version()); !errors.Is(err, ErrChanged) {
		t.Error("a version of no note:", err)
	}
	mustWrite(t, s, first)
	if _, err := s.Write(second, first.Version()); err != nil {
		t.Error(err)
	}
	if _, err := s.Write(third, first.Version()); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	second.Run = "another attempt of the same call"
	if _, err := s.Write(second, first.Version()); err != nil {
		t.Error("a repeated write:", err)
	}
	if n, err := s.Read("n"); err != nil || n.Content != "2" || n.Run != "" {
		t.Errorf("%+v %v", n, err)
	}
	mustWrite(t, s, third) // without a version the last write wins
	if n, err := s.Read("n"); err != nil || n.Content != "3" {
		t.Errorf("%+v %v", n, err)
	}
}

// Readers see a whole note while several write, and of writers that name a version one wins.
//
//behaviour:shows K8
func TestConcurrentWritesAreWhole(t *testing.T) {
	t.Parallel()
	s := openTestStore(t, Project)
	base := newNote("shared", strings.Repeat("0", ContentBytesMax))
	mustWrite(t, s, base)
	var all sync.WaitGroup
	won := make(chan string, 16)
	for i := range 8 {
		all.Go(func() {
			digit := fmt.Sprint(i + 1)
			if _, err := s.Write(newNote("shared", strings.Repeat(digit, ContentBytesMax)), base.Version()); err == nil {
				won <- digit
			} else if !errors.Is(err, ErrChanged) {
				t.Error(err)
			}
			mustWriteOwn(t, s, "own-"+digit)
		})
		all.Go(func() {
			for range 20 {
				n, err := s.Read("shared")
				if err != nil || len(n.Content) != ContentBytesMax || strings.Trim(n.Content, n.Content[:1]) != "" {
					t.Errorf("a torn note: %v %.20q", err, n.Content)
				}
			}
		})
	}
	all.Wait()
	close(won)
	if n, err := s.Read("shared"); err != nil || len(won) != 1 || n.Content[:1] != <-won {
		t.Error(len(won), err)
	}
	if notes, broken, err := s.Notes(); len(notes) != 9 || len(broken) > 0 || err != nil {
		t.Error(len(notes), broken, err)
	}
}

func mustWriteOwn(t *testing.T, s Store, name string) {
	if _, err := s.Write(newNote(name, "x"), ""); err != nil {
		t.Error(err)
	}
}
