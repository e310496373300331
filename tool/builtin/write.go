package builtin

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// writeBytesMax bounds one written file.
const writeBytesMax = 4 << 20

const (
	writtenFileMode = 0o644
	writtenDirMode  = 0o755
)

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// writeFile makes write_file. It is idempotent: the content goes to a temporary
// file beside the target, is synced, takes the target's name, and the directory
// is synced; so the target is always whole, the old or the new.
//
// Only paths of Config.Writable are written. A file that is there is replaced
// only when it carries the mark of a generated file (see Generated), when
// Config.Owned says so, when this tool wrote it since it was made, or when it
// already has this content; so nobody's report.md is lost.
func (p *place) writeFile(w *writer) (tool.Tool, error) {
	return tool.New("write_file", "Write a text file as a whole.", model.Idempotent,
		func(ctx context.Context, in writeArgs, c tool.Call) (string, error) { return w.write(ctx, in, c.Key) })
}

// writer remembers what it wrote; write_file and edit_file of a directory share
// it. Calls of one writer come one at a time.
type writer struct {
	p    *place
	mu   sync.Mutex
	mine map[string]bool
}

func (w *writer) write(ctx context.Context, in writeArgs, key string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name, err := w.p.local(in.Path)
	if err != nil {
		return "", err
	}
	if err := w.p.mayWrite(name); err != nil {
		return "", err
	}
	if len(in.Content) > writeBytesMax {
		return "", fmt.Errorf("the content is %d bytes, at most %d are allowed", len(in.Content), writeBytesMax)
	}
	same, err := w.mayReplace(name, []byte(in.Content))
	if err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if !same {
		if err := w.p.replace(name, []byte(in.Content), key, 0); err != nil {
			return "", plainly(name, err)
		}
	}
	w.mine[name] = true
	return fmt.Sprintf("wrote %s, %d bytes", shown(name), len(in.Content)), nil
}

func (p *place) writable(name string) bool {
	for _, pattern := range p.cfg.Writable {
		if ok, err := doublestar.Match(pattern, name); ok && err == nil {
			return true
		}
	}
	return false
}

// mayReplace decides about what is already there; same says that it is what is
// to be written.
func (w *writer) mayReplace(name string, content []byte) (same bool, err error) {
	info, err := w.p.root.Lstat(filepath.FromSlash(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, plainly(name, err)
	}
	if !info.Mode().IsRegular() {
		return false, plainly(name, ErrSpecial)
	}
	if w.mine[name] || w.p.cfg.Owned != nil && w.p.cfg.Owned(name) {
		return false, nil
	}
	old := []byte{}
	if info.Size() <= writeBytesMax {
		if old, err = w.p.readSame(name, info); err != nil {
			return false, err
		}
	}
	if bytes.Equal(old, content) {
		return true, nil
	}
	if Generated(old) {
		return false, nil
	}
	return false, fmt.Errorf("%s exists and was not made by troupe; it was not overwritten", shown(name))
}

// readSame reads the small regular file that Lstat described. It waits for no named pipe that took the file's
// place, and follows no link that did.
func (p *place) readSame(name string, seen fs.FileInfo) ([]byte, error) {
	f, now, err := p.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if !os.SameFile(seen, now) {
		return nil, plainly(name, errReplaced)
	}
	data, err := io.ReadAll(io.LimitReader(f, writeBytesMax+1))
	if err == nil && len(data) > writeBytesMax {
		err = errReplaced
	}
	if err != nil {
		return nil, plainly(name, err)
	}
	return data, nil
}

// replace writes a file so that a crash leaves the old or the new one. Nobody can
// guess the name of the temporary file, and what has it already is not opened.
// Its beginning follows from the key, so that another attempt of the same call
// removes what the first left behind. mode is that of the file; 0: of a new one.
func (p *place) replace(name string, content []byte, key string, mode fs.FileMode) error {
	dir := path.Dir(name)
	if err := p.root.MkdirAll(filepath.FromSlash(dir), writtenDirMode); err != nil {
		return err
	}
	prefix := tempPrefix(name, key)
	p.removeLeft(dir, prefix)
	temp := filepath.FromSlash(path.Join(dir, prefix+rand.Text()+tempSuffix))
	f, err := p.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, writtenFileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && mode != 0 {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = p.root.Rename(temp, filepath.FromSlash(name))
	}
	if err != nil {
		_ = p.root.Remove(temp)
		return err
	}
	return p.syncDir(dir)
}

const tempSuffix = ".tmp"

func tempPrefix(name, key string) string {
	sum := sha256.Sum256([]byte(name + "\x00" + key))
	return fmt.Sprintf(".troupe-%x-", sum[:8])
}

// removeLeft removes the temporary files of earlier attempts of a call. What stays hinders nobody.
func (p *place) removeLeft(dir, prefix string) {
	entries, err := p.entries(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), tempSuffix) && e.Type().IsRegular() {
			_ = p.root.Remove(filepath.FromSlash(path.Join(dir, e.Name())))
		}
	}
}

// syncDir makes a rename last. Systems that cannot sync a directory need not.
func (p *place) syncDir(dir string) error {
	d, err := p.root.Open(filepath.FromSlash(dir))
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
