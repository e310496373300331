package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	mask     = "[masked]"
	sizeMax  = 64 << 20 // a larger file is not read
	shownMax = 120
)

var (
	errForm      = errors.New("neither a line of a file nor a commit")
	errLine      = errors.New("the file has no such line")
	errText      = errors.New("the line is another")
	errMask      = errors.New("nothing of the line is left beside the mask")
	errTooLarge  = errors.New("the file is too large to check")
	errHash      = errors.New("not a commit hash")
	errCommit    = errors.New("git does not know this commit")
	errUntouched = errors.New("the commit does not touch this path")
)

var hashForm = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// checker checks evidence against one directory.
type checker struct {
	dir   string
	root  *os.Root            // keeps every path inside the directory, links too
	files map[string][]string // lines of files already read
}

func newChecker(dir string) (*checker, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &checker{dir: dir, root: root, files: map[string][]string{}}, nil
}

func (j *checker) close() {
	if err := j.root.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
}

func (j *checker) checkEvidence(e evidence) error {
	if e.Commit != "" {
		return j.checkCommit(e)
	}
	if e.Path == "" || e.Line <= 0 {
		return errForm
	}
	lines, err := j.readLines(e.Path)
	if err != nil {
		return err
	}
	if e.Line > len(lines) {
		return fmt.Errorf("%w: %d of %d", errLine, e.Line, len(lines))
	}
	if e.Text == "" && len(lines[e.Line-1]) > quotedMax {
		return nil // shown by its place alone
	}
	return matchLine(lines[e.Line-1], e.Text)
}

// quotedMax is how long a line may be that a report must quote.
const quotedMax = 200

func (j *checker) readLines(path string) ([]string, error) {
	if lines, ok := j.files[path]; ok {
		return lines, nil
	}
	f, err := j.root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, sizeMax+1))
	if err != nil {
		return nil, err
	}
	if len(data) > sizeMax {
		return nil, errTooLarge
	}
	lines := strings.Split(string(data), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	j.files[path] = lines
	return lines, nil
}

// matchLine compares a line of a file with the text that a report shows for it. Only
// a carriage return at the end, which is part of the line break, may be missing.
func matchLine(line, text string) error {
	line = strings.TrimSuffix(line, "\r")
	text = strings.TrimSuffix(text, "\r")
	if line == text {
		return nil
	}
	if strings.Contains(text, mask) {
		return matchMasked(line, strings.Split(text, mask))
	}
	return fmt.Errorf("%w: %q", errText, shorten(line))
}

// matchMasked matches the parts around masks in place: the first begins the line,
// the last ends it, the others follow in order, and each mask hides something.
func matchMasked(line string, parts []string) error {
	if !strings.ContainsFunc(strings.Join(parts, ""), func(r rune) bool { return !unicode.IsSpace(r) }) {
		return errMask
	}
	rest, ok := strings.CutPrefix(line, parts[0])
	if !ok {
		return fmt.Errorf("%w before the mask", errText)
	}
	for i, part := range parts[1:] {
		if i == len(parts)-2 {
			if head, ok := strings.CutSuffix(rest, part); ok && head != "" {
				return nil
			}
			return fmt.Errorf("%w after the mask", errText)
		}
		_, size := firstRune(rest)
		at := strings.Index(rest[size:], part)
		if at < 0 || size == 0 {
			return fmt.Errorf("%w between masks", errText)
		}
		rest = rest[size+at+len(part):]
	}
	return nil
}

func firstRune(s string) (r rune, size int) {
	for i, c := range s {
		if i > 0 {
			return r, i
		}
		r = c
	}
	return r, len(s)
}

func (j *checker) checkCommit(e evidence) error {
	if !hashForm.MatchString(e.Commit) {
		return errHash
	}
	if _, err := j.runGit("cat-file", "-e", e.Commit+"^{commit}"); err != nil {
		return fmt.Errorf("%w: %w", errCommit, err)
	}
	if e.Path == "" {
		return nil
	}
	// Paths are relative to the directory, or to the top of the repository when
	// the directory is below it; a merge is compared with each of its parents.
	for _, relative := range []string{"--relative", "--no-relative"} {
		out, err := j.runGit("show", "-m", "--no-ext-diff", "--no-textconv", "--no-show-signature", "--format=", "--name-only", "--no-renames", "-z", relative, e.Commit)
		if err != nil {
			return err
		}
		for name := range bytes.SplitSeq(out, []byte{0}) {
			if strings.TrimLeft(string(name), "\n") == e.Path {
				return nil
			}
		}
	}
	return errUntouched
}

// safeGitOptions are the options of every git command. The repository may be anybody's, and its settings name programs:
// for signatures, of a remote that missing objects come from, for hooks and file monitors.
var safeGitOptions = []string{"--no-pager", "--no-optional-locks", "--no-replace-objects",
	"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.sshCommand=false", "-c", "protocol.allow=never",
	"-c", "log.showSignature=false", "-c", "gpg.program=false", "-c", "diff.external=", "-c", "credential.helper="}

// gitEnvironment returns ours without variables that lead git elsewhere, and without settings
// of the user and the system.
func gitEnvironment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") })
	return append(env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_TERMINAL_PROMPT=0")
}

func (j *checker) runGit(args ...string) ([]byte, error) {
	cmd := exec.Command("git", append(append([]string{"-C", j.dir}, safeGitOptions...), args...)...)
	cmd.Env = gitEnvironment()
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(shorten(string(exit.Stderr))))
	}
	return out, err
}

func shorten(s string) string {
	if len(s) <= shownMax {
		return s
	}
	return strings.ToValidUTF8(s[:shownMax], "") + "…"
}
