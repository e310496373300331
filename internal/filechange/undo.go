package filechange

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
)

// ErrRefused says that nothing was taken back, because of one or more files. Refusals has the reasons.
var ErrRefused = errors.New("filechange: nothing was changed")

// Refusals are the files that cannot be taken back.
type Refusals []Refusal

// Refusal is a file that cannot be taken back, and why.
type Refusal struct {
	Path string
	Err  error
}

func (r Refusals) Error() string {
	var texts []string
	for _, f := range r {
		texts = append(texts, fmt.Sprintf("%q: %v", f.Path, f.Err))
	}
	return strings.Join(texts, "; ")
}

// Unwrap makes Refusals an ErrRefused.
func (r Refusals) Unwrap() error { return ErrRefused }

// restore is one file to be taken back.
type restore struct {
	Net
	content []byte // before
	now     State  // with its content, for the way back
	done    bool   // it is as it was
	temp    string
}

// Undo takes changes back below an opened directory, all of them or none. It refuses if a file is not as the run left
// it: a person, or a program, has changed it since. blob returns a content by its reference.
// A file that is as it was before the run counts as taken back. Undo returns the paths that it has changed.
func Undo(root *os.Root, nets []Net, blob func(ref string) ([]byte, error), dry bool) ([]string, error) {
	var list []*restore
	var refused Refusals
	for _, n := range nets {
		if n.SameAsAtFirst {
			continue
		}
		r := &restore{Net: n}
		if err := r.prepare(root, blob); err != nil {
			refused = append(refused, Refusal{n.Path, err})
		} else if !r.done {
			list = append(list, r)
		}
	}
	if refused != nil {
		return nil, refused
	}
	var paths []string
	for _, r := range list {
		paths = append(paths, r.Path)
	}
	if dry {
		return paths, nil
	}
	return paths, applyAll(root, list)
}

var errEdited = errors.New("it is not as the run left it: it was changed since")

// prepare checks a file, and gets the content that it shall have.
func (r *restore) prepare(root *os.Root, blob func(ref string) ([]byte, error)) error {
	if err := checkPath(r.Path); err != nil {
		return err
	}
	if r.Refused != "" {
		return errors.New(r.Refused)
	}
	now, err := current(root, r.Path)
	if err != nil {
		return err
	}
	r.now = now
	found := now.Record()
	sameMode := !found.Exists() || fs.FileMode(found.Mode).Perm() == fs.FileMode(r.Before.Mode).Perm()
	if sameContent(found, r.Before) && sameMode {
		r.done = true
		return nil
	}
	if !sameContent(found, r.After) {
		return errEdited
	}
	if now.Exists && r.Before.Exists() && now.Mode != fs.FileMode(r.After.Mode).Perm() {
		if r.Before.Mode != r.After.Mode {
			return errEdited
		}
		r.Before.Mode = found.Mode // the run did not change it, but a person has
	}
	if !now.Kept && now.Exists {
		return fmt.Errorf("it has %d bytes, and at most %d can be taken back", now.Size, StoredBytesMax)
	}
	if !r.Before.Exists() {
		return nil
	}
	r.content, err = contentOf(r.Before, blob)
	return err
}

// contentOf returns the content of a state, checked by its hash.
func contentOf(s spec.FileState, blob func(ref string) ([]byte, error)) ([]byte, error) {
	switch {
	case s.SHA256 == hash(nil):
		return nil, nil
	case s.SHA256 == "" || s.Ref == "":
		return nil, errors.New("what it contained before was not kept")
	case s.SHA256 != s.Ref:
		return nil, errors.New("what it contained before holds a secret, which is masked in the store")
	}
	data, err := blob(s.Ref)
	if err != nil {
		return nil, fmt.Errorf("what it contained before cannot be read: %w", err)
	}
	if hash(data) != s.SHA256 {
		return nil, errors.New("what the store has is not what it contained before")
	}
	return data, nil
}

// current returns a file as it is now, with its content.
func current(root *os.Root, name string) (State, error) {
	at, base, err := openParent(root, name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, err
	}
	defer func() { _ = at.Close() }()
	return readFile(at, base, StoredBytesMax)
}

// applyAll writes all contents next to their files, and then renames them into place. If that fails, the renamed
// files are restored.
func applyAll(root *os.Root, list []*restore) (err error) {
	defer func() {
		for _, r := range list {
			r.removeTemp(root)
		}
	}()
	for _, r := range list {
		if r.Before.Exists() {
			if r.temp, err = writeTemp(root, r.Path, r.content, fs.FileMode(r.Before.Mode)); err != nil {
				return fmt.Errorf("%q: %w", r.Path, err)
			}
		}
	}
	for i, r := range list {
		if err := r.putInPlace(root); err != nil {
			return errors.Join(fmt.Errorf("%q: %w", r.Path, err), takeBack(root, list[:i]))
		}
	}
	return nil
}

// writeTemp writes a content next to a file, and returns its path.
func writeTemp(root *os.Root, name string, content []byte, mode fs.FileMode) (string, error) {
	at, _, err := openParent(root, name, true)
	if err != nil {
		return "", err
	}
	defer func() { _ = at.Close() }()
	temp := ".troupe-undo-" + rand.Text() + ".tmp"
	f, err := at.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	for _, step := range []func() error{func() error { return f.Chmod(mode.Perm()) }, f.Sync} {
		if err == nil {
			err = step()
		}
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = at.Remove(temp)
		return "", err
	}
	return path.Join(path.Dir(name), temp), nil
}

func (r *restore) removeTemp(root *os.Root) {
	if r.temp == "" {
		return
	}
	if at, base, err := openParent(root, r.temp, false); err == nil {
		_ = at.Remove(base) // in place, or of no use
		_ = at.Close()
	}
}

// putInPlace replaces or removes a file if it is still as it was.
func (r *restore) putInPlace(root *os.Root) error {
	at, base, err := openParent(root, r.Path, false)
	if err != nil {
		return err
	}
	defer func() { _ = at.Close() }()
	now, err := readFile(at, base, StoredBytesMax)
	if err != nil {
		return err
	}
	if !sameContent(now.Record(), r.now.Record()) {
		return errEdited
	}
	if r.temp == "" {
		return at.Remove(base)
	}
	return at.Rename(path.Base(r.temp), base)
}

// takeBack gives files the content that they had before they were taken back.
func takeBack(root *os.Root, list []*restore) error {
	var failed []error
	for _, r := range slices.Backward(list) {
		undone := &restore{Net: Net{Path: r.Path}, now: Content(r.content, fs.FileMode(r.Before.Mode))}
		if !r.Before.Exists() {
			undone.now = State{}
		}
		err := error(nil)
		if r.now.Exists {
			undone.temp, err = writeTemp(root, r.Path, r.now.Data, r.now.Mode)
		}
		if err == nil {
			err = undone.putInPlace(root)
		}
		undone.removeTemp(root)
		if err != nil {
			failed = append(failed, fmt.Errorf("%q was taken back, and the way back failed: %w", r.Path, err))
		}
	}
	return errors.Join(failed...)
}
