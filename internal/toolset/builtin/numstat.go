package builtin

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/tool"
)

// Limits of git_numstat.
const (
	numstatCommitsDefault = 300
	numstatCommitsMax     = 5000
	numstatFilesMax       = 20
	numstatAuthorsMax     = 10
	numstatLargeMax       = 5
)

type numstatArgs struct {
	Limit int `json:"limit,omitempty" jsonschema:"commits, default 300"`
}

// gitNumstat makes git_numstat, about the newest commits that are no merges:
//
//	# files
//	commits<TAB>added<TAB>deleted<TAB>authors<TAB>path                           20, by commits, then changed lines
//	# authors
//	commits<TAB>name                                                             10
//	# large commits
//	hash<TAB>date<TAB>author<TAB>added<TAB>deleted<TAB>files<TAB>subject         5, by changed lines
//	[N commits(; shallow clone)]
//
// Files that are no longer there are left out; a renamed file counts under its
// new name from the renaming on. The commits at the border of a shallow clone count, but what they seem
// to add does not. Without history the result is as that of git_log.
func (t *gitTools) gitNumstat() (tool.Tool, error) {
	return newReadTool("git_numstat", "Where the history changed most: hot files, authors, large commits.",
		func(ctx context.Context, in numstatArgs) (string, error) {
			return answerOrError(t.numstatText(ctx, in))
		})
}

// commitChange is one commit and its changes of files.
type commitChange struct {
	hash, date, author, subject string
	files                       []fileChange
	added, deleted              int
}

type fileChange struct {
	path           string
	added, deleted int
}

func (t *gitTools) numstatText(ctx context.Context, in numstatArgs) (string, error) {
	v, err := t.openHistory(ctx)
	if err != nil {
		return "", err
	}
	defer v.removeView()
	limit := min(in.Limit, numstatCommitsMax)
	if limit <= 0 {
		limit = numstatCommitsDefault
	}
	changes, partly, err := v.readChanges(ctx, limit)
	if err != nil {
		return "", err
	}
	for i := range changes {
		changes[i].files = slices.DeleteFunc(changes[i].files, func(f fileChange) bool { return t.ws.isExcluded(f.path) })
	}
	var b strings.Builder
	b.WriteString("# files\n")
	t.writeHotFiles(&b, changes)
	b.WriteString("# authors\n")
	writeAuthors(&b, changes)
	b.WriteString("# large commits\n")
	largeCommits(&b, changes)
	fmt.Fprintf(&b, "[%d commits", len(changes))
	if v.shallow {
		b.WriteString("; shallow clone")
	}
	if partly {
		b.WriteString("; older ones not read")
	}
	b.WriteString("]")
	return b.String(), nil
}

// readChanges reads the newest commits that are no merges, in two commands at once: git compares the trees and files
// of one commit after the other, on one core. Both read the refs of one view, so no commit is in both or in none. partly
// reports that older commits are missing.
func (v *gitView) readChanges(ctx context.Context, limit int) (changes []commitChange, partly bool, err error) {
	newer, older := v.startNumstat(ctx, 0, limit-limit/2), v.startNumstat(ctx, limit-limit/2, limit/2)
	first, second := <-newer, <-older
	first.crash.pass()
	second.crash.pass()
	switch changes = parseNumstat(first.out.text); {
	case first.err != nil:
		return nil, false, first.err
	case first.slow || first.out.cut:
		return changes, true, nil
	case second.err != nil:
		return nil, false, second.err
	}
	return append(changes, parseNumstat(second.out.text)...), second.slow || second.out.cut, nil
}

// numstatResult is what one command answered.
type numstatResult struct {
	out   gitOutput
	slow  bool
	err   error
	crash crash
}

// startNumstat starts to read commits behind the newest ones that are skipped.
func (v *gitView) startNumstat(ctx context.Context, skip, limit int) <-chan *numstatResult {
	answer := make(chan *numstatResult, 1)
	if limit == 0 {
		answer <- &numstatResult{}
		return answer
	}
	args := []string{"log", "-z", "-M", "--numstat", "--no-merges", "--no-ext-diff", "--no-textconv", "--ignore-submodules",
		"--no-color", "--date=short", "--format=%x1e%H%x1f%ad%x1f%aN%x1f%s", "--skip=" + strconv.Itoa(skip), "-n", strconv.Itoa(limit)}
	args = append(append(args, v.relativeFlags()...), "HEAD")
	go func() {
		r := &numstatResult{}
		defer func() { answer <- r }()
		defer r.crash.catch()
		r.out, r.slow, r.err = v.logLimited(ctx, append(args, v.pathScope(".")...)...)
	}()
	return answer
}

// parseNumstat reads `git log -z --numstat`: a commit is a token that begins
// with 0x1e, a file is "added\tdeleted\tpath", and a renamed one has an empty
// path and two more tokens, the old and the new path.
func parseNumstat(text []byte) []commitChange {
	var changes []commitChange
	tokens := bytes.Split(text, []byte{0})
	for i := 0; i < len(tokens); i++ {
		token := strings.TrimPrefix(string(tokens[i]), "\n")
		if head, ok := strings.CutPrefix(token, "\x1e"); ok {
			if f := strings.SplitN(head, "\x1f", 4); len(f) == 4 && len(f[0]) >= hashShown {
				changes = append(changes, commitChange{hash: f[0][:hashShown], date: commitField(f[1]), author: commitField(f[2]), subject: commitField(f[3])})
			}
			continue
		}
		f := strings.SplitN(token, "\t", 3)
		if len(f) != 3 || len(changes) == 0 {
			continue
		}
		fc := fileChange{path: f[2], added: parseCount(f[0]), deleted: parseCount(f[1])}
		if fc.path == "" {
			if i += 2; i >= len(tokens) {
				break
			}
			fc.path = string(tokens[i])
		}
		last := &changes[len(changes)-1]
		last.files = append(last.files, fc)
		last.added += fc.added
		last.deleted += fc.deleted
	}
	return changes
}

// parseCount parses a count; the "-" of a binary file is 0.
func parseCount(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

func (t *gitTools) writeHotFiles(b *strings.Builder, changes []commitChange) {
	type hot struct {
		path                    string
		commits, added, deleted int
		authors                 map[string]bool
	}
	byPath := map[string]*hot{}
	for _, c := range changes {
		for _, f := range c.files {
			h := byPath[f.path]
			if h == nil {
				h = &hot{path: f.path, authors: map[string]bool{}}
				byPath[f.path] = h
			}
			h.commits++
			h.added += f.added
			h.deleted += f.deleted
			h.authors[c.author] = true
		}
	}
	files := slices.SortedFunc(maps.Values(byPath), func(a, b *hot) int {
		return cmp.Or(cmp.Compare(b.commits, a.commits), cmp.Compare(b.added+b.deleted, a.added+a.deleted), cmp.Compare(a.path, b.path))
	})
	n := 0
	for _, h := range files {
		if n == numstatFilesMax {
			return
		}
		if _, there := t.ws.fileSize(h.path); there {
			fmt.Fprintf(b, "%d\t%d\t%d\t%d\t%s\n", h.commits, h.added, h.deleted, len(h.authors), printableName(h.path))
			n++
		}
	}
}

func writeAuthors(b *strings.Builder, changes []commitChange) {
	commits := map[string]int{}
	for _, c := range changes {
		commits[c.author]++
	}
	names := slices.SortedFunc(maps.Keys(commits), func(x, y string) int {
		return cmp.Or(cmp.Compare(commits[y], commits[x]), cmp.Compare(x, y))
	})
	for _, name := range names[:min(len(names), numstatAuthorsMax)] {
		fmt.Fprintf(b, "%d\t%s\n", commits[name], name)
	}
}

func largeCommits(b *strings.Builder, changes []commitChange) {
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, func(x, y commitChange) int { return cmp.Compare(y.added+y.deleted, x.added+x.deleted) })
	for _, c := range sorted[:min(len(sorted), numstatLargeMax)] {
		if c.added+c.deleted > 0 {
			fmt.Fprintf(b, "%s\t%s\t%s\t%d\t%d\t%d\t%s\n", c.hash, c.date, c.author, c.added, c.deleted, len(c.files), c.subject)
		}
	}
}
