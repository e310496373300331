package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/troupe-run/troupe/tool/proc"
	"github.com/troupe-run/troupe/tool/sandbox"
)

// gitBytesMax bounds what is kept of the output of one git command.
const gitBytesMax = 64 << 20

// gitSmall is enough for the head of a commit.
const gitSmall = 8 << 10

// What there is to say instead of an answer. These are results, not errors. Nothing that git itself says is
// ever passed on: its errors quote files.
const (
	noCommits    = "[no commits]"
	noRepository = "[not a git repository]"
	noGit        = "[git is not installed]"
	elsewhere    = "[the git directory of this tree, or a part of it, lies elsewhere and does not link back to it: the history is not read]"
	borrowed     = "[this repository borrows objects of another one: the history is not read; `git repack -a -d` and removing .git/objects/info/alternates make it whole]"
	replaced     = "[the git directory was replaced while it was read: call again]"
	reftable     = "[this repository keeps its refs as a reftable: the history is not read]"
)

var (
	errRevision = errors.New("a revision is a commit, branch or tag, such as HEAD~2 or v1.0")
	errGit      = errors.New("git could not read this part of the history; git fsck in the directory says why")
)

// gitOptions come before every command.
var gitOptions = []string{"--no-pager", "--no-optional-locks", "--no-replace-objects"}

type gitOutput struct {
	text []byte
	cut  bool
}

// unconfined starts git without the sandbox, to see that the checks hold alone: for tests.
var unconfined atomic.Bool

// steps are called on the way to git: for tests that swap what was looked at.
var steps = struct{ found, checked, start func() }{func() {}, func() {}, func() {}}

// history is what there is to read of commits. The caller must remove it.
func (p *place) history(ctx context.Context) (*view, error) {
	r, err := findRepository(ctx, p)
	if err != nil {
		return nil, err
	}
	return newView(r, false)
}

// log runs a git command about the history. It has no work tree, and finds none: only the view and the objects.
func (v *view) log(ctx context.Context, keep int, args ...string) (gitOutput, error) {
	return v.git(ctx, sandbox.Spec{Dir: v.dir, Output: keep}, append([]string{"--literal-pathspecs"}, args...))
}

// list runs a git command about the files of the work tree, in the directory of the tools.
func (v *view) list(ctx context.Context, p *place, args ...string) (gitOutput, error) {
	top := v.repo.top
	at, err := p.root.Open(".")
	if err != nil {
		return gitOutput{}, fmt.Errorf("git: %w", err)
	}
	defer func() { _ = at.Close() }()
	spec := sandbox.Spec{Dir: p.dir, At: at, Output: gitBytesMax, Env: []string{"GIT_WORK_TREE=" + top.path}, Read: []string{v.dir}}
	for rel := filepath.FromSlash(v.repo.prefix); rel != ""; {
		rel, _ = filepath.Split(filepath.Clean(rel)) // of the directory above; "" is the top
		ignore := rel + ".gitignore"
		if info, err := top.root.Lstat(ignore); err == nil && info.Mode().IsRegular() {
			spec.Exact = append(spec.Exact, sandbox.Exact{Path: filepath.Join(top.path, ignore), Info: info})
		}
	}
	return v.git(ctx, spec, args)
}

// git runs one git command where nothing can be written and no network is reached. Where this system has no
// sandbox, what was checked before and is compared afterwards is all there is. A failure is errGit, errSwapped or
// proc.ErrNotFound. When ctx ends,
// what had been printed comes with its cause.
func (v *view) git(ctx context.Context, spec sandbox.Spec, args []string) (gitOutput, error) {
	spec.Argv = append(append([]string{"git"}, gitOptions...), args...)
	spec.ReadOnly, spec.HeadOnly = true, true
	spec.Env = append(spec.Env, v.env()...)
	spec.Exact = append(spec.Exact, sandbox.Exact{Path: v.repo.objects.path, Info: v.repo.objects.info})
	spec.Read = append(spec.Read, gitPlaces()...)
	steps.start()
	out, err := runGit(ctx, spec)
	if moved := v.repo.unmoved(); moved != nil {
		return gitOutput{}, moved
	}
	switch {
	case errors.Is(err, sandbox.ErrReplaced):
		return gitOutput{}, errSwapped
	case errors.Is(err, proc.ErrNotFound):
		return gitOutput{}, err
	case ctx.Err() != nil:
		return gitOutput{out.Stdout, true}, context.Cause(ctx)
	case err != nil:
		return gitOutput{}, fmt.Errorf("git did not run: %w", err)
	case out.Exit != 0:
		return gitOutput{}, errGit
	}
	return gitOutput{out.Stdout, out.Cut}, nil
}

func runGit(ctx context.Context, spec sandbox.Spec) (proc.Output, error) {
	if !unconfined.Load() {
		out, err := sandbox.Run(ctx, spec)
		if !errors.Is(err, proc.ErrStart) {
			return out.Output, err
		}
	}
	home, err := os.MkdirTemp("", "troupe-git-home-")
	if err != nil {
		return proc.Output{}, err
	}
	defer func() { _ = os.RemoveAll(home) }()
	env := append(spec.Env, "HOME="+home)
	for _, name := range []string{"PATH", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return proc.Run(ctx, proc.Spec{Argv: spec.Argv, Dir: spec.Dir, Env: env, StdoutMax: spec.Output, HeadOnly: true})
}

// gitPlaces is where git's own files are, if it is not a part of the system.
func gitPlaces() []string {
	path, err := exec.LookPath("git")
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil
	}
	dir := filepath.Dir(path)
	if above := filepath.Dir(dir); filepath.Base(dir) == "bin" && filepath.Dir(above) != above {
		return []string{above}
	}
	return []string{dir}
}

// env has the view, the objects, and nothing that could point git elsewhere.
func (v *view) env() []string {
	env := []string{"GIT_DIR=" + v.dir, "GIT_OBJECT_DIRECTORY=" + v.repo.objects.path, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=" + os.DevNull, "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_ATTR_NOSYSTEM=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "LC_ALL=C"}
	for _, name := range []string{"SYSTEMROOT", "USERPROFILE"} { // Windows starts nothing without the first
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// answer turns what is no answer into the line that says so.
func answer(text string, err error) (string, error) {
	for cause, line := range map[error]string{proc.ErrNotFound: noGit, errNoRepository: noRepository, errNoCommits: noCommits, errElsewhere: elsewhere, errBorrowed: borrowed,
		errReftable: reftable, errSwapped: replaced} {
		if errors.Is(err, cause) {
			return line, nil
		}
	}
	return text, err
}

// path is a path of the directory as the repository has it.
func (v *view) path(path string) string {
	if path == "." {
		return strings.TrimSuffix(v.repo.prefix, "/")
	}
	return v.repo.prefix + path
}

// scope limits a command to a path, or to the directory where that is only a
// part of a repository. At the top nothing is said: a pathspec would leave out
// commits that change nothing.
func (v *view) scope(path string) []string {
	if path = v.path(path); path != "" {
		return []string{"--", path}
	}
	return []string{"--"}
}

// relative names files as the directory has them, and leaves out those that it does not have.
func (v *view) relative() []string {
	if v.repo.prefix == "" {
		return nil
	}
	return []string{"--relative=" + v.repo.prefix}
}

var revisionForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./~^@{}+-]{0,199}$`)

// commit checks a revision that a model wrote and gives the hash, date, author and subject of its commit.
func (v *view) commit(ctx context.Context, rev string) ([]string, error) {
	if !revisionForm.MatchString(rev) || strings.Contains(rev, "..") {
		return nil, fmt.Errorf("%.60q: %w", rev, errRevision)
	}
	out, err := v.log(ctx, gitSmall, "show", "-s", "--no-color", "--date=short", "--format=%H%x1f%ad%x1f%aN%x1f%s", "--end-of-options", rev+"^{commit}")
	if err != nil && !errors.Is(err, errGit) {
		return nil, err
	}
	f := strings.SplitN(strings.TrimSpace(string(out.text)), "\x1f", 4)
	if err != nil || len(f) != 4 {
		return nil, fmt.Errorf("no commit %s", rev)
	}
	return f, nil
}

// gitPath is a path for a git command: relative to the directory, in it, and
// not led out of it by a link.
func (p *place) gitPath(name string) (string, error) {
	rel, err := p.local(name)
	if err != nil {
		return "", err
	}
	if _, err := p.root.Lstat(filepath.FromSlash(rel)); err != nil && strings.Contains(err.Error(), "escapes") {
		return "", plainly(rel, err)
	}
	return rel, nil
}

// field makes text of a commit into one field of a line.
func field(s string) string { return shown(strings.TrimSpace(s)) }
