// Package builtin holds the tools that come with troupe: those that read one
// directory and its git history, write_file and edit_file. All are confined to the
// directory by os.Root: no "..", symbolic link or absolute path leads out of it.
//
// The output formats are a contract, stated at each tool: other programs parse
// them. Lines that begin with "[" at the end of a result are about the result.
// What looks like a secret is shown as mask.Replacement, in place; grep matches
// what is shown, so that a pattern cannot be used to guess a secret.
package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
	"github.com/troupe-run/troupe/tool/mask"
)

// Errors that a model reads when it names a path that is not there for it.
var (
	ErrOutside   = errors.New("outside of the directory")
	ErrDirectory = errors.New("is a directory; use list_dir")
	ErrSpecial   = errors.New("is not a regular file")
)

// Config of the tools of one directory.
type Config struct {
	// Writable are the paths that write_file and edit_file may write, as doublestar
	// patterns relative to the directory: "report.md", "docs/**". Default: none.
	// edit_file changes files that troupe did not make only where it is "**".
	Writable []string
	// Owned says that a file may be overwritten although it does not carry the
	// mark of a generated file (see Generated). Default: no such file.
	Owned func(path string) bool
	// Without are directories below that are not there for these tools: a recording of
	// the run that uses them, what the node trusts. Default: none.
	Without []string
	// Exact says that no link on the way to the directory is followed: it was resolved before, and whoever puts a link
	// there must not lead the tools elsewhere. Default: links are followed, once.
	Exact bool
	// Mask hides secrets. Default: by shape, and the values of the .env files in
	// the top directory.
	Mask *mask.Masker
}

// place is the directory that the tools of one Dir share.
type place struct {
	root *os.Root
	dir  string   // absolute, symbolic links resolved
	left []string // out: relative, with slashes
	cfg  Config
}

// Directory is a directory that is held open, and its tools: list_dir, read_file,
// grep, glob, git_log, git_show, git_blame, git_numstat, write_file and edit_file.
type Directory struct {
	Tools []tool.Tool
	named string
	root  *os.Root
}

// Current says that the directory is still what its name leads to. One that was
// removed and made again is not. One that is only gone is: there is no other.
func (d *Directory) Current() bool {
	now, err := os.Stat(d.named)
	if err != nil {
		return true
	}
	then, err := d.root.Stat(".")
	return err == nil && os.SameFile(now, then)
}

// Removed says that the directory has no name any more: one that has its name was made anew. One that was moved
// aside is not.
func (d *Directory) Removed() bool {
	info, err := d.root.Stat(".")
	return err == nil && workdir.Removed(info)
}

// Close ends the calls that come after it. Without it the directory is closed
// once none of its tools is in use.
func (d *Directory) Close() error { return d.root.Close() }

// Dir makes the tools of a directory, see Directory. It stays open as long as one
// of the tools is in use.
func Dir(root string, cfg Config) ([]tool.Tool, error) {
	d, err := Open(root, cfg)
	if err != nil {
		return nil, err
	}
	return d.Tools, nil
}

// Open opens a directory and makes its tools.
func Open(root string, cfg Config) (*Directory, error) {
	named, err := filepath.Abs(root)
	abs := named
	if err == nil && !cfg.Exact {
		abs, err = filepath.EvalSymlinks(named)
	}
	if err != nil {
		return nil, fmt.Errorf("builtin: directory: %w", err)
	}
	r, _, err := workdir.Root(abs)
	if err != nil {
		return nil, fmt.Errorf("builtin: directory: %w", err)
	}
	p := &place{root: r, dir: abs, cfg: cfg}
	for _, name := range cfg.Without {
		if rel := below(abs, name); rel != "" {
			p.left = append(p.left, rel)
		}
	}
	if p.cfg.Mask == nil {
		p.cfg.Mask = mask.New(mask.Config{Values: p.dotenv()})
	}
	w := &writer{p: p, mine: map[string]bool{}}
	write := func() (tool.Tool, error) { return p.writeFile(w) }
	edit := func() (tool.Tool, error) { return p.editFile(w) }
	d := &Directory{named: named, root: r}
	for _, make := range []func() (tool.Tool, error){p.listDir, p.readFile, p.grep, p.glob, p.gitLog, p.gitShow, p.gitBlame, p.gitNumstat, write, edit} {
		t, err := make()
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		d.Tools = append(d.Tools, t)
	}
	return d, nil
}

// below is a directory relative to one that it lies below; "" if it does not.
func below(dir, name string) string {
	if name == "" {
		return ""
	}
	abs, err := filepath.Abs(name)
	if real, bad := filepath.EvalSymlinks(abs); bad == nil { // what is not there yet may come
		abs = real
	}
	rel, bad := filepath.Rel(dir, abs)
	if err != nil || bad != nil || rel == "." || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}

// without reports whether a path of the directory is left out.
func (p *place) without(name string) bool {
	return slices.ContainsFunc(p.left, func(left string) bool { return name == left || strings.HasPrefix(name, left+"/") })
}

// leftBehind is without for a path that may lead there by links, or by another spelling that the file system takes.
func (p *place) leftBehind(name string) bool {
	if len(p.left) == 0 {
		return false
	}
	if real, err := filepath.EvalSymlinks(filepath.Join(p.dir, filepath.FromSlash(name))); err == nil {
		if rel, err := filepath.Rel(p.dir, real); err == nil && p.without(filepath.ToSlash(rel)) {
			return true
		}
	}
	for at := name; at != "."; at = path.Dir(at) {
		info, err := p.root.Stat(filepath.FromSlash(at))
		for _, left := range p.left {
			if hidden, bad := p.root.Stat(filepath.FromSlash(left)); err == nil && bad == nil && os.SameFile(info, hidden) {
				return true
			}
		}
	}
	return false
}

// reader makes a tool of the class read.
func reader[In any](name, description string, call func(ctx context.Context, in In) (string, error)) (tool.Tool, error) {
	return tool.New(name, description, model.Read, func(ctx context.Context, in In, _ tool.Call) (string, error) {
		return call(ctx, in)
	}, tool.MasksItself())
}

// Secrets are the values of the .env files at the top of a directory that are to
// be masked wherever they stand. Give them, with those that are configured, to
// one Masker for Config.Mask and for tool.Set.Masked, so that tools that are
// not of this package hide them too.
func Secrets(root string) ([]string, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("builtin: directory: %w", err)
	}
	defer func() { _ = r.Close() }()
	return (&place{root: r}).dotenv(), nil
}

// dotenvBytesMax bounds what is read of a .env file for its values.
const dotenvBytesMax = 64 << 10

// dotenv are the secrets in the .env files of the top directory.
func (p *place) dotenv() []string {
	names, err := fs.Glob(p.root.FS(), ".env*")
	if err != nil {
		return nil
	}
	var values []string
	for _, name := range names {
		f, _, err := p.open(name)
		if err != nil {
			continue // not readable for us is not readable for a tool
		}
		data, err := io.ReadAll(io.LimitReader(f, dotenvBytesMax))
		_ = f.Close()
		if err == nil {
			values = append(values, mask.EnvValues(string(data))...)
		}
	}
	return values
}

// local makes a path as a model writes it relative to the directory.
func (p *place) local(name string) (string, error) {
	name = filepath.FromSlash(strings.TrimSpace(name))
	if name == "" {
		return ".", nil
	}
	if strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("%q: %w", name, fs.ErrInvalid)
	}
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(p.dir, name)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, ErrOutside)
		}
		name = rel
	}
	name = filepath.Clean(name)
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("%s: %w", filepath.ToSlash(name), ErrOutside)
	}
	if name = filepath.ToSlash(name); p.without(name) || p.leftBehind(name) {
		return "", fmt.Errorf("%s: %w", shown(name), fs.ErrNotExist)
	}
	return name, nil
}

// open opens a regular file for reading. It never waits: what is at the other
// end of a named pipe may never come.
func (p *place) open(name string) (*os.File, fs.FileInfo, error) {
	f, err := p.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, plainly(name, err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = ErrDirectory
	} else if err == nil && !info.Mode().IsRegular() {
		err = ErrSpecial
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, plainly(name, err)
	}
	return f, info, nil
}

// plainly says what is wrong with a path without the names of system calls and
// without the place of the directory on this machine.
func plainly(name string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		err = le.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", shown(name), fs.ErrNotExist)
	case strings.Contains(err.Error(), "escapes"):
		return fmt.Errorf("%s: %w", shown(name), ErrOutside)
	}
	return fmt.Errorf("%s: %w", shown(name), err)
}

// shown is a name as it stands in a line of a result: valid UTF-8 and without
// control characters.
func shown(name string) string {
	if utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0 {
		return name
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
}

const lineCut = " …[line clipped]"

// clipLine makes one line of a file into one line of a result.
func clipLine(line []byte, limit int) string {
	if len(line) <= limit {
		return strings.ToValidUTF8(string(line), "\uFFFD")
	}
	cut := limit
	for cut > limit-utf8.UTFMax && !utf8.RuneStart(line[cut]) {
		cut--
	}
	return strings.ToValidUTF8(string(line[:cut]), "\uFFFD") + lineCut
}

// sniffBytes is how much of a file tells whether it is binary, as in git.
const sniffBytes = 8000

func binary(head []byte) bool {
	for _, b := range head[:min(len(head), sniffBytes)] {
		if b == 0 {
			return true
		}
	}
	return false
}

// markBytes is how much of a file is looked at for the mark of a generated file.
const markBytes = 4096

var generatorField = regexp.MustCompile(`"generator"\s*:\s*"troupe"`)

// Generated reports whether the beginning of a file has the mark of one that
// troupe wrote: "generated by troupe" in its first line, or, in JSON, the field
// "generator" with the value "troupe". Such a file may be overwritten, and it is
// no input to grep and glob when it stands in the top directory.
func Generated(head []byte) bool {
	text := string(head[:min(len(head), markBytes)])
	first, _, _ := strings.Cut(text, "\n")
	if strings.Contains(first, "generated by troupe") {
		return true
	}
	return strings.HasPrefix(strings.TrimSpace(text), "{") && generatorField.MatchString(text)
}

// ours reports whether a file of the top directory is a report that troupe wrote.
func (p *place) ours(name string) bool {
	if ext := path.Ext(name); strings.Contains(name, "/") || ext != ".md" && ext != ".json" {
		return false
	}
	f, _, err := p.open(name)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	head, err := io.ReadAll(io.LimitReader(f, markBytes))
	return err == nil && Generated(head)
}
