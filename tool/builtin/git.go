package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/troupe-run/troupe/tool/proc"
)

// gitBytesMax bounds what is kept of the output of one git command.
const gitBytesMax = 64 << 20

// gitSmall is enough for a hash or a flag.
const gitSmall = 8 << 10

// What there is to say instead of an answer. These are results, not errors.
const (
	noCommits    = "[no commits]"
	noRepository = "[not a git repository]"
	noGit        = "[git is not installed]"
)

var (
	errNoRepository = errors.New("not a git repository")
	errRevision     = errors.New("a revision is a commit, branch or tag, such as HEAD~2 or v1.0")
)

// gitOptions come before every command. A repository is data that somebody else
// wrote: nothing in it may run a program, change an index, or reach the network.
var gitOptions = []string{"--no-pager", "--no-optional-locks",
	"-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never", "-c", "core.quotePath=false",
	"-c", "log.showSignature=false", "-c", "diff.external=", "-c", "core.untrackedCache=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"}

type gitOutput struct {
	text []byte
	cut  bool
}

// git runs one git command in the directory. A failure is an error with the end
// of what git said, errNoRepository, or proc.ErrNotFound. When ctx ends, what
// had been printed comes with its cause.
func (p *place) git(ctx context.Context, keep int, args ...string) (gitOutput, error) {
	argv := append([]string{"git"}, gitOptions...)
	if args[0] != "check-ignore" { // which refuses it
		argv = append(argv, "--literal-pathspecs")
	}
	out, err := proc.Run(ctx, proc.Spec{
		Argv:      append(argv, args...),
		Dir:       p.dir,
		Env:       gitEnv(),
		StdoutMax: keep,
		HeadOnly:  true,
	})
	if err != nil {
		return gitOutput{out.Stdout, true}, err
	}
	if out.Exit != 0 {
		said := strings.TrimSpace(strings.ToValidUTF8(string(out.Stderr), "\uFFFD"))
		if strings.Contains(said, "not a git repository") || strings.Contains(said, "must be run in a work tree") {
			return gitOutput{}, errNoRepository
		}
		said = strings.ReplaceAll(said, p.dir, ".")
		return gitOutput{}, fmt.Errorf("git %s: %s", command(args), said[max(0, len(said)-gitErrorShown):])
	}
	return gitOutput{out.Stdout, out.Cut}, nil
}

// command is the name of the command among arguments that may begin with -c x=y.
func command(args []string) string {
	for len(args) > 2 && args[0] == "-c" {
		args = args[2:]
	}
	return args[0]
}

const gitErrorShown = 600

// gitEnv has nothing of the environment that could point git elsewhere. No
// protocol is allowed here and not only by an option, which the settings of a
// repository go over.
func gitEnv() []string {
	env := []string{"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_PAGER=cat"}
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "SYSTEMROOT", "USERPROFILE"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// answer turns what is no answer into the line that says so.
func answer(text string, err error) (string, error) {
	switch {
	case errors.Is(err, proc.ErrNotFound):
		return noGit, nil
	case errors.Is(err, errNoRepository):
		return noRepository, nil
	case errors.Is(err, errNoCommits):
		return noCommits, nil
	}
	return text, err
}

var errNoCommits = errors.New("no commits")

// repository is what there is to know before history is read.
type repository struct {
	shallow bool
	prefix  string // of the directory in the work tree; "" at its top
}

// history checks that there are commits.
func (p *place) history(ctx context.Context) (repository, error) {
	out, err := p.git(ctx, gitSmall, "rev-parse", "--is-shallow-repository", "--show-prefix")
	if err != nil {
		return repository{}, err
	}
	if _, err := p.git(ctx, gitSmall, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		if ctx.Err() != nil {
			return repository{}, err
		}
		return repository{}, errNoCommits
	}
	shallow, prefix, _ := strings.Cut(string(out.text), "\n")
	return repository{shallow: shallow == "true", prefix: strings.TrimSpace(prefix)}, nil
}

// scope limits a command to a path, or to the directory where that is only a
// part of a repository. At the top nothing is said: a pathspec would leave out
// commits that change nothing.
func (r repository) scope(path string) []string {
	if path == "." && r.prefix == "" {
		return []string{"--"}
	}
	return []string{"--", path}
}

// roots says to take the commits at the border of a shallow clone for what they
// are: not the ones that added every file.
func (r repository) roots() []string {
	if r.shallow {
		return []string{"-c", "log.showRoot=false"}
	}
	return nil
}

var revisionForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./~^@{}+-]{0,199}$`)

// revision checks a revision that a model wrote and gives the hash of its commit.
func (p *place) revision(ctx context.Context, rev string) (string, error) {
	if !revisionForm.MatchString(rev) || strings.Contains(rev, "..") {
		return "", fmt.Errorf("%.60q: %w", rev, errRevision)
	}
	out, err := p.git(ctx, gitSmall, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		if errors.Is(err, proc.ErrNotFound) || errors.Is(err, errNoRepository) || ctx.Err() != nil {
			return "", err
		}
		return "", fmt.Errorf("no commit %s", rev)
	}
	return strings.TrimSpace(string(out.text)), nil
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
