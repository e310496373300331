package filechange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
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
	began time.Time
	files map[string]seenFile
	// closed are the directories that could not be opened: a file that was in one is no new file elsewhere.
	closed map[string]fs.FileInfo
	skip   []string
	kept   int64
	// Lost says why the directory could not be looked at as a whole; "": it was.
	Lost string
}

type seenFile struct {
	info  fs.FileInfo
	state State // with the content, if it was kept
	// at is not after the time at which the content was read. A later Snapshot that finds the file untouched takes
	// both over: it does not know more about the content.
	at time.Time
}

var errTooMany = fmt.Errorf("the directory has more than %d files", SnapshotFilesMax)

// Take looks at a directory. skip are paths below it that commands do not see. What an earlier Snapshot of the
// directory knows of files that were not touched since is not read again; nil: there is none.
func Take(ctx context.Context, root *os.Root, skip []string, earlier *Snapshot) *Snapshot {
	s := &Snapshot{began: time.Now(), files: map[string]seenFile{}, closed: map[string]fs.FileInfo{}, skip: skip}
	w := s.newWalker(ctx, s.closed, func(_ *os.Root, name, _ string, info fs.FileInfo) error {
		s.files[name] = seenFile{info: info, at: s.began}
		return nil
	})
	err := w.walk(root, "", 0)
	if err == nil { // contents are read only if the directory is not too large
		err = s.readContents(w, root, earlier)
	}
	if err != nil {
		s.Lost = err.Error()
		s.files = nil
	}
	return s
}

// readContents reads the files that are small enough, in the order of their paths. A file that may not be read, or is
// gone, has no content.
func (s *Snapshot) readContents(w *walker, root *os.Root, earlier *Snapshot) (err error) {
	var at *os.Root // the directory dir, if it could be opened
	dir := ""
	closeDir := func() {
		if at != nil {
			_ = at.Close()
			at = nil
		}
	}
	defer closeDir()
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		if err := w.checkTime(); err != nil {
			return err
		}
		seen, room := s.files[name], min(KeptFileBytesMax, KeptBytesMax-s.kept)
		if state, ok := earlier.find(name, seen.info); ok && state.Size <= room {
			s.kept += int64(len(state.Data))
			s.files[name] = seenFile{seen.info, state, s.began}
			continue
		}
		if seen.info.Size() > room {
			continue
		}
		if dir == "" || path.Dir(name) != dir {
			closeDir()
			dir = path.Dir(name)
			if at, _, err = openParent(root, name, false); err != nil {
				at = nil
			}
		}
		if at == nil {
			continue
		}
		if state, err := readSeen(at, path.Base(name), seen.info, room); err == nil {
			s.kept += int64(len(state.Data))
			s.files[name] = seenFile{seen.info, state, s.began}
		}
	}
	return nil
}

// find returns the content of a file that has not been touched since the Snapshot. A file that had just been changed
// then may have been changed again within the same tick of the file system's clock: it is read again.
func (s *Snapshot) find(name string, now fs.FileInfo) (State, bool) {
	if s == nil {
		return State{}, false
	}
	was, ok := s.files[name]
	changed := max(changeTime(now), now.ModTime().UnixNano())
	if !ok || !was.state.Kept || !isUnchanged(was.info, now) || was.at.UnixNano()-changed < int64(clockTick) {
		return State{}, false
	}
	return was.state, true
}

// clockTick is longer than the file system's clock may stand still.
const clockTick = time.Second

// visitFunc visits a regular file.
type visitFunc func(at *os.Root, name, base string, info fs.FileInfo) error

func (s *Snapshot) newWalker(ctx context.Context, closed map[string]fs.FileInfo, visit visitFunc) *walker {
	return &walker{s: s, visit: visit, closed: closed, ctx: ctx, until: time.Now().Add(snapshotTimeMax)}
}

type walker struct {
	s      *Snapshot
	visit  visitFunc
	closed map[string]fs.FileInfo
	ctx    context.Context
	until  time.Time
	seen   int
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

func (w *walker) checkTime() error {
	if w.ctx.Err() != nil || time.Now().After(w.until) {
		return fmt.Errorf("looking at the directory took longer than %s", snapshotTimeMax)
	}
	return nil
}

func (w *walker) visitEntry(at *os.Root, prefix string, e fs.DirEntry, depth int) error {
	if w.seen++; w.seen > SnapshotFilesMax {
		return errTooMany
	}
	if err := w.checkTime(); err != nil {
		return err
	}
	name := prefix + e.Name()
	if IsGitName(e.Name()) || slices.Contains(w.s.skip, name) {
		return nil
	}
	if len(name) > PathBytesMax {
		return fmt.Errorf("a path has more than %d bytes", PathBytesMax)
	}
	info, err := e.Info() // read with the entry, because the directory was opened in a root
	switch {
	case err != nil: // it is gone
		return nil
	case info.Mode().IsRegular():
		return w.visit(at, name, e.Name(), info)
	case !info.IsDir():
		return nil
	}
	below, err := openDirectory(at, e.Name(), false)
	if err != nil { // replaced meanwhile, or not to be opened: what is below it is not seen
		w.closed[name] = info
		return nil
	}
	defer func() { _ = below.Close() }()
	return w.walk(below, name+"/", depth+1)
}

// Compare looks at the directory again and returns what changed since. lost says why not all changes are among
// them; "": all are. If a file that is gone may be missing among them, only deletions are: another file may be
// the missing one under a new name, and its only copy. now is the directory after the command; nil: it could not be
// looked at.
func (s *Snapshot) Compare(root *os.Root) (changes []Change, lost string, now *Snapshot) {
	if s.Lost != "" {
		return nil, s.Lost, nil
	}
	now = &Snapshot{began: time.Now(), files: make(map[string]seenFile, len(s.files)), closed: map[string]fs.FileInfo{}, skip: s.skip}
	kept := int64(0)
	ctx := context.Background() // also after a call that was aborted
	w := s.newWalker(ctx, now.closed, func(at *os.Root, name, base string, info fs.FileInfo) error {
		was, existed := s.files[name]
		if existed && isUnchanged(was.info, info) {
			now.files[name] = was
			return nil
		}
		after, err := readSeen(at, base, info, min(KeptFileBytesMax, max(0, StoredBytesMax-kept)))
		if err != nil { // its content is not known, so that it is not taken back
			lost = "a file that was changed could not be read"
			after = State{Mode: info.Mode().Perm(), Exists: true, Size: info.Size()}
		}
		kept += int64(len(after.Data))
		now.files[name] = seenFile{info, after, now.began}
		if c := (Change{Path: name, Before: s.before(was, existed), After: after}); !sameContent(c.Before.Record(), after.Record()) || c.Before.Mode != after.Mode {
			changes = append(changes, c)
		}
		return nil
	})
	if err := w.walk(root, "", 0); err != nil {
		return nil, err.Error(), nil
	}
	for name, was := range s.files {
		if _, there := now.files[name]; !there {
			changes = append(changes, Change{Path: name, Before: s.before(was, true)})
		}
	}
	if !maps.EqualFunc(s.closed, now.closed, isUnchanged) {
		lost = "a directory that could not be read was changed"
		changes = slices.DeleteFunc(changes, func(c Change) bool { return c.After.Exists })
	}
	changes, lost = firstChanges(changes, lost)
	return changes, lost, now
}

// firstChanges returns the changes that are recorded, by path. Of too many, deletions go first and new files last, so
// that the content of each file that is gone is known before another file is recorded that may have it.
func firstChanges(changes []Change, lost string) ([]Change, string) {
	rank := func(c Change) int {
		switch {
		case !c.After.Exists:
			return 0
		case c.Before.Exists:
			return 1
		}
		return 2
	}
	byPath := func(a, b Change) int { return strings.Compare(a.Path, b.Path) }
	if len(changes) > ChangesMax {
		slices.SortFunc(changes, func(a, b Change) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), byPath(a, b)) })
		lost = fmt.Sprintf("%d files were changed, at most %d are recorded", len(changes), ChangesMax)
		changes = changes[:ChangesMax]
	}
	slices.SortFunc(changes, byPath)
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
	root, err := os.OpenRoot(workdir.DescriptorPath(dir))
	if err != nil {
		return func() ([]Change, string) { return nil, "the directory could not be read" }
	}
	self, err := dir.Stat()
	if err != nil {
		self = nil
	}
	s := Take(ctx, root, skip, recent.find(self))
	return func() ([]Change, string) {
		defer func() { _ = root.Close() }()
		changes, lost, now := s.Compare(root)
		recent.put(self, now)
		return changes, lost
	}
}

// recentMax bounds the directories whose newest Snapshot stays in memory, with KeptBytesMax of contents each: a
// command does not read again what the command before it has left.
const recentMax = 2

// recentFor is how long the snapshots stay after the last command.
const recentFor = 5 * time.Minute

// recent has the newest snapshots of this process: all agents that work in a directory share them.
var recent recentSnapshots

type recentSnapshots struct {
	mu     sync.Mutex
	list   []recentSnapshot // the newest first
	expiry *time.Timer
}

type recentSnapshot struct {
	dir fs.FileInfo
	*Snapshot
}

// find returns the newest Snapshot of a directory; nil: there is none.
func (r *recentSnapshots) find(dir fs.FileInfo) *Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.list {
		if dir != nil && os.SameFile(s.dir, dir) {
			return s.Snapshot
		}
	}
	return nil
}

func (r *recentSnapshots) put(dir fs.FileInfo, s *Snapshot) {
	if dir == nil || s == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = slices.DeleteFunc(r.list, func(o recentSnapshot) bool { return os.SameFile(o.dir, dir) })
	r.list = slices.Insert(r.list, 0, recentSnapshot{dir, s})
	r.list = r.list[:min(len(r.list), recentMax)]
	if r.expiry == nil {
		r.expiry = time.AfterFunc(recentFor, r.clear)
	}
	r.expiry.Reset(recentFor)
}

// clear gives the memory of the snapshots back.
func (r *recentSnapshots) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = nil
}
