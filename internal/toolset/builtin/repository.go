package builtin

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/internal/workdir"
)

// Limits for reading a git directory before git starts.
const (
	gitLinkBytes    = 4 << 10   // of a file that names another place
	gitConfigBytes  = 1 << 20   // of the settings; only four keys are used
	gitIndexBytes   = 1 << 30   // of the index, without which ignored files that git tracks are not listed
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
	errSwapped      = errors.New("replaced while it was read")
)

// gitRepository is a git repository whose directories were checked: no part of it is a link or is
// elsewhere, except the git directory of a linked work tree or a submodule, which must link back. So a
// directory that another user wrote cannot make troupe read another repository of this user. Each directory
// was opened once, and everything is read through the opened directories: see heldDir.
type gitRepository struct {
	top     *heldDir // of the work tree
	prefix  string   // of the directory in it, with a slash at its end; "" at its top
	dir     *heldDir // the git directory
	common  *heldDir // the one that holds objects and refs; of a linked work tree it is another
	objects *heldDir
	config  map[string]string
}

// findRepository looks for the repository of a directory, there and above. The caller must close it.
func findRepository(ctx context.Context, w *toolWorkspace) (*gitRepository, error) {
	inner, err := w.root.Stat(".")
	if err != nil {
		return nil, errNoRepository
	}
	for top := w.dir; ; top = filepath.Dir(top) {
		entry := filepath.Join(top, gitDir)
		info, err := os.Lstat(entry)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, errNoRepository
		case err == nil && (top == w.dir || sameOwner(info, inner)) && !isEmptyDir(entry, info):
			steps.found()
			r := &gitRepository{}
			if err := r.openDirs(ctx, top, w.dir, info, inner); err != nil {
				r.closeDirs()
				return nil, err
			}
			return r, nil
		case filepath.Dir(top) == top:
			return nil, errNoRepository
		}
	}
}

// isEmptyDir reports whether an entry is a directory that git ignores.
func isEmptyDir(entry string, info fs.FileInfo) bool {
	_, err := os.Lstat(filepath.Join(entry, "HEAD"))
	return info.IsDir() && errors.Is(err, fs.ErrNotExist)
}

// openDirs opens the directories of a repository. entry describes the git directory as it was found,
// inner the directory of the tools.
func (r *gitRepository) openDirs(ctx context.Context, top, dir string, entry, inner fs.FileInfo) (err error) {
	if r.top, err = openHeldDir(top); err != nil {
		return errNoRepository
	}
	rel, err := filepath.Rel(top, dir)
	if err != nil {
		return errNoRepository
	}
	if now, err := r.top.root.Stat(rel); err != nil || !os.SameFile(now, inner) {
		return errSwapped
	}
	if now, err := r.top.root.Lstat(gitDir); err != nil || !os.SameFile(now, entry) {
		return errSwapped
	}
	if rel != "." {
		r.prefix = filepath.ToSlash(rel) + "/"
	}
	if r.dir, err = r.gitDirectory(entry); err != nil {
		return err
	}
	if r.common, err = r.commonDirectory(); err != nil {
		return err
	}
	text, err := r.common.readText(gitSettingsFile, gitConfigBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errNoRepository
	}
	r.config = gitSettings(text)
	if r.objects, err = r.common.openBelow("objects"); err != nil {
		return err
	}
	return r.checkObjects(ctx)
}

// gitDirectory follows the .git of a work tree, which may be a directory, a link or a file.
func (r *gitRepository) gitDirectory(entry fs.FileInfo) (*heldDir, error) {
	at := filepath.Join(r.top.path, gitDir)
	if entry.IsDir() {
		return r.top.openBelow(gitDir)
	}
	if entry.Mode().IsRegular() {
		text, err := r.top.readText(gitDir, gitLinkBytes)
		to, ok := strings.CutPrefix(text, "gitdir: ")
		if err != nil || !ok {
			return nil, errNoRepository
		}
		at = joinPath(r.top.path, to)
	}
	real, err := filepath.EvalSymlinks(at)
	if err != nil {
		return nil, errNoRepository
	}
	if rel, ok := workdir.Below(r.top.path, real); ok {
		return r.top.openBelow(rel)
	}
	git, err := openHeldDir(real)
	if err != nil {
		return nil, errNoRepository
	}
	if !linksBack(git, r.top.path) {
		git.closeDir()
		return nil, errElsewhere
	}
	return git, nil
}

// linksBack reports whether a git directory names a work tree as its own: as that of a linked work tree
// does in the file gitdir, and that of a submodule in its setting core.worktree.
func linksBack(git *heldDir, top string) bool {
	if text, err := git.readText("gitdir", gitLinkBytes); err == nil {
		back := joinPath(git.path, text)
		real, err := filepath.EvalSymlinks(filepath.Dir(back))
		return err == nil && real == top && filepath.Base(back) == gitDir
	}
	text, err := git.readText(gitSettingsFile, gitConfigBytes)
	tree := gitSettings(text)["core.worktree"]
	if err != nil || tree == "" {
		return false
	}
	real, err := filepath.EvalSymlinks(joinPath(git.path, tree))
	return err == nil && real == top
}

// commonDirectory is where the objects and refs of a git directory are. Another one must contain it, as that
// of a linked work tree does, or be a part of the same tree.
func (r *gitRepository) commonDirectory() (*heldDir, error) {
	text, err := r.dir.readText("commondir", gitLinkBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return r.dir, nil
	}
	if err != nil {
		return nil, errElsewhere
	}
	real, err := filepath.EvalSymlinks(joinPath(r.dir.path, text))
	if err != nil {
		return nil, errNoRepository
	}
	trees := filepath.Dir(r.dir.path)
	switch {
	case real == r.dir.path:
		return r.dir, nil
	case filepath.Dir(trees) == real && filepath.Base(trees) == "worktrees":
		common, err := openHeldDir(real)
		if err != nil {
			return nil, errNoRepository
		}
		if now, err := common.root.Stat(filepath.Join("worktrees", filepath.Base(r.dir.path))); err != nil || !os.SameFile(now, r.dir.info) {
			common.closeDir()
			return nil, errSwapped
		}
		return common, nil
	case workdir.IsBelow(r.top.path, real) && workdir.IsBelow(r.top.path, r.dir.path):
		rel, err := filepath.Rel(r.top.path, real)
		if err != nil {
			return nil, errElsewhere
		}
		return r.top.openBelow(rel)
	}
	return nil, errElsewhere
}

// checkObjects checks that the object store has only files and directories: no links and no other stores.
func (r *gitRepository) checkObjects(ctx context.Context) error {
	n := 0
	return fs.WalkDir(r.objects.root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		n++
		switch {
		case err != nil && path == ".":
			return errNoRepository
		case err != nil:
			return nil // git cannot read it either
		case d.IsDir():
			return ctx.Err()
		case !d.Type().IsRegular() || n > gitObjectsMax:
			return errElsewhere
		case d.Name() == "alternates" || d.Name() == "http-alternates":
			if text, err := r.objects.readText(path, gitListBytes); err != nil || text != "" {
				return errBorrowed
			}
		}
		return nil
	})
}

// joinPath is a path that a file names: absolute, or relative to a directory.
func joinPath(dir, path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// gitSettings reads the settings of a repository. Callers use only the location of its tree and its format.
// Names are in lower case, "section.key"; subsections and included files are ignored.
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
