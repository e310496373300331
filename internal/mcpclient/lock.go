package mcpclient

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/model"
)

// LockName is the file that records what was allowed. It is in the state directory, because
// a repository must not be able to bring its own.
const LockName = "mcp.lock.json"

// Lock is the file that records what the operator has allowed: definitions of servers,
// and what each of their tools was at that time.
type Lock struct{ path string }

// OpenLock names the file in a state directory.
func OpenLock(dir string) Lock { return Lock{filepath.Join(dir, LockName)} }

type lockFile struct {
	V       int                    `json:"v"`
	Servers map[string]serverGrant `json:"servers"` // by source and name
}

// serverGrant is what was allowed of one server.
type serverGrant struct {
	Definition string `json:"definition"` // its hash
	Line       string `json:"line"`       // for people who read the file
	// Files are the files that the command named, with their SHA-256.
	Files map[string]string     `json:"files,omitempty"`
	Tools map[string]pinnedTool `json:"tools"` // by name; nil: nothing is pinned yet
	// Off are tools that differ from what was pinned: the hash that was seen last,
	// "" for a tool that is gone.
	Off map[string]string `json:"off,omitempty"`
}

// pinnedTool is a tool as it was allowed.
type pinnedTool struct {
	Hash string         `json:"hash"`
	Spec model.ToolSpec `json:"spec"`
}

func (s Server) lockKey() string { return s.Source + "#" + s.Name }

// State compares a tool or a server with what was allowed.
type State string

// States. A server is Fresh if it was never allowed, and Changed if its definition differs
// from the allowed one. A tool is Changed if it differs from when it was allowed, Fresh
// if it did not exist then, and Gone if it no longer exists.
const (
	Allowed State = "allowed"
	Fresh   State = "new"
	Changed State = "changed"
	Gone    State = "gone"
)

// Standing is a tool with its state.
type Standing struct {
	Spec  model.ToolSpec
	State State
}

// Verdict is the result of checking a listing.
type Verdict struct {
	Tools []Standing // sorted by name; only those that are Allowed are on
	First bool       // the tools were pinned just now
}

// On returns the tools that may be used.
func (v Verdict) On() []model.ToolSpec {
	var on []model.ToolSpec
	for _, t := range v.Tools {
		if t.State == Allowed {
			on = append(on, t.Spec)
		}
	}
	return on
}

// Off are the others.
func (v Verdict) Off() []Standing {
	return slices.DeleteFunc(slices.Clone(v.Tools), func(t Standing) bool { return t.State == Allowed })
}

// State is how a definition stands.
func (l Lock) State(s Server) (State, error) {
	f, err := l.readLock()
	if err != nil {
		return Fresh, err
	}
	return f.serverState(s), nil
}

func (f lockFile) serverState(s Server) State {
	g, known := f.Servers[s.lockKey()]
	switch {
	case !known:
		return Fresh
	case g.Definition != s.Hash(), !s.Own && firstDifference(g.Files, s.Files) != "":
		return Changed
	}
	return Allowed
}

// Admit compares what a server offers with what was allowed. The first time it pins
// every tool, and the verdict says so. Later it turns each tool that differs off, and
// records that.
func (l Lock) Admit(s Server, now Listing) (Verdict, error) {
	var v Verdict
	err := l.changeLock(func(f *lockFile) bool {
		g := f.Servers[s.lockKey()]
		before := g.cloneGrant()
		if v.First = g.Tools == nil; v.First {
			g.Tools = pinListing(now)
		}
		g.Definition, g.Line, g.Files = s.Hash(), s.Line(), s.Files
		v.Tools = g.compareListing(now)
		g.Off = map[string]string{}
		for _, t := range v.Off() {
			o, _ := now.findOffer(t.Spec.Name)
			g.Off[t.Spec.Name] = o.Hash
		}
		f.Servers[s.lockKey()] = g
		return before.Definition != g.Definition || firstDifference(before.Files, g.Files) != "" || v.First || !maps.Equal(before.Off, g.Off)
	})
	return v, err
}

// Allow pins what a server offers now, and replaces earlier pins.
func (l Lock) Allow(s Server, now Listing) error {
	return l.changeLock(func(f *lockFile) bool {
		f.Servers[s.lockKey()] = serverGrant{Definition: s.Hash(), Line: s.Line(), Files: s.Files, Tools: pinListing(now)}
		return true
	})
}

// Compare compares what a server offers with what was allowed, and changes
// nothing.
func (l Lock) Compare(s Server, now Listing) (Verdict, error) {
	f, err := l.readLock()
	if err != nil {
		return Verdict{}, err
	}
	g := f.Servers[s.lockKey()]
	return Verdict{Tools: g.compareListing(now), First: g.Tools == nil}, nil
}

// Pinned are the tools of a server as far as they are known without asking it.
func (l Lock) Pinned(s Server) (Verdict, error) {
	f, err := l.readLock()
	if err != nil {
		return Verdict{}, err
	}
	g := f.Servers[s.lockKey()]
	var v Verdict
	for _, name := range slices.Sorted(maps.Keys(g.Tools)) {
		state := Allowed
		if hash, off := g.Off[name]; off {
			state = Changed
			if hash == "" {
				state = Gone
			}
		}
		v.Tools = append(v.Tools, Standing{g.Tools[name].Spec, state})
	}
	return v, nil
}

func pinListing(l Listing) map[string]pinnedTool {
	out := map[string]pinnedTool{}
	for _, o := range l.Offers {
		out[o.Spec.Name] = pinnedTool{o.Hash, o.Spec}
	}
	return out
}

func (g serverGrant) cloneGrant() serverGrant {
	g.Off = maps.Clone(g.Off)
	return g
}

// compareListing is how each tool stands, of those that are there and that were.
func (g serverGrant) compareListing(now Listing) []Standing {
	var all []Standing
	for _, o := range now.Offers {
		p, known := g.Tools[o.Spec.Name]
		state := Allowed
		switch {
		case !known:
			state = Fresh
		case p.Hash != o.Hash:
			state = Changed
		}
		all = append(all, Standing{o.Spec, state})
	}
	for name, p := range g.Tools {
		if _, there := now.findOffer(name); !there {
			all = append(all, Standing{p.Spec, Gone})
		}
	}
	slices.SortFunc(all, func(a, b Standing) int { return cmp.Compare(a.Spec.Name, b.Spec.Name) })
	return all
}

// lockBytesMax is the largest file that readLock accepts: troupe never writes a larger one.
const lockBytesMax = 64 << 20

// readLock returns the current file; a missing file allows nothing.
func (l Lock) readLock() (lockFile, error) {
	empty := lockFile{V: 1, Servers: map[string]serverGrant{}}
	data, err := safefile.Read(l.path, lockBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	f := empty
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err == nil && f.V != 1 {
		err = fmt.Errorf("it is of version %d", f.V)
	}
	if err != nil {
		return empty, fmt.Errorf("%w: %s: %w; remove it, and allow servers again", ErrLock, l.path, err)
	}
	if f.Servers == nil {
		f.Servers = map[string]serverGrant{}
	}
	return f, nil
}

// changeLock writes what changed, alone among the processes of this machine.
func (l Lock) changeLock(edit func(*lockFile) bool) error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrLock, err)
	}
	free, err := safefile.LockExclusive(l.path + ".held")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLock, err)
	}
	defer free()
	f, err := l.readLock()
	if err != nil {
		return err
	}
	if !edit(&f) {
		return nil
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLock, err)
	}
	if err := safefile.Replace(l.path, append(data, '\n')); err != nil {
		return fmt.Errorf("%w: %w", ErrLock, err)
	}
	return nil
}
