package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-run/troupe/tool"
)

// Limits of git_log.
const (
	logCommitsDefault = 30
	logCommitsMax     = 500
	logCountMax       = 10_000           // commits are counted up to here
	gitPatience       = 15 * time.Second // then what git has found so far is the answer
	hashShown         = 12
)

var errSlow = errors.New("git took too long")

type logArgs struct {
	Path  string `json:"path,omitempty" jsonschema:"only commits that changed it"`
	Limit int    `json:"limit,omitempty" jsonschema:"default 30"`
}

// gitLog makes git_log, newest first:
//
//	hash<TAB>YYYY-MM-DD<TAB>author<TAB>subject     12 characters of the hash
//	[N commits shown of T(; shallow clone)]        the last line
//
// T is "10000 or more" where counting stopped. Without commits, repository or
// git the result is [no commits], [not a git repository] or [git is not installed].
func (t *gitTools) gitLog() (tool.Tool, error) {
	return newReadTool("git_log", "Commits, newest first: hash, date, author, subject.",
		func(ctx context.Context, in logArgs) (string, error) {
			return t.readHistory(ctx, "git_log", in.Path, func(v *gitView, path string) (string, error) { return v.logText(ctx, path, in) })
		})
}

func (v *gitView) logText(ctx context.Context, path string, in logArgs) (string, error) {
	limit := min(in.Limit, logCommitsMax)
	if limit <= 0 {
		limit = logCommitsDefault
	}
	scope, read := v.pathScope(path), limit
	if len(scope) > 1 { // git compares the trees of all commits to find those of a path: it lists and counts them in one pass
		read = logCountMax
	}
	args := []string{"log", "-z", "--no-color", "--date=short", "--format=%H%x1f%ad%x1f%aN%x1f%s", "-n", strconv.Itoa(read), "HEAD"}
	out, slow, err := v.logLimited(ctx, append(args, scope...)...)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	found := 0
	for record := range bytes.SplitSeq(out.text, []byte{0}) {
		f := strings.SplitN(string(record), "\x1f", 4)
		if len(f) < 4 || len(f[0]) < hashShown {
			continue
		}
		if found++; found <= limit {
			fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", f[0][:hashShown], commitField(f[1]), commitField(f[2]), commitField(f[3]))
		}
	}
	shown := min(found, limit)
	count := ""
	switch {
	case slow && found > limit: // another command would take as long
		count = strconv.Itoa(shown) + " or more"
	case slow || out.cut || found == limit && read == limit:
		count = v.countCommits(ctx, scope, shown)
	default:
		count = countText(found)
	}
	fmt.Fprintf(&b, "[%d commits shown of %s", shown, count)
	if v.shallow {
		b.WriteString("; shallow clone")
	}
	b.WriteString("]")
	return b.String(), nil
}

// countCommits returns the number of commits, as text; shown of them are known.
func (v *gitView) countCommits(ctx context.Context, scope []string, shown int) string {
	args := []string{"rev-list", "--count", "--max-count=" + strconv.Itoa(logCountMax), "HEAD"}
	out, slow, err := v.logLimited(ctx, append(args, scope...)...)
	total, wrong := strconv.Atoi(strings.TrimSpace(string(out.text)))
	if err != nil || slow || wrong != nil {
		return strconv.Itoa(shown) + " or more"
	}
	return countText(total)
}

func countText(total int) string {
	if total >= logCountMax {
		return strconv.Itoa(total) + " or more"
	}
	return strconv.Itoa(total)
}

// logLimited runs a git command for a limited time; slow reports that the time ended it and
// that its output is only the beginning.
func (v *gitView) logLimited(ctx context.Context, args ...string) (out gitOutput, slow bool, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, gitPatience, errSlow)
	defer cancel()
	out, err = v.runLog(limited, gitBytesMax, args...)
	if errors.Is(err, errSlow) && ctx.Err() == nil {
		return out, true, nil
	}
	return out, false, err
}
