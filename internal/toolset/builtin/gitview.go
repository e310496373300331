package builtin

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// Limits of refs.
const (
	refsMax        = 1_000_000
	packedRefsMax  = 256 << 20 // bytes
	symbolicRefMax = 5         // refs that lead to refs
)

// gitView is a git directory that this package wrote: with its own settings, the refs as it read them, and nothing
// that git would run, include or follow. Git sees it instead of the git directory of the repository and reads only
// the objects of the repository. A view for listing files has a copy of the index.
type gitView struct {
	repo    *gitRepository
	dir     string
	shallow bool
}

// viewConfig holds all settings that git sees: those of the repository, the user and the system are not read.
const viewConfig = `[core]
	repositoryformatversion = %d
	bare = %t
	ignorecase = %t
	precomposeunicode = %t
	fsmonitor = false
	untrackedCache = false
	hooksPath = %[5]s
	attributesFile = %[5]s
	excludesFile = %[5]s
	quotePath = false
	pager = cat
[log]
	showSignature = false
	showRoot = %[6]t
[protocol]
	allow = never
[gc]
	auto = 0
[maintenance]
	auto = false
[submodule]
	recurse = false
[extensions]
	objectFormat = %[7]s
`

// newView makes a view; tree means that it is for listing the files of the work tree, which needs no refs. The
// caller must remove the view, and need not close the repository.
func newView(r *gitRepository, tree bool) (*gitView, error) {
	dir, err := os.MkdirTemp("", "troupe-git-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		r.closeDirs()
		return nil, fmt.Errorf("git: %w", err)
	}
	steps.checked()
	v := &gitView{repo: r, dir: dir}
	if err := v.fillView(tree); err != nil {
		v.removeView()
		return nil, err
	}
	return v, nil
}

func (v *gitView) removeView() {
	_ = os.RemoveAll(v.dir)
	v.repo.closeDirs()
}

func (v *gitView) fillView(tree bool) error {
	files := map[string]string{"HEAD": "ref: refs/heads/main\n"}
	r := v.repo
	if text, err := r.common.readText("info/exclude", gitListBytes); err == nil && tree {
		files["info/exclude"] = text + "\n"
	}
	if text, err := r.common.readText("shallow", gitListBytes); err == nil {
		if v.shallow = shallowForm.MatchString(text); v.shallow {
			files["shallow"] = text + "\n"
		}
	}
	if !tree {
		head, refs, err := r.readRefs()
		if err != nil {
			return err
		}
		files["HEAD"], files["packed-refs"] = head+"\n", refs
	}
	version, format := 0, "sha1"
	if strings.EqualFold(r.config["extensions.objectformat"], "sha256") {
		version, format = 1, "sha256"
	}
	// At the border of a shallow clone commits are taken for what they are: not the ones that added every file.
	folds := runtime.GOOS == "darwin" || runtime.GOOS == "windows"
	files[gitSettingsFile] = fmt.Sprintf(viewConfig, version, !tree, folds, runtime.GOOS == "darwin", os.DevNull, !v.shallow, format)
	if version == 0 { // git refuses an extension of a later version
		files[gitSettingsFile], _, _ = strings.Cut(files[gitSettingsFile], "[extensions]")
	}
	for _, dir := range []string{"refs", "info"} {
		if err := os.Mkdir(filepath.Join(v.dir, dir), 0o700); err != nil {
			return fmt.Errorf("git: %w", err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(v.dir, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			return fmt.Errorf("git: %w", err)
		}
	}
	if tree {
		return r.dir.copyTo("index", filepath.Join(v.dir, "index"), gitIndexBytes)
	}
	return nil
}

var (
	hashForm    = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	shallowForm = lazyregexp.New(`^([0-9a-f]{40,64}\s*)+$`)
	refForm     = lazyregexp.New(`^refs/[^\x00-\x20\x7f~^:?*\[\\]+$`)
)

// readRefs returns the commit of HEAD and all refs, in the form of a packed-refs file.
func (r *gitRepository) readRefs() (head, packed string, err error) {
	if strings.EqualFold(r.config["extensions.refstorage"], "reftable") {
		return "", "", errReftable
	}
	refs, err := r.packedRefs()
	if err != nil {
		return "", "", err
	}
	if err := r.looseRefs(refs); err != nil {
		return "", "", err
	}
	head, err = r.dir.readText("HEAD", gitLinkBytes)
	if err != nil {
		return "", "", errNoRepository
	}
	if head = resolveRef(refs, head); head == "" {
		return "", "", errNoCommits
	}
	lines := []string{}
	for name, to := range refs {
		if hash := resolveRef(refs, to); hash != "" {
			lines = append(lines, hash+" "+name+"\n")
		}
	}
	slices.SortFunc(lines, func(a, b string) int {
		return strings.Compare(a[strings.IndexByte(a, ' '):], b[strings.IndexByte(b, ' '):])
	})
	return head, "# pack-refs with: sorted \n" + strings.Join(lines, ""), nil
}

// resolveRef follows the content of a ref to a hash; "" if there is none.
func resolveRef(refs map[string]string, to string) string {
	for range symbolicRefMax {
		if hashForm.MatchString(to) {
			return to
		}
		name, ok := strings.CutPrefix(to, "ref: ")
		if !ok {
			return ""
		}
		to = refs[name]
	}
	return ""
}

func (r *gitRepository) packedRefs() (map[string]string, error) {
	refs := map[string]string{}
	f, err := r.common.openFile("packed-refs", packedRefsMax)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refs, nil
	case errors.Is(err, ErrSpecial):
		return nil, errElsewhere
	case err != nil:
		return nil, errNoRepository
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(io.LimitReader(f, packedRefsMax))
	for lines.Scan() && len(refs) < refsMax {
		if hash, name, ok := strings.Cut(lines.Text(), " "); ok && hashForm.MatchString(hash) && refName(name) {
			refs[name] = hash
		}
	}
	return refs, nil
}

// looseRefs adds the refs that have a file of their own. They override packed ones.
func (r *gitRepository) looseRefs(refs map[string]string) error {
	if info, err := r.common.root.Lstat("refs"); err != nil || !info.IsDir() {
		return errElsewhere
	}
	return fs.WalkDir(r.common.root.FS(), "refs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || len(refs) >= refsMax {
			return nil // a link is no ref for us
		}
		if text, err := r.common.readText(name, gitLinkBytes); err == nil && refName(name) {
			refs[name] = text
		}
		return nil
	})
}

// refName reports whether git accepts a name of a ref.
func refName(name string) bool {
	return refForm.MatchString(name) && !strings.Contains(name, "..") && !strings.Contains(name, "//") && !strings.Contains(name, "/.") && !strings.Contains(name, "@{") &&
		!strings.HasSuffix(name, "/") && !strings.HasSuffix(name, ".") && !strings.Contains(name+"/", ".lock/")
}
