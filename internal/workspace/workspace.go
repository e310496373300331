// Package workspace opens the directories in which runs work and holds them open for later
// agents. The tools of a directory continue to work in one that was removed and made again
// under its name, and never in another one that has taken its place.
package workspace

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/toolset/builtin"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/tool"
)

// heldMax is how many directories are held open for later agents. An agent holds its own
// for as long as it has its tools.
const heldMax = 64

// Directories are the directories that are held open, the most recently used last. One that
// is dropped may still be in use: only the garbage collector closes it.
type Directories struct {
	recording string   // a directory that tools never see
	trusted   []string // nor are these, see TrustedDirs

	mu    sync.Mutex // never held during a file operation: a mount may hang
	known []*heldDirectory
}

// New returns Directories for a node with a state directory. No tool sees the directory
// of the node's recording, if there is one.
func New(stateDir, recording string) *Directories {
	return &Directories{recording: recording, trusted: TrustedDirs(stateDir)}
}

// ErrMoved is the error of tools whose directory was replaced by another one.
var ErrMoved = errors.New("workspace: the directory of the run is another one now: a link or another directory has taken its place")

// FileRules are the patterns of an agent's permissions for files (see permission.FilePatterns): the tools do not see
// the hidden ones, follow no link to the guarded ones, and none out of the limits.
type FileRules struct {
	Hidden, Guarded []string
	Limits          []permission.FileLimit
}

func (r FileRules) key() string {
	key := strings.Join(r.Hidden, "\x00") + "\x01" + strings.Join(r.Guarded, "\x00")
	for _, l := range r.Limits {
		key += "\x01" + l.Key()
	}
	return key
}

// within returns a function that compares paths of a directory with the limits; nil: there are none.
func (r FileRules) within(dir string) func(tool, name string) bool {
	if len(r.Limits) == 0 {
		return nil
	}
	return func(tool, name string) bool { return permission.KeepsWithin(r.Limits, dir, tool, name) }
}

// matcher returns a function that compares paths of a directory with patterns; nil: there are none.
func matcher(dir string, patterns []string) func(name string) bool {
	if len(patterns) == 0 {
		return nil
	}
	return func(name string) bool { return permission.MatchesFile(patterns, dir, name) }
}

// heldDirectory is a directory and its key: its path, the writable part of it, and the rules for its files.
type heldDirectory struct {
	key string
	*builtin.Directory
}

// openDirectory returns a directory that is held open, or opens it: one that was removed and made
// again is a new one.
func (p *Directories) openDirectory(dir string, writable []string, rules FileRules) (*builtin.Directory, error) {
	key := dir + "\x00" + strings.Join(writable, "\x00") + "\x01" + rules.key()
	old := p.reuseHeld(key, nil)
	if old != nil && old.Current() {
		return old.Directory, nil
	}
	without, err := p.HiddenDirs(dir)
	if err != nil {
		return nil, err
	}
	if p.recording != "" {
		without = append(without, p.recording)
	}
	// The request named this directory, and it was under a root. A process that can write
	// to the parent directory must not redirect the tools.
	d, err := builtin.Open(dir, builtin.Config{Writable: writable, Without: without, Hidden: matcher(dir, rules.Hidden), Guarded: matcher(dir, rules.Guarded), Within: rules.within(dir), Exact: true})
	if errors.Is(err, workdir.ErrReplaced) {
		return nil, ErrMoved
	}
	if err != nil {
		return nil, err
	}
	first := p.reuseHeld(key, &heldDirectory{key, d}, old)
	if first.Directory != d { // another goroutine was first; both share its directory
		return first.Directory, d.Close()
	}
	return d, nil
}

// reuseHeld returns the directory held under a key, or else fresh, and holds it. It first drops
// the stale ones.
func (p *Directories) reuseHeld(key string, fresh *heldDirectory, stale ...*heldDirectory) *heldDirectory {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = slices.DeleteFunc(p.known, func(k *heldDirectory) bool { return slices.Contains(stale, k) })
	found := fresh
	if i := slices.IndexFunc(p.known, func(k *heldDirectory) bool { return k.key == key }); i >= 0 {
		found = p.known[i]
		p.known = slices.Delete(p.known, i, i+1)
	}
	if found == nil {
		return nil
	}
	p.known = append(p.known, found)
	if over := len(p.known) - heldMax; over > 0 {
		p.known = slices.Delete(p.known, 0, over)
	}
	return found
}

// Close closes all that are held.
func (p *Directories) Close() error {
	p.mu.Lock()
	known := p.known
	p.known = nil
	p.mu.Unlock()
	var errs []error
	for _, k := range known {
		errs = append(errs, k.Close())
	}
	return errors.Join(errs...)
}

// Tools returns the tools of a directory for one agent.
func (p *Directories) Tools(dir string, writable []string, rules FileRules) ([]tool.Tool, error) {
	if dir == "" {
		return nil, nil
	}
	d, err := p.openDirectory(dir, writable, rules)
	if err != nil {
		return nil, err
	}
	o := &directoryLease{directories: p, dir: dir, writable: writable, rules: rules, current: d}
	tools := make([]tool.Tool, len(d.Tools))
	for i, t := range d.Tools {
		tools[i] = leasedTool{t, o, i}
	}
	return tools, nil
}

// directoryLease is a directory that an agent works in. The directory may be removed and made again
// meanwhile.
type directoryLease struct {
	directories *Directories
	dir         string
	writable    []string
	rules       FileRules

	mu      sync.Mutex
	current *builtin.Directory
}

// currentDirectory returns the current directory.
func (o *directoryLease) currentDirectory() (*builtin.Directory, error) {
	o.mu.Lock()
	now := o.current
	o.mu.Unlock()
	if now.Current() {
		return now, nil
	}
	if !now.Removed() { // it was moved aside; the directory there now is not the one the agent worked in
		return nil, ErrMoved
	}
	now, err := o.directories.openDirectory(o.dir, o.writable, o.rules)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.current = now
	return now, nil
}

// leasedTool is one tool of a directory that may be removed and made again.
type leasedTool struct {
	tool.Tool // as it was found
	lease     *directoryLease
	index     int
}

// Limits returns the limits of the tool.
func (t leasedTool) Limits() (own tool.Limits) {
	if l, ok := t.Tool.(interface{ Limits() tool.Limits }); ok {
		own = l.Limits()
	}
	return own
}

// Call implements tool.Tool.
func (t leasedTool) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	d, err := t.lease.currentDirectory()
	if err != nil {
		return tool.Result{}, err
	}
	return d.Tools[t.index].Call(ctx, call)
}
