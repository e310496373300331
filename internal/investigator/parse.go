package investigator

import (
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// Readers of tool results. Each accepts any text and skips what does not have the agreed
// form, so that garbage yields nothing instead of nonsense.

// fileLine is one line that grep or read_file showed.
type fileLine struct {
	path string
	line int
	text string
}

// asEvidence is the line as evidence. A line that cannot be quoted is evidence by its place alone.
func (h fileLine) asEvidence() evidence {
	if !isQuotable(h.text) {
		return evidence{Path: h.path, Line: h.line}
	}
	return evidence{Path: h.path, Line: h.line, Text: h.text}
}

// lineForm is the lines of one form.
type lineForm struct {
	fileLine // the first
	count    int
	lastPath string
	lastLine int
}

// formLine is how a grep with group begins the text of a line.
var formLine = lazyregexp.New(`^\[(\d+)×(?: to (.+?):(\d+))?\] (.*)$`)

// forms returns the forms that a grep with group found.
func (s grepResult) forms() (forms []lineForm) {
	for _, h := range s.hits {
		if m := formLine.FindStringSubmatch(h.text); m != nil {
			forms = append(forms, lineForm{fileLine{h.path, h.line, m[4]}, parseNumber(m[1]), m[2], parseNumber(m[3])})
		}
	}
	return forms
}

// grepResult is what one grep found.
type grepResult struct {
	hits     []fileLine
	matches  int // in all, also those not shown
	files    int // files with matches
	searched int
	partial  bool // more matched than were shown
	skipped  int  // large files
	complete bool // the last line was there
}

var (
	grepLine = lazyregexp.New(`^(.+?):(\d+):(.*)$`)
	grepLast = lazyregexp.New(`^\[(\d+) match(?:es)? in (\d+) files?; (\d+) files? searched(.*)\]$`)
	skipped  = lazyregexp.New(`(\d+) large files? skipped`)
)

func parseGrep(text string) grepResult {
	var s grepResult
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := grepLast.FindStringSubmatch(line); m != nil {
			s.matches, s.files, s.searched, s.complete = parseNumber(m[1]), parseNumber(m[2]), parseNumber(m[3]), true
			s.partial = strings.Contains(m[4], "shown") || strings.Contains(m[4], "further forms")
			if k := skipped.FindStringSubmatch(m[4]); k != nil {
				s.skipped = parseNumber(k[1])
			}
			continue
		}
		if m := grepLine.FindStringSubmatch(line); m != nil && parseNumber(m[2]) > 0 {
			s.hits = append(s.hits, fileLine{m[1], parseNumber(m[2]), m[3]})
		}
	}
	s.matches = max(s.matches, len(s.hits))
	return s
}

// fileExcerpt is a part of a file.
type fileExcerpt struct {
	lines []fileLine
	total int
}

var (
	readLine = lazyregexp.New(`^(\d+)\t(.*)$`)
	readLast = lazyregexp.New(`^\[lines (\d+)-(\d+) of (\d+)\]$`)
)

func parseRead(path, text string) fileExcerpt {
	var p fileExcerpt
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := readLast.FindStringSubmatch(line); m != nil {
			p.total = parseNumber(m[3])
		} else if m := readLine.FindStringSubmatch(line); m != nil {
			p.lines = append(p.lines, fileLine{path, parseNumber(m[1]), m[2]})
		}
	}
	return p
}

// dirEntry is one name of a directory.
type dirEntry struct {
	name string
	dir  bool
	link bool
	size int64
}

func parseList(text string) (entries []dirEntry, cut bool) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		name, size, sized := strings.Cut(line, "\t")
		switch {
		case line == "" || strings.HasPrefix(line, "["):
			cut = cut || strings.HasSuffix(line, "more entries]")
		case sized:
			if n, err := strconv.ParseInt(size, 10, 64); err == nil {
				entries = append(entries, dirEntry{name: name, size: n})
			}
		case strings.HasSuffix(line, "/"):
			entries = append(entries, dirEntry{name: strings.TrimSuffix(line, "/"), dir: true})
		case strings.HasSuffix(line, "@"):
			entries = append(entries, dirEntry{name: strings.TrimSuffix(line, "@"), link: true})
		}
	}
	return entries, cut
}

// extStat counts the files with one extension.
type extStat struct {
	ext   string
	files int
	bytes int64
}

type sizedFile struct {
	path string
	size int64
}

// globResult is the result of a glob about the matching files.
type globResult struct {
	paths    []string
	files    int
	bytes    int64
	exts     []extStat
	largest  []sizedFile
	complete bool
}

var (
	globCount = lazyregexp.New(`^\[(\d+) files?, (\d+) bytes?\b.*\]$`)
	extItem   = lazyregexp.New(`^(\S+) (\d+) (\d+)$`)
	sizedItem = lazyregexp.New(`^(.+) (\d+)$`)
)

func parseGlob(text string) globResult {
	var g globResult
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case globCount.MatchString(line):
			m := globCount.FindStringSubmatch(line)
			g.files, g.bytes, g.complete = parseNumber(m[1]), int64(parseNumber(m[2])), true
		case strings.HasPrefix(line, "[extensions: "):
			for _, item := range splitItems(line, "[extensions: ") {
				if m := extItem.FindStringSubmatch(item); m != nil {
					g.exts = append(g.exts, extStat{m[1], parseNumber(m[2]), int64(parseNumber(m[3]))})
				}
			}
		case strings.HasPrefix(line, "[largest: "):
			for _, item := range splitItems(line, "[largest: ") {
				if m := sizedItem.FindStringSubmatch(item); m != nil {
					g.largest = append(g.largest, sizedFile{m[1], int64(parseNumber(m[2]))})
				}
			}
		case line == "" || strings.HasPrefix(line, "["):
		default:
			g.paths = append(g.paths, line)
		}
	}
	return g
}

func splitItems(line, prefix string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, prefix), "]"), "; ")
}

// commit is one line of git_log, or of numstat's large commits.
type commit struct {
	hash, date, author, subject string
	added, deleted, files       int
}

var (
	hashForm = lazyregexp.New(`^[0-9a-f]{7,64}$`)
	logLast  = lazyregexp.New(`^\[(\d+) commits? shown of (\d+)(.*)\]$`)
)

// gitHistory is the result of git_log or git_numstat.
type gitHistory struct {
	commits []commit // git_log's, or numstat's large ones
	total   int
	shallow bool
	hot     []hotFile
	authors []authorStat
	state   string // "[no commits]", "[not a git repository]", "[git is not installed]"
}

type hotFile struct {
	path                             string
	commits, added, deleted, authors int
}

type authorStat struct {
	name    string
	commits int
}

func parseLog(text string) gitHistory {
	var h gitHistory
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := logLast.FindStringSubmatch(line); m != nil {
			h.total, h.shallow = parseNumber(m[2]), strings.Contains(m[3], "shallow")
			continue
		}
		if strings.HasPrefix(line, "[") {
			h.state = line
			continue
		}
		if f := strings.SplitN(line, "\t", 4); len(f) == 4 && hashForm.MatchString(f[0]) {
			h.commits = append(h.commits, commit{hash: f[0], date: f[1], author: f[2], subject: f[3]})
		}
	}
	return h
}

var numstatLast = lazyregexp.New(`^\[(\d+) commits?(.*)\]$`)

func parseNumstat(text string) gitHistory {
	var h gitHistory
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		f := strings.Split(line, "\t")
		switch {
		case strings.HasPrefix(line, "# "):
			section = line
		case numstatLast.MatchString(line):
			m := numstatLast.FindStringSubmatch(line)
			h.total, h.shallow = parseNumber(m[1]), strings.Contains(m[2], "shallow")
		case strings.HasPrefix(line, "[") && len(f) == 1:
			h.state = line
		case section == "# files" && len(f) >= 5:
			h.hot = append(h.hot, hotFile{strings.Join(f[4:], "\t"), parseNumber(f[0]), parseNumber(f[1]), parseNumber(f[2]), parseNumber(f[3])})
		case section == "# authors" && len(f) >= 2:
			h.authors = append(h.authors, authorStat{strings.Join(f[1:], "\t"), parseNumber(f[0])})
		case section == "# large commits" && len(f) >= 7 && hashForm.MatchString(f[0]):
			h.commits = append(h.commits, commit{hash: f[0], date: f[1], author: f[2],
				added: parseNumber(f[3]), deleted: parseNumber(f[4]), files: parseNumber(f[5]), subject: strings.Join(f[6:], "\t")})
		}
	}
	return h
}

// parseNumber reads digits; anything else, or what overflows, is 0.
func parseNumber(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
