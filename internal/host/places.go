package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
	"github.com/troupe-run/troupe/tool/builtin"
)

// placesMax is how many directories are held open for those who come next. An
// agent holds its own for as long as it has its tools.
const placesMax = 64

// places are the directories that are held open, the newest in use last. What falls
// out may still be in use: nobody closes it but the garbage collector.
type places struct {
	tape    string   // a directory that is no part of any
	trusted []string // nor are these, see trustedDirs

	mu    sync.Mutex // never held while a file is touched: a mount may hang
	known []*place
	specs map[bool][]model.ToolSpec // without a directory, and with one
}

var errMoved = errors.New("host: the directory of the run is another one now: a link or another directory has taken its place")

type place struct {
	key string
	*builtin.Directory
}

// open finds a directory that is held open, or opens it: one that was removed and
// made again is another one.
func (p *places) open(dir string, writable []string) (*builtin.Directory, error) {
	key := dir + "\x00" + strings.Join(writable, "\x00")
	old := p.use(key, nil)
	if old != nil && old.Current() {
		return old.Directory, nil
	}
	without, err := p.hidden(dir)
	if err != nil {
		return nil, err
	}
	if p.tape != "" {
		without = append(without, p.tape)
	}
	// Who asked for the run named this directory, and it was under a root. Whoever may
	// write beside it must not lead the tools elsewhere.
	d, err := builtin.Open(dir, builtin.Config{Writable: writable, Without: without, Exact: true})
	if errors.Is(err, workdir.ErrReplaced) {
		return nil, errMoved
	}
	if err != nil {
		return nil, err
	}
	first := p.use(key, &place{key, d}, old)
	if first.Directory != d { // somebody was quicker, and they share what is written
		return first.Directory, d.Close()
	}
	return d, nil
}

// use finds what is held under a key. What is stale is not; then it is what is given.
func (p *places) use(key string, fresh *place, stale ...*place) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = slices.DeleteFunc(p.known, func(k *place) bool { return slices.Contains(stale, k) })
	found := fresh
	if i := slices.IndexFunc(p.known, func(k *place) bool { return k.key == key }); i >= 0 {
		found = p.known[i]
		p.known = slices.Delete(p.known, i, i+1)
	}
	if found == nil {
		return nil
	}
	p.known = append(p.known, found)
	if over := len(p.known) - placesMax; over > 0 {
		p.known = slices.Delete(p.known, 0, over)
	}
	return found
}

// close closes all that are held.
func (p *places) close() error {
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

// tools are those of a directory for one agent.
func (p *places) tools(dir string, writable []string) ([]tool.Tool, error) {
	if dir == "" {
		return nil, nil
	}
	d, err := p.open(dir, writable)
	if err != nil {
		return nil, err
	}
	o := &occupied{places: p, dir: dir, writable: writable, now: d}
	tools := make([]tool.Tool, len(d.Tools))
	for i, t := range d.Tools {
		tools[i] = placed{t, o, i}
	}
	return tools, nil
}

// occupied is a directory that an agent works in. It may be made anew meanwhile.
type occupied struct {
	places   *places
	dir      string
	writable []string

	mu  sync.Mutex
	now *builtin.Directory
}

// at is the directory as it is now.
func (o *occupied) at() (*builtin.Directory, error) {
	o.mu.Lock()
	now := o.now
	o.mu.Unlock()
	if now.Current() {
		return now, nil
	}
	if !now.Removed() { // it was moved aside, and what is there now is not what the agent worked in
		return nil, errMoved
	}
	now, err := o.places.open(o.dir, o.writable)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = now
	return now, nil
}

// placed is one tool of a directory that may be made anew.
type placed struct {
	tool.Tool // as it was found
	of        *occupied
	n         int
}

// Limits are those of the tool.
func (t placed) Limits() (own tool.Limits) {
	if l, ok := t.Tool.(interface{ Limits() tool.Limits }); ok {
		own = l.Limits()
	}
	return own
}

// Call implements tool.Tool.
func (t placed) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	d, err := t.of.at()
	if err != nil {
		return tool.Result{}, err
	}
	return d.Tools[t.n].Call(ctx, call)
}
