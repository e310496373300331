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

	"github.com/troupe-run/troupe/internal/filechange"
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

// writeFile makes write_file. The tool is idempotent: it writes the content to a temporary
// file next to the target, syncs that file, renames it to the target, and syncs the
// directory; so the target is always complete, the old or the new file.
//
// The tool writes only paths of Config.Writable. It replaces an existing file only if the
// file has the mark of a generated file (see isGenerated), if Config.Owned allows it, if this
// writer wrote it, or if it already has this content; so no user's report.md is lost. A call that is
// granted (tool.Call.MayWriteAny) may write any file of the directory, except those of git.
func (w *fileWriter) writeFile() (tool.Tool, error) {
	return tool.New("write_file", "Write a text file as a whole.", model.Idempotent,
		func(ctx context.Context, in writeArgs, c tool.Call) (string, error) {
			return w.runWrite(ctx, in, c)
		})
}

// fileWriter writes files and remembers what it wrote; write_file and edit_file of a
// directory share it. Its calls run one at a time.
type fileWriter struct {
	ws       *toolWorkspace
	writable []string // Config.Writable
	owned    func(path string) bool
	mu       sync.Mutex
	written  map[string]bool
}

func (w *fileWriter) runWrite(ctx context.Context, in writeArgs, c tool.Call) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name, err := w.ws.resolvePath("write_file", in.Path)
	if err != nil {
		return "", err
	}
	if err := w.checkWritable(name, c.MayWriteAny); err != nil {
		return "", err
	}
	if len(in.Content) > writeBytesMax {
		return "", fmt.Errorf("the content is %d bytes, at most %d are allowed", len(in.Content), writeBytesMax)
	}
	same, err := w.mayReplace(name, []byte(in.Content), c.MayWriteAny)
	if err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if !same {
		before := w.stateOf(name)
		if err := w.replaceFile(name, []byte(in.Content), c.Key, 0); err != nil {
			return "", pathError(name, err)
		}
		c.ReportChanges(changeOf(name, before, filechange.Content([]byte(in.Content), w.modeOf(name))))
	}
	w.written[name] = true
	return fmt.Sprintf("wrote %s, %d bytes", printableName(name), len(in.Content)), nil
}

// stateOf returns a file before it is written. A file that is too large to be kept has no known content.
func (w *fileWriter) stateOf(name string) filechange.State {
	info, err := w.ws.root.Lstat(filepath.FromSlash(name))
	if err != nil || !info.Mode().IsRegular() {
		return filechange.State{}
	}
	if data, err := w.readSame(name, info); err == nil {
		return filechange.Content(data, info.Mode())
	}
	return filechange.State{Mode: info.Mode().Perm(), Exists: true, Size: info.Size()}
}

// modeOf returns the mode of a file that was written: a new one has fewer bits than
// writtenFileMode if the process says so.
func (w *fileWriter) modeOf(name string) fs.FileMode {
	info, err := w.ws.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return writtenFileMode
	}
	return info.Mode().Perm()
}

// changeOf is what a write has changed, for the record of the call.
func changeOf(name string, before, after filechange.State) ([]filechange.Change, string) {
	return []filechange.Change{{Path: name, Before: before, After: after}}, ""
}

func (w *fileWriter) isWritable(name string) bool {
	for _, pattern := range w.writable {
		if ok, err := doublestar.Match(pattern, name); ok && err == nil {
			return true
		}
	}
	return false
}

// mayReplace decides whether an existing file may be replaced; same reports that it already
// has the content.
func (w *fileWriter) mayReplace(name string, content []byte, granted bool) (same bool, err error) {
	info, err := w.ws.root.Lstat(filepath.FromSlash(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, pathError(name, err)
	}
	if !info.Mode().IsRegular() {
		return false, pathError(name, ErrSpecial)
	}
	if granted || w.written[name] || w.owned != nil && w.owned(name) {
		return false, nil
	}
	old := []byte{}
	if info.Size() <= writeBytesMax {
		if old, err = w.readSame(name, info); err != nil {
			return false, err
		}
	}
	if bytes.Equal(old, content) {
		return true, nil
	}
	if isGenerated(old) {
		return false, nil
	}
	return false, fmt.Errorf("%s exists and was not made by troupe; it was not overwritten", printableName(name))
}

// readSame reads the small regular file that Lstat described. It does not block on a named pipe that replaced the
// file, and follows no link that did.
func (w *fileWriter) readSame(name string, seen fs.FileInfo) ([]byte, error) {
	f, now, err := w.ws.openFile(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if !os.SameFile(seen, now) {
		return nil, pathError(name, errReplaced)
	}
	data, err := io.ReadAll(io.LimitReader(f, writeBytesMax+1))
	if err == nil && len(data) > writeBytesMax {
		err = errReplaced
	}
	if err != nil {
		return nil, pathError(name, err)
	}
	return data, nil
}

// replaceFile writes a file so that a crash leaves the old or the new one. The name of
// the temporary file cannot be guessed, and an existing file of that name is not opened.
// The name begins with a hash of the key, so that another attempt of the same call
// removes what the first left behind. mode is the mode of the file; 0 means a new file.
func (w *fileWriter) replaceFile(name string, content []byte, key string, mode fs.FileMode) error {
	dir := path.Dir(name)
	if err := w.ws.root.MkdirAll(filepath.FromSlash(dir), writtenDirMode); err != nil {
		return err
	}
	prefix := tempPrefix(name, key)
	w.removeTemp(dir, prefix)
	temp := filepath.FromSlash(path.Join(dir, prefix+rand.Text()+tempSuffix))
	f, err := w.ws.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, writtenFileMode)
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
		err = w.ws.root.Rename(temp, filepath.FromSlash(name))
	}
	if err != nil {
		_ = w.ws.root.Remove(temp)
		return err
	}
	return w.syncDir(dir)
}

const tempSuffix = ".tmp"

func tempPrefix(name, key string) string {
	sum := sha256.Sum256([]byte(name + "\x00" + key))
	return fmt.Sprintf(".troupe-%x-", sum[:8])
}

// removeTemp removes the temporary files of earlier attempts of a call. A file that stays does no harm.
func (w *fileWriter) removeTemp(dir, prefix string) {
	entries, err := w.ws.readEntries(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), tempSuffix) && e.Type().IsRegular() {
			_ = w.ws.root.Remove(filepath.FromSlash(path.Join(dir, e.Name())))
		}
	}
}

// syncDir makes a rename durable. Systems that cannot sync a directory need not.
func (w *fileWriter) syncDir(dir string) error {
	d, err := w.ws.root.Open(filepath.FromSlash(dir))
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
