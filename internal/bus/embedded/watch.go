package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/safefile"
)

const (
	contextName = "troupe"
	// contextsMax is how many state directories of one user have a context of their own name
	// at once: troupe, troupe-2, and so on.
	contextsMax = 9
	// contextMark begins the description of every context that troupe has written; troupe
	// replaces or removes only those. The state directory follows the mark.
	contextMark = "written by troupe at each start, do not edit: events of "

	contextLock  = ".troupe.lock"
	contextWait  = time.Second
	contextRetry = 10 * time.Millisecond
	contextMax   = 64 << 10 // bytes that are read of one
)

// errNoContext says that no context could be written in the user's configuration.
var errNoContext = errors.New("embedded: no nats CLI context could be written")

// watchContext is a nats CLI context by which observers read events. Its password ends with
// the server. A client that uses it sends only that password and its subscriptions: a server
// that listens on the port later learns nothing of value.
type watchContext struct {
	command string // nats --context NAME, with any variables it needs in front
	path    string
	content string
}

// contextFile is the part of a context that the nats CLI reads.
type contextFile struct {
	Description string `json:"description"`
	URL         string `json:"url"`
	User        string `json:"user"`
	Password    string `json:"password"`
}

// writeContext writes the context of observers into the user's configuration, or otherwise
// into the state directory, where the nats CLI finds it by one more environment variable.
func (e *Server) writeContext() watchContext {
	user, password := e.Credential(bus.RoleObserver)
	file := contextFile{Description: contextMark + e.cfg.StateDir, URL: e.URL(), User: user, Password: password}
	if abs, err := filepath.Abs(e.cfg.StateDir); err == nil {
		file.Description = contextMark + abs
	}
	if e.cfg.ConfigHome != "" {
		w, err := file.writeIn(e.cfg.ConfigHome)
		if err == nil {
			return w
		}
		e.cfg.Logger.Warn("the nats CLI context of observers is in the state directory instead", "error", err)
	}
	w, err := file.writeIn(e.cfg.StateDir)
	if err != nil {
		e.cfg.Logger.Warn("observers have no nats CLI context", "error", err)
		return watchContext{}
	}
	w.command = localserver.ConfigVariable + "=" + shellQuote(e.cfg.StateDir) + " " + w.command
	return w
}

// shellQuote quotes a word for a shell's command line.
func shellQuote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// writeIn writes the context under the first free name: one without a context, or with the
// context of a server that has ended.
func (f contextFile) writeIn(home string) (w watchContext, err error) {
	dir := filepath.Join(home, "nats", "context")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return w, fmt.Errorf("%w: %w", errNoContext, err)
	}
	lock, err := waitLock(filepath.Join(dir, contextLock))
	if err != nil {
		return w, fmt.Errorf("%w: %w", errNoContext, err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return w, fmt.Errorf("%w: %w", errNoContext, err)
	}
	for n := range contextsMax {
		name := contextName
		if n > 0 {
			name = fmt.Sprintf("%s-%d", contextName, n+1)
		}
		path := filepath.Join(dir, name+".json")
		if !f.mayReplace(path) {
			continue
		}
		if err := safefile.Replace(path, data); err != nil {
			return w, fmt.Errorf("%w: %w", errNoContext, err)
		}
		return watchContext{command: "nats --context " + name, path: path, content: string(data)}, nil
	}
	return w, fmt.Errorf("%w: %s has %d of other state directories", errNoContext, dir, contextsMax)
}

// mayReplace reports whether a context is missing, belongs to the same state directory, or
// belongs to one that no process owns any more.
func (f contextFile) mayReplace(path string) bool {
	there, err := readContext(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	dir, ours := strings.CutPrefix(there.Description, contextMark)
	if err != nil || !ours {
		return false
	}
	if there.Description == f.Description {
		return true
	}
	owned, err := statedir.IsOwned(dir)
	return err == nil && !owned
}

func readContext(path string) (f contextFile, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return f, err
	}
	if !info.Mode().IsRegular() || info.Size() > contextMax {
		return f, statedir.ErrIrregular
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	return f, err
}

// remove removes the context if it is still the one that was written.
func (w watchContext) remove() error {
	if w.path == "" {
		return nil
	}
	data, err := os.ReadFile(w.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(data) != w.content {
		return nil
	}
	if err == nil {
		err = os.Remove(w.path)
	}
	if err != nil {
		return fmt.Errorf("embedded: remove the context of observers: %w", err)
	}
	return nil
}

// waitLock takes a lock that other processes hold only briefly.
func waitLock(path string) (*statedir.Lock, error) {
	deadline := time.Now().Add(contextWait)
	for {
		lock, err := statedir.TakeLock(path)
		if !errors.Is(err, statedir.ErrOwned) || time.Now().After(deadline) {
			return lock, err
		}
		<-time.After(contextRetry)
	}
}
