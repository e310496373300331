package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Limits of what is read of a git directory before git is started.
const (
	gitLinkBytes    = 4 << 10   // of a file that names another place
	gitConfigBytes  = 1 << 20   // of the settings, of which four keys are read
	gitListBytes    = 1 << 20   // of info/exclude and shallow
	gitObjectsMax   = 1_000_000 // files of the object store that are looked at
	gitSettingsFile = "config"
)

// Why a history is not read. Each is an answer, not a failure: see answer.
var (
	errNoRepository = errors.New("not a git repository")
	errElsewhere    = errors.New("git directory elsewhere")
	errBorrowed     = errors.New("borrowed objects")
	errReftable     = errors.New("refs are a reftable")
	errNoCommits    = errors.New("no commits")
)

// repository is a git repository after its places were checked: no part of it is a link, and none lies
// elsewhere, except the git directory of a linked work tree or a submodule, which must link back. So a
// directory that somebody else wrote cannot name another repository of the user and have it read.
type repository struct {
	top    string // of the work tree
	prefix string // of the directory in it, with a slash at its end; "" at its top
	dir    string // the git directory
	common string // the one that holds objects and refs; of a linked work tree it is another
	config map[string]string
}

// findRepository looks for the repository of a directory there and above. dir has no links.
func findRepository(ctx context.Context, dir string) (*repository, error) {
	for top := dir; ; top = filepath.Dir(top) {
		entry := filepath.Join(top, gitDir)
		info, err := os.Lstat(entry)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, errNoRepository
		case err == nil && (top == dir || sameOwner(entry, dir)) && !empty(entry, info):
			return openRepository(ctx, top, dir, info)
		case filepath.Dir(top) == top:
			return nil, errNoRepository
		}
	}
}

// empty reports a directory that git passes by.
func empty(entry string, info fs.FileInfo) bool {
	_, err := os.Lstat(filepath.Join(entry, "HEAD"))
	return info.IsDir() && errors.Is(err, fs.ErrNotExist)
}

func openRepository(ctx context.Context, top, dir string, entry fs.FileInfo) (*repository, error) {
	r := &repository{top: top}
	if dir != top {
		rel, err := filepath.Rel(top, dir)
		if err != nil {
			return nil, errNoRepository
		}
		r.prefix = filepath.ToSlash(rel) + "/"
	}
	var err error
	if r.dir, err = gitDirectory(top, entry); err != nil {
		return nil, err
	}
	if r.common, err = commonDirectory(top, r.dir); err != nil {
		return nil, err
	}
	text, err := smallFile(filepath.Join(r.common, gitSettingsFile), gitConfigBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errNoRepository
	}
	r.config = gitSettings(text)
	return r, r.checkObjects(ctx)
}

// gitDirectory follows the .git of a work tree, which may be a directory, a link or a file.
func gitDirectory(top string, entry fs.FileInfo) (string, error) {
	at := filepath.Join(top, gitDir)
	if entry.IsDir() {
		return at, nil
	}
	if entry.Mode().IsRegular() {
		text, err := smallFile(at, gitLinkBytes)
		to, ok := strings.CutPrefix(text, "gitdir: ")
		if err != nil || !ok {
			return "", errNoRepository
		}
		at = join(top, to)
	}
	real, err := filepath.EvalSymlinks(at)
	if err != nil {
		return "", errNoRepository
	}
	if within := under(top, real); !within && !linksBack(real, top) {
		return "", errElsewhere
	}
	return real, nil
}

// linksBack reports whether a git directory names a work tree as its own: as that of a linked work tree
// does in the file gitdir, and that of a submodule in its setting core.worktree.
func linksBack(git, top string) bool {
	if text, err := smallFile(filepath.Join(git, "gitdir"), gitLinkBytes); err == nil {
		back := join(git, text)
		real, err := filepath.EvalSymlinks(filepath.Dir(back))
		return err == nil && real == top && filepath.Base(back) == gitDir
	}
	text, err := smallFile(filepath.Join(git, gitSettingsFile), gitConfigBytes)
	tree := gitSettings(text)["core.worktree"]
	if err != nil || tree == "" {
		return false
	}
	real, err := filepath.EvalSymlinks(join(git, tree))
	return err == nil && real == top
}

// commonDirectory is where the objects and refs of a git directory are. Another one must contain it, as that
// of a linked work tree does, or be a part of the same tree.
func commonDirectory(top, git string) (string, error) {
	text, err := smallFile(filepath.Join(git, "commondir"), gitLinkBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return git, nil
	}
	if err != nil {
		return "", errElsewhere
	}
	real, err := filepath.EvalSymlinks(join(git, text))
	if err != nil {
		return "", errNoRepository
	}
	if trees := filepath.Dir(git); real != git && (filepath.Dir(trees) != real || filepath.Base(trees) != "worktrees") && (!under(top, real) || !under(top, git)) {
		return "", errElsewhere
	}
	return real, nil
}

// checkObjects sees to it that the object store is one: files and directories, no links and no other stores.
func (r *repository) checkObjects(ctx context.Context) error {
	store := r.objects()
	n := 0
	err := filepath.WalkDir(store, func(path string, d fs.DirEntry, err error) error {
		n++
		switch {
		case err != nil && path == store:
			return errNoRepository
		case err != nil:
			return nil // not readable for us is not readable for git
		case d.IsDir():
			return ctx.Err()
		case !d.Type().IsRegular() || n > gitObjectsMax:
			return errElsewhere
		case filepath.Base(path) == "alternates" || filepath.Base(path) == "http-alternates":
			if text, err := smallFile(path, gitListBytes); err != nil || text != "" {
				return errBorrowed
			}
		}
		return nil
	})
	return err
}

func (r *repository) objects() string { return filepath.Join(r.common, "objects") }

// smallFile is the text of a regular file that is no link, without the white space at its end. It never waits.
func smallFile(path string, limit int64) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return "", ErrSpecial
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		return "", fmt.Errorf("%s: %w", path, ErrSpecial)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit))
	return strings.TrimRight(string(data), " \t\r\n"), err
}

// join is a path that a file names: absolute, or relative to a directory.
func join(dir, path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// under reports whether a path is a directory or below it.
func under(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// gitSettings reads the settings of a repository, of which only where its tree is and which form it has are
// used: names in lower case, "section.key", and nothing of subsections or of other files.
func gitSettings(text string) map[string]string {
	settings := map[string]string{}
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if head, ok := strings.CutPrefix(line, "["); ok {
			section, _, _ = strings.Cut(head, "]")
			section = strings.ToLower(strings.TrimSpace(section))
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") || strings.ContainsAny(section, " \"") {
			continue
		}
		value = strings.TrimSpace(value)
		if quoted := strings.Trim(value, `"`); len(quoted) == len(value)-2 {
			value = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(quoted)
		}
		settings[section+"."+strings.ToLower(strings.TrimSpace(key))] = value
	}
	return settings
}
