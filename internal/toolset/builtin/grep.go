package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/tool"
)

// Limits of grep.
const (
	grepMatchesMax    = 100       // lines of a result
	grepLineShownMax  = 300       // bytes of a line in the result
	grepFileMax       = 256 << 20 // bytes of a file; larger files are skipped
	grepLineMax       = 2 << 20   // bytes of a line that are searched
	grepPatternMax    = 16 << 10  // bytes
	grepWorkers       = 4
	grepFilesAtOnce   = 16   // neighbors, which are often in one directory, for one worker
	grepLinesPerCheck = 4096 // lines between checks for cancellation
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
// A last line follows. Each part in parentheses appears only when it applies:
//
//	[M matches in F files; S files searched(; first N shown)(; K large files skipped)(; L lines of further forms)]
//
// M counts all matching lines, F the files that have one, S the files that were searched to their
// end, N the lines of the result before this one, K the files above 256 MiB, and L, which M
// includes, the lines whose forms were not told apart (formsMax). Binary files are not searched, and of a
// line only the first 2 MiB. A file with the byte-order mark of UTF-16 is searched as UTF-8.
//
// With group, a line of the result represents all lines of its form (lineForm). The most frequent form comes
// first, and "to" names the last line of a form that has several:
//
//	path:line:[count× to path:line] text
//
// A glob without a slash matches the base name of a file.
func (t *fileTools) grepTool() (tool.Tool, error) {
	return newReadTool("grep", "Search file contents. Answers path:line:text, at most 100 lines, and a count.",
		func(ctx context.Context, in grepArgs) (string, error) {
			if len(in.Pattern) > grepPatternMax {
				return "", fmt.Errorf("pattern is %d bytes; the maximum is %d", len(in.Pattern), grepPatternMax)
			}
			if in.Limit < 0 || in.Limit > grepMatchesMax {
				return "", fmt.Errorf("limit is %d; it must be 1 to %d", in.Limit, grepMatchesMax)
			}
			pattern, err := compileLinePattern(in.Pattern)
			if err != nil {
				return "", fmt.Errorf("pattern: %w", err)
			}
			names, err := t.chooseFiles(ctx, in.Path, in.Glob)
			if err != nil {
				return "", err
			}
			s := &grepSearch{
				linesMax: cmp.Or(in.Limit, grepMatchesMax),
				workers:  grepWorkers,
				ws:       t.ws,
				mask:     t.mask,
				pattern:  pattern,
				names:    names,
				found:    make([]fileMatches, len(names)),
			}
			if in.Group {
				s.forms, s.workers = &formCounts{}, 1 // one worker: forms meet the files in their order
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
	dir, err := t.ws.resolvePath("grep", dir)
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
	names, err := t.files.listFiles(ctx)
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
	forms    *formCounts // nil without group
	ws       *toolWorkspace
	mask     *redact.Masker
	pattern  *linePattern
	names    []string
	found    []fileMatches // by index of names: each worker writes its own
}

// fileMatches is what was found in one file.
type fileMatches struct {
	lines    []string
	matches  int
	searched bool
	tooLarge bool
}

// searchFiles distributes the files over a few workers.
func (s *grepSearch) searchFiles(ctx context.Context) error {
	var next atomic.Int64
	var workers sync.WaitGroup
	var crashed crash
	for range s.workers {
		workers.Go(func() {
			defer crashed.catch()
			lines, dirs := newLineReader(), &dirStack{ws: s.ws}
			defer lines.release()
			defer dirs.closeDirs()
			for ctx.Err() == nil {
				i := int(next.Add(grepFilesAtOnce)) - grepFilesAtOnce
				if i >= len(s.names) {
					return
				}
				for end := min(i+grepFilesAtOnce, len(s.names)); i < end && ctx.Err() == nil; i++ {
					s.searchFile(ctx, i, lines, dirs)
				}
			}
		})
	}
	workers.Wait()
	crashed.pass()
	return ctx.Err()
}

// searchFile searches one file. A file that cannot be read to its end counts as not searched.
func (s *grepSearch) searchFile(ctx context.Context, i int, lines *lineReader, dirs *dirStack) {
	name := s.names[i]
	size, ok := dirs.fileSize(name)
	if !ok {
		return // removed, a link or a submodule: not searched
	}
	if size > grepFileMax {
		s.found[i].tooLarge = true
		return
	}
	f, err := dirs.openFile(name)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }() // opened for reading
	lines.reset(io.LimitReader(f, grepFileMax))
	if lines.isBinary() {
		return
	}
	if text, ok := lines.wholeFile(); ok && s.pattern.rulesOut(text) {
		s.found[i].searched = true
		return
	}
	if found, err := s.matchLines(ctx, name, lines); err == nil {
		s.found[i] = found
	}
}

func (s *grepSearch) matchLines(ctx context.Context, name string, lines *lineReader) (fileMatches, error) {
	result := fileMatches{searched: true}
	masker := s.mask.NewLineMasker(name)
	for n := 1; ; n++ {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return result, nil
		}
		if n%grepLinesPerCheck == 0 && ctx.Err() != nil {
			return result, ctx.Err()
		}
		if err != nil {
			return result, err
		}
		line = masker.MaskLine(line)
		if !s.pattern.matches(line) {
			continue
		}
		result.matches++
		switch {
		case s.forms != nil:
			s.forms.add(linePlace{name, n}, line)
		case len(result.lines) < s.linesMax:
			result.lines = append(result.lines, fmt.Sprintf("%s:%d:%s\n", printableName(name), n, clipLine(line, grepLineShownMax)))
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
		if f.tooLarge {
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
	total := matches
	if s.forms != nil {
		total, lines = len(s.forms.forms), s.forms.write(&b, s.linesMax)
	}
	fmt.Fprintf(&b, "[%d matches in %d files; %d files searched", matches, files, searched)
	if total > lines {
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
