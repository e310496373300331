package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/process"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/sandbox"
)

// gitBytesMax bounds the kept output of one git command.
const gitBytesMax = 64 << 20

// gitSmall is enough for the head of a commit.
const gitSmall = 8 << 10

// Results that take the place of an answer. They are not errors. No output of git's error stream is ever passed on,
// because it quotes files.
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

// unconfined starts git without the sandbox, for tests that the checks hold alone.
var unconfined atomic.Bool

// steps are called on the way to git, for tests that replace directories after a check.
var steps = struct{ found, checked, start func() }{func() {}, func() {}, func() {}}

// gitTools are the tools that read the git history.
type gitTools struct {
	ws   *toolWorkspace
	mask *redact.Masker
}

// openHistory returns a view of the commits. The caller must remove it.
func (t *gitTools) openHistory(ctx context.Context) (*gitView, error) {
	r, err := findRepository(ctx, t.ws)
	if err != nil {
		return nil, err
	}
	return newView(r, false)
}

// readHistory calls read with a view of the commits and the path of a file or directory that a tool was given, and
// removes the view afterwards.
func (t *gitTools) readHistory(ctx context.Context, tool, name string, read func(v *gitView, path string) (string, error)) (string, error) {
	path, err := t.repoPath(tool, name)
	if err != nil {
		return answerOrError("", err)
	}
	v, err := t.openHistory(ctx)
	if err != nil {
		return answerOrError("", err)
	}
	defer v.removeView()
	return answerOrError(read(v, path))
}

// runLog runs a git command on the history. The command sees no work tree, only the view and the objects.
func (v *gitView) runLog(ctx context.Context, keep int, args ...string) (gitOutput, error) {
	return v.runGit(ctx, sandbox.Spec{Dir: v.dir, Output: keep}, append([]string{"--literal-pathspecs"}, args...))
}

// listFiles runs a git command on the files of the work tree, in the directory of the tools.
func (v *gitView) listFiles(ctx context.Context, w *toolWorkspace, args ...string) (gitOutput, error) {
	top := v.repo.top
	at, err := w.root.Open(".")
	if err != nil {
		return gitOutput{}, fmt.Errorf("git: %w", err)
	}
	defer func() { _ = at.Close() }()
	spec := sandbox.Spec{Dir: w.dir, At: at, Output: gitBytesMax, Env: []string{"GIT_WORK_TREE=" + top.path}, Read: []string{v.dir}}
	for rel := filepath.FromSlash(v.repo.prefix); rel != ""; {
		rel, _ = filepath.Split(filepath.Clean(rel)) // of the directory above; "" is the top
		ignore := rel + ".gitignore"
		if info, err := top.root.Lstat(ignore); err == nil && info.Mode().IsRegular() {
			spec.Exact = append(spec.Exact, sandbox.Exact{Path: filepath.Join(top.path, ignore), Info: info})
		}
	}
	return v.runGit(ctx, spec, args)
}

// runGit runs one git command that can write nothing and reach no network. If this system has no sandbox, the only
// protection is what was checked before and is compared afterwards. A failure is errGit, errSwapped or
// process.ErrNotFound. If ctx ends, runGit returns what the command had printed, with the cause.
func (v *gitView) runGit(ctx context.Context, spec sandbox.Spec, args []string) (gitOutput, error) {
	spec.Argv = append(append([]string{"git"}, gitOptions...), args...)
	spec.ReadOnly, spec.HeadOnly = true, true
	spec.Env = append(spec.Env, v.gitEnv()...)
	spec.Exact = append(spec.Exact, sandbox.Exact{Path: v.repo.objects.path, Info: v.repo.objects.info})
	spec.Read = append(spec.Read, gitInstallDirs()...)
	steps.start()
	out, err := runGit(ctx, spec)
	if moved := v.repo.checkUnmoved(); moved != nil {
		return gitOutput{}, moved
	}
	switch {
	case errors.Is(err, sandbox.ErrReplaced):
		return gitOutput{}, errSwapped
	case errors.Is(err, process.ErrNotFound):
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

func runGit(ctx context.Context, spec sandbox.Spec) (process.Output, error) {
	if !unconfined.Load() {
		out, err := sandbox.Run(ctx, spec)
		if !errors.Is(err, process.ErrStart) {
			return out.Output, err
		}
	}
	home, err := os.MkdirTemp("", "troupe-git-home-")
	if err != nil {
		return process.Output{}, err
	}
	defer func() { _ = os.RemoveAll(home) }()
	env := append(spec.Env, "HOME="+home)
	for _, name := range []string{"PATH", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return process.Run(ctx, process.Spec{Argv: spec.Argv, Dir: spec.Dir, Env: env, StdoutMax: spec.Output, HeadOnly: true})
}

// gitInstallDirs returns the directory of git's own files if git is not a part of the system.
func gitInstallDirs() []string {
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

// gitEnv points git to the view and the objects, and removes what could point it elsewhere.
func (v *gitView) gitEnv() []string {
	env := []string{"GIT_DIR=" + v.dir, "GIT_OBJECT_DIRECTORY=" + v.repo.objects.path, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=" + os.DevNull, "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_ATTR_NOSYSTEM=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "LC_ALL=C"}
	for _, name := range []string{"SYSTEMROOT", "USERPROFILE"} { // Windows starts nothing without the first
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// answerOrError replaces an error that is a result, such as a missing repository, by the line that reports it.
func answerOrError(text string, err error) (string, error) {
	for cause, line := range map[error]string{process.ErrNotFound: noGit, errNoRepository: noRepository, errNoCommits: noCommits, errElsewhere: elsewhere, errBorrowed: borrowed,
		errReftable: reftable, errSwapped: replaced} {
		if errors.Is(err, cause) {
			return line, nil
		}
	}
	return text, err
}

// repoPath returns a path of the directory as the repository names it.
func (v *gitView) repoPath(path string) string {
	if path == "." {
		return strings.TrimSuffix(v.repo.prefix, "/")
	}
	return v.repo.prefix + path
}

// pathScope limits a command to a path, or to the directory if that is only a part of a
// repository. At the top there is no pathspec: it would leave out commits that change nothing.
func (v *gitView) pathScope(path string) []string {
	if path = v.repoPath(path); path != "" {
		return []string{"--", path}
	}
	return []string{"--"}
}

// relativeFlags makes git name files as the directory does, and leave out those outside of it.
func (v *gitView) relativeFlags() []string {
	if v.repo.prefix == "" {
		return nil
	}
	return []string{"--relative=" + v.repo.prefix}
}

var revisionForm = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_./~^@{}+-]{0,199}$`)

// checkRevision checks a revision that a model wrote and returns the hash, date, author and subject of its commit.
func (v *gitView) checkRevision(ctx context.Context, rev string) ([]string, error) {
	if !revisionForm.MatchString(rev) || strings.Contains(rev, "..") {
		return nil, fmt.Errorf("%.60q: %w", rev, errRevision)
	}
	out, err := v.runLog(ctx, gitSmall, "show", "-s", "--no-color", "--date=short", "--format=%H%x1f%ad%x1f%aN%x1f%s", "--end-of-options", rev+"^{commit}")
	if err != nil && !errors.Is(err, errGit) {
		return nil, err
	}
	f := strings.SplitN(strings.TrimSpace(string(out.text)), "\x1f", 4)
	if err != nil || len(f) != 4 {
		return nil, fmt.Errorf("no commit %s", rev)
	}
	return f, nil
}

// repoPath returns a path for a git command: relative to the directory, inside it, and
// not led out of it by a link.
func (t *gitTools) repoPath(tool, name string) (string, error) {
	rel, err := t.ws.resolvePath(tool, name)
	if err != nil {
		return "", err
	}
	if _, err := t.ws.root.Lstat(filepath.FromSlash(rel)); safefile.LeavesRoot(err) {
		return "", pathError(rel, err)
	}
	return rel, nil
}

// commitField returns text of a commit as one field of a line.
func commitField(s string) string { return printableName(strings.TrimSpace(s)) }
