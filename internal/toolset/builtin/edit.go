package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/filechange"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// Errors of writing that say what else to do.
var (
	errNoMatch   = errors.New("old is not in the file; it must be the exact text, with its indentation, and without the line numbers of read_file")
	errSame      = errors.New("old and new are the same; nothing to do")
	errNoOld     = errors.New("old is empty; give the text to replace, or use write_file for a new file")
	errProtected = errors.New("belongs to git itself and is never written")
	errLinked    = errors.New("is a link; name the file it leads to")
	errReplaced  = errors.New("another file took its place, or it grew, while it was read; look at it again")
)

// matchesShown bounds the lines that an ambiguous edit is answered with.
const matchesShown = 10

type editArgs struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// editFile makes edit_file: it replaces the only occurrence of a text. The file keeps
// its mode and its line ends, and is replaced as write_file does it.
//
// Its class is effect, not idempotent: if the new text contains the old one, as it does
// whenever something is added after an anchor, the same edit matches again after it was
// made, so a call of unknown outcome must not run again.
func (w *fileWriter) editFile() (tool.Tool, error) {
	return tool.New("edit_file", "Replace the one place in a text file where old stands by new.", model.Effect,
		func(ctx context.Context, in editArgs, c tool.Call) (string, error) {
			return w.runEdit(ctx, in, c)
		})
}

func (w *fileWriter) runEdit(ctx context.Context, in editArgs, c tool.Call) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name, err := w.ws.resolvePath("edit_file", in.Path)
	if err != nil {
		return "", err
	}
	if err := checkEditArgs(in.Old, in.New); err != nil {
		return "", err
	}
	if err := w.checkWritable(name, c.MayWriteAny); err != nil {
		return "", err
	}
	text, mode, err := w.readText(name)
	if err != nil {
		return "", err
	}
	if !c.MayWriteAny && !w.written[name] && !isGenerated(text) && !slices.Contains(w.writable, anywhere) && (w.owned == nil || !w.owned(name)) {
		return "", fmt.Errorf("%s was not made by troupe; editing it needs permission", printableName(name))
	}
	edited, line, err := substituteOnce(text, in.Old, in.New)
	if err != nil {
		return "", pathError(name, err)
	}
	if len(edited) > writeBytesMax {
		return "", fmt.Errorf("the file would have %d bytes, at most %d are allowed", len(edited), writeBytesMax)
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := w.replaceFile(name, edited, c.Key, mode); err != nil {
		return "", pathError(name, err)
	}
	c.ReportChanges(changeOf(name, filechange.Content(text, mode), filechange.Content(edited, mode)))
	return fmt.Sprintf("edited %s at line %d, %d bytes", printableName(name), line, len(edited)), nil
}

func checkEditArgs(old, new string) error {
	switch {
	case old == "":
		return errNoOld
	case old == new:
		return errSame
	}
	return nil
}

// CheckEdit returns why edit_file refuses to replace old by new in a text, regardless of approvals.
func CheckEdit(text []byte, old, new string) error {
	if err := checkEditArgs(old, new); err != nil {
		return err
	}
	_, _, err := substituteOnce(text, old, new)
	return err
}

// readText reads a text file that is small enough to be edited.
func (w *fileWriter) readText(name string) (text []byte, mode fs.FileMode, err error) {
	info, err := w.ws.root.Lstat(filepath.FromSlash(name))
	if err == nil && info.IsDir() {
		err = ErrDirectory
	} else if err == nil && !info.Mode().IsRegular() {
		err = ErrSpecial
	} else if err == nil && info.Size() > writeBytesMax {
		err = fmt.Errorf("it has %d bytes, at most %d can be edited", info.Size(), writeBytesMax)
	}
	if err == nil {
		text, err = w.readSame(name, info)
		if err != nil {
			return nil, 0, err
		}
	}
	if err == nil && isBinary(text) {
		err = fmt.Errorf("binary file: %d bytes", len(text))
	}
	if err != nil {
		return nil, 0, pathError(name, err)
	}
	return text, info.Mode().Perm(), nil
}

// substituteOnce replaces the only occurrence of old. In a file whose lines all end in CR LF,
// the line ends of old and new are taken as CR LF too.
func substituteOnce(text []byte, old, new string) (edited []byte, line int, err error) {
	if n := bytes.Count(text, []byte("\n")); n > 0 && n == bytes.Count(text, []byte("\r\n")) {
		old, new = withCarriage(old), withCarriage(new)
	}
	var at []int
	for from := 0; ; { // also occurrences that overlap, or one of them would be picked unseen
		i := bytes.Index(text[from:], []byte(old))
		if i < 0 {
			break
		}
		at = append(at, from+i)
		from += i + 1
	}
	if len(at) == 0 {
		return nil, 0, errNoMatch
	}
	if len(at) > 1 {
		return nil, 0, fmt.Errorf("old stands there %d times, at lines %s; add the text around the one you mean", len(at), linesOf(text, at))
	}
	i := at[0]
	return slices.Concat(text[:i], []byte(new), text[i+len(old):]), lineAt(text, i), nil
}

func withCarriage(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

func lineAt(text []byte, i int) int { return 1 + bytes.Count(text[:i], []byte("\n")) }

func linesOf(text []byte, at []int) string {
	var b strings.Builder
	for n, i := range at {
		if n == matchesShown {
			b.WriteString(", …")
			break
		}
		if n > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, lineAt(text, i))
	}
	return b.String()
}

// anywhere is the pattern that permits the whole directory.
const anywhere = "**"

// gitDir is the directory from which a user's own git takes commands.
const gitDir = ".git"

// checkWritable checks whether a file may be written. Files of git are never written,
// whatever is allowed: hooks and settings run programs as the user who later works there.
// A directory that is a link is not followed, because a permission is about the path that
// was named.
func (w *fileWriter) checkWritable(name string, granted bool) error {
	if !granted && !w.isWritable(name) {
		return fmt.Errorf("writing %s needs permission", printableName(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		if filechange.IsGitName(part) {
			return pathError(name, errProtected)
		}
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		info, err := w.ws.root.Lstat(filepath.FromSlash(dir))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return pathError(name, err)
		case info.Mode()&fs.ModeSymlink != 0:
			return pathError(dir, errLinked)
		case w.holdsGit(dir):
			return pathError(name, errProtected)
		}
	}
	return nil
}

// holdsGit reports whether a directory is a git directory of any name: that of a submodule or linked work tree, or a
// bare repository.
func (w *fileWriter) holdsGit(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := w.ws.root.Lstat(filepath.FromSlash(path.Join(dir, name))); err != nil {
			return false
		}
	}
	return true
}
