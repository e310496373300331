package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/troupe-run/troupe/internal/multimatch"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/tool"
)

// Limits of grep.
const (
	grepMatchesMax  = 100       // lines shown
	grepLineBytes   = 300       // of a line are shown
	grepFileMax     = 256 << 20 // larger files are skipped
	grepLineMax     = 2 << 20   // only the beginning of a longer line is searched
	grepPatternMax  = 16 << 10
	grepWorkers     = 4
	grepLinesPerCtx = 4096
)

type grepArgs struct {
	Pattern string `json:"pattern" jsonschema:"RE2 regular expression"`
	Path    string `json:"path,omitempty" jsonschema:"file or directory, default ."`
	Glob    string `json:"glob,omitempty" jsonschema:"such as *.go or src/**/*.{ts,js}"`
	Limit   int    `json:"limit,omitempty" jsonschema:"lines to list, at most 100; all are counted"`
	Group   bool   `json:"group,omitempty" jsonschema:"list lines that differ only in numbers and ids once, with their count"`
}

// grepTool makes the tool grep. Its result lists the matching lines, sorted by path, then line:
//
//	path:line:text   clipped at 300 bytes with the suffix " …[line clipped]"
//
// A last line follows; each part in parentheses appears only when it applies:
//
//	[M matches in F files; S files searched(; first N shown)(; K large files skipped)]
//
// With group, a line stands for all lines of its form, the most frequent form first, and N counts
// forms. "to" names the last line of the form:
//
//	path:line:[count× to path:line] text
//
// Matches of forms beyond formsMax are in M, and before the bracket closes: "; L lines of further forms".
// M counts lines. grep does not search binary files or files of more than 256 MiB, and of a line only
// the first 2 MiB.
// A glob without a slash matches the base name of a file.
func (t *fileTools) grepTool() (tool.Tool, error) {
	return newReadTool("grep", "Search file contents. Answers path:line:text, at most 100 lines, and a count.",
		func(ctx context.Context, in grepArgs) (string, error) {
			if len(in.Pattern) > grepPatternMax {
				return "", fmt.Errorf("the pattern is %d bytes, at most %d are allowed", len(in.Pattern), grepPatternMax)
			}
			re, err := regexp.Compile(in.Pattern)
			if err != nil {
				return "", fmt.Errorf("pattern: %w", err)
			}
			names, err := t.chooseFiles(ctx, in.Path, in.Glob)
			if err != nil {
				return "", err
			}
			if in.Limit < 0 || in.Limit > grepMatchesMax {
				return "", fmt.Errorf("limit is %d, it must be 1 to %d", in.Limit, grepMatchesMax)
			}
			s := &grepSearch{linesMax: cmp.Or(in.Limit, grepMatchesMax), workers: grepWorkers, ws: t.ws, mask: t.mask, re: re, words: literalPrefilter(in.Pattern), names: names, found: make([]grepMatches, len(names))}
			if in.Group {
				s.forms, s.workers = &formCounts{}, 1 // the files in their order
			}
			if err := s.searchFiles(ctx); err != nil {
				return "", err
			}
			return s.resultText(), nil
		})
}

// chooseFiles lists the files that a path and a glob name. A file that is named by its
// path is searched even if git ignores it.
func (t *fileTools) chooseFiles(ctx context.Context, dir, glob string) ([]string, error) {
	dir, err := t.ws.resolvePath(dir)
	if err != nil {
		return nil, err
	}
	info, err := t.ws.statPath(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{dir}, nil
	}
	names, err := (&fileIndex{t.ws}).listFiles(ctx)
	if err != nil {
		return nil, err
	}
	names = namesWithin(names, dir)
	if glob == "" {
		return names, nil
	}
	match, err := compileGlob(glob, true)
	if err != nil {
		return nil, fmt.Errorf("glob: %w", err)
	}
	var kept []string
	for _, name := range names {
		if match(name) || dir != "." && match(strings.TrimPrefix(name, dir+"/")) {
			kept = append(kept, name)
		}
	}
	return kept, nil
}

// grepSearch is one grep over many files.
type grepSearch struct {
	linesMax int // lines shown
	workers  int
	forms    *formCounts // nil: each line counts by itself
	ws       *toolWorkspace
	mask     *redact.Masker
	re       *regexp.Regexp
	words    *multimatch.WordSet // nil: every line needs the regular expression
	names    []string
	found    []grepMatches // by index of names: each worker writes its own
}

type grepMatches struct {
	lines    []string
	matches  int
	searched bool
	large    bool
}

// searchFiles distributes the files over a few workers.
func (s *grepSearch) searchFiles(ctx context.Context) error {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range s.workers {
		workers.Go(func() {
			lines := newLineReader()
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(s.names) {
					return
				}
				s.searchFile(ctx, i, lines)
			}
		})
	}
	workers.Wait()
	return ctx.Err()
}

// searchFile searches one file. A file that cannot be read to its end counts as not searched.
func (s *grepSearch) searchFile(ctx context.Context, i int, lines *lineReader) {
	name := s.names[i]
	size, ok := s.ws.fileSize(name)
	if !ok {
		return // removed, a link or a submodule: not searched
	}
	if size > grepFileMax {
		s.found[i].large = true
		return
	}
	f, _, err := s.ws.openFile(name)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }() // it is only read
	lines.reset(io.LimitReader(f, grepFileMax))
	if lines.isBinary() {
		return
	}
	if found, err := s.matchLines(ctx, name, lines); err == nil {
		s.found[i] = found
	}
}

func (s *grepSearch) matchLines(ctx context.Context, name string, lines *lineReader) (grepMatches, error) {
	result := grepMatches{searched: true}
	masked := s.mask.NewLineMasker(name)
	for n := 1; ; n++ {
		line, err := lines.next()
		if errors.Is(err, io.EOF) || n%grepLinesPerCtx == 0 && ctx.Err() != nil {
			return result, nil
		}
		if err != nil {
			return result, err
		}
		line = masked.MaskLine(line)
		if s.words != nil && !s.words.HasMatch(line) || !s.re.Match(line) {
			continue
		}
		result.matches++
		switch {
		case s.forms != nil:
			s.forms.add(linePlace{name, n}, line)
		case len(result.lines) < s.linesMax:
			result.lines = append(result.lines, fmt.Sprintf("%s:%d:%s\n", printableName(name), n, clipLine(line, grepLineBytes)))
		}
	}
}

func (s *grepSearch) resultText() string {
	var b strings.Builder
	lines, matches, files, searched, large := 0, 0, 0, 0, 0
	for _, f := range s.found {
		matches += f.matches
		if f.searched {
			searched++
		}
		if f.large {
			large++
		}
		if f.matches > 0 {
			files++
		}
		for _, line := range f.lines[:min(len(f.lines), s.linesMax-lines)] {
			b.WriteString(line)
			lines++
		}
	}
	all := matches
	if s.forms != nil {
		all, lines = len(s.forms.forms), s.forms.write(&b, s.linesMax)
	}
	fmt.Fprintf(&b, "[%d matches in %d files; %d files searched", matches, files, searched)
	if all > lines {
		fmt.Fprintf(&b, "; first %d shown", lines)
	}
	if large > 0 {
		fmt.Fprintf(&b, "; %d large files skipped", large)
	}
	if s.forms != nil && s.forms.further > 0 {
		fmt.Fprintf(&b, "; %d lines of further forms", s.forms.further)
	}
	b.WriteString("]")
	return b.String()
}
