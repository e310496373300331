package filechange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/workdir"
)

const (
	// snapshotTimeMax is how long a snapshot may take before a command is run without one.
	snapshotTimeMax = 3 * time.Second
	depthMax        = 64 // of directories in each other
	entriesAtOnce   = 512
)

// Snapshot is a directory before a command runs in it. Directories of git, links and special files are not in
// it; empty directories count for nothing.
type Snapshot struct {
	files map[string]seenFile
	skip  []string
	kept  int64
	// Lost says why the directory could not be looked at as a whole; "": it was.
	Lost string
}

type seenFile struct {
	info  fs.FileInfo
	state State // with the content, if it was kept
}

var errTooMany = fmt.Errorf("the directory has more than %d files", SnapshotFilesMax)

// Take looks at a directory. skip are paths below it that commands do not see.
func Take(ctx context.Context, root *os.Root, skip []string) *Snapshot {
	s := &Snapshot{files: map[string]seenFile{}, skip: skip}
	keep := func(at *os.Root, name, base string, info fs.FileInfo) error {
		seen := seenFile{info: info}
		if info.Size() <= min(KeptFileBytesMax, KeptBytesMax-s.kept) {
			// A file that may not be read, or is gone, has no content before.
			if state, err := readFile(at, base, min(KeptFileBytesMax, KeptBytesMax-s.kept)); err == nil {
				seen.state = state
				s.kept += int64(len(state.Data))
			}
		}
		s.files[name] = seen
		return nil
	}
	if err := s.walk(ctx, root, keep); err != nil {
		s.Lost = err.Error()
		s.files = nil
	}
	return s
}

// visitFunc visits a regular file.
type visitFunc func(at *os.Root, name, base string, info fs.FileInfo) error

func (s *Snapshot) walk(ctx context.Context, root *os.Root, visit visitFunc) error {
	w := walker{s: s, visit: visit, ctx: ctx, until: time.Now().Add(snapshotTimeMax)}
	return w.walk(root, "", 0)
}

type walker struct {
	s     *Snapshot
	visit visitFunc
	ctx   context.Context
	until time.Time
	seen  int
}

func (w *walker) walk(at *os.Root, prefix string, depth int) error {
	if depth > depthMax {
		return fmt.Errorf("directories are more than %d levels deep", depthMax)
	}
	dir, err := at.OpenFile(".", os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return errors.New("a directory could not be read")
	}
	defer func() { _ = dir.Close() }()
	for {
		entries, err := dir.ReadDir(entriesAtOnce)
		for _, e := range entries {
			if err := w.visitEntry(at, prefix, e, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errors.New("a directory could not be read")
		}
	}
}

func (w *walker) visitEntry(at *os.Root, prefix string, e fs.DirEntry, depth int) error {
	if w.seen++; w.seen > SnapshotFilesMax {
		return errTooMany
	}
	if w.ctx.Err() != nil || time.Now().After(w.until) {
		return fmt.Errorf("looking at the directory took longer than %s", snapshotTimeMax)
	}
	name := prefix + e.Name()
	if IsGitName(e.Name()) || slices.Contains(w.s.skip, name) || len(name) > PathBytesMax || strings.ContainsAny(name, "\\\x00") {
		return nil
	}
	info, err := at.Lstat(e.Name())
	switch {
	case err != nil: // it is gone
		return nil
	case info.Mode().IsRegular():
		return w.visit(at, name, e.Name(), info)
	case !info.IsDir():
		return nil
	}
	below, err := openDirectory(at, e.Name(), false)
	if err != nil {
		return nil // replaced meanwhile, or not to be opened: what is below it is not seen
	}
	defer func() { _ = below.Close() }()
	return w.walk(below, name+"/", depth+1)
}

// Compare looks at the directory again and returns what changed since, sorted by path. lost says why
// not all changes are among them; "": all are.
func (s *Snapshot) Compare(root *os.Root) (changes []Change, lost string) {
	if s.Lost != "" {
		return nil, s.Lost
	}
	found, kept := map[string]bool{}, int64(0)
	ctx := context.Background() // also after a call that was aborted
	err := s.walk(ctx, root, func(at *os.Root, name, base string, info fs.FileInfo) error {
		found[name] = true
		was, existed := s.files[name]
		if existed && isUnchanged(was.info, info) {
			return nil
		}
		after, err := readFile(at, base, min(KeptFileBytesMax, max(0, StoredBytesMax-kept)))
		if err != nil {
			lost = "a file that was changed could not be read"
			return nil
		}
		kept += int64(len(after.Data))
		if c := (Change{Path: name, Before: s.before(was, existed), After: after}); !c.Before.Record().SameContent(after.Record()) || c.Before.Mode != after.Mode {
			changes = append(changes, c)
		}
		return nil
	})
	if err != nil {
		return nil, err.Error()
	}
	for name, was := range s.files {
		if !found[name] {
			changes = append(changes, Change{Path: name, Before: s.before(was, true)})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	if len(changes) > ChangesMax {
		lost = fmt.Sprintf("%d files were changed, at most %d are recorded", len(changes), ChangesMax)
		changes = changes[:ChangesMax]
	}
	return changes, lost
}

// before is the state of a file in the snapshot.
func (s *Snapshot) before(was seenFile, existed bool) State {
	if !existed {
		return State{}
	}
	if was.state.Exists {
		return was.state
	}
	return State{Mode: was.info.Mode().Perm(), Exists: true, Size: was.info.Size()}
}

// isUnchanged reports whether a file was not touched. The time at which its inode changed cannot be set by a
// program; systems that do not tell it are believed the time of the content.
func isUnchanged(was, now fs.FileInfo) bool {
	return os.SameFile(was, now) && was.Size() == now.Size() && was.Mode() == now.Mode() && was.ModTime().Equal(now.ModTime()) && changeTime(was) == changeTime(now)
}

// Watch looks at a directory that is open before a command runs in it. The function that it returns
// looks again.
func Watch(ctx context.Context, dir *os.File, skip []string) func() ([]Change, string) {
	open := func() (*os.Root, error) { return os.OpenRoot(workdir.DescriptorPath(dir)) }
	root, err := open()
	if err != nil {
		return func() ([]Change, string) { return nil, "the directory could not be read" }
	}
	s := Take(ctx, root, skip)
	return func() ([]Change, string) {
		defer func() { _ = root.Close() }()
		return s.Compare(root)
	}
}
