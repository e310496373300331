package investigator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// severity orders findings.
type severity string

const (
	high   severity = "high"
	medium severity = "medium"
	low    severity = "low"
	info   severity = "info"
)

var severities = []severity{high, medium, low, info}

func (s severity) rank() int {
	if i := slices.Index(severities, s); i >= 0 {
		return i
	}
	return len(severities)
}

// finding is one claim with the places that show it.
type finding struct {
	Kind     string     `json:"kind"`
	Severity severity   `json:"severity"`
	Title    string     `json:"title"`
	Detail   string     `json:"detail,omitempty"`
	Agent    string     `json:"agent,omitempty"`
	Evidence []evidence `json:"evidence"`
}

// evidence is a line of a file, or a commit (that touches Path, if given).
type evidence struct {
	Path   string `json:"path,omitempty"`
	Line   int    `json:"line,omitempty"`
	Text   string `json:"text,omitempty"`
	Commit string `json:"commit,omitempty"`
}

const (
	clipMark   = " …[line clipped]"
	quotedMax  = 200 // evidence lines longer than this are not quoted: another line says it better
	repeatsMax = 3   // places shown for one claim
)

// isQuotable reports whether a line can be evidence: it is whole, and survives a round trip
// through JSON.
func isQuotable(text string) bool {
	return text != "" && len(text) <= quotedMax && !strings.HasSuffix(text, clipMark) &&
		utf8.ValidString(text) && !strings.ContainsRune(text, utf8.RuneError) && !strings.ContainsAny(text, "\x00\x1b\r")
}

// isCitable reports whether a line can be evidence at least by its place: a line that is only too long is
// shown without its text.
func isCitable(text string) bool { return isQuotable(text) || len(text) > quotedMax }

func (f finding) isValid() bool {
	if f.Kind == "" || f.Title == "" || f.Severity.rank() == len(severities) || len(f.Evidence) == 0 {
		return false
	}
	return !slices.ContainsFunc(f.Evidence, func(e evidence) bool {
		return e.Commit == "" && (e.Path == "" || e.Line <= 0 || strings.HasSuffix(e.Text, clipMark))
	})
}

// agentAnswer is the report of a child to its coordinator: a summary line for people, and lines
// that can be merged: "fact: name: value", one JSON object a finding, "limit: …".
type agentAnswer struct {
	Summary  string
	Facts    []fact
	Findings []finding
	Limits   []string
	stopped  string // why the child stopped early
}

type fact struct{ name, value string }

func (a *agentAnswer) addFact(name, format string, args ...any) {
	a.Facts = append(a.Facts, fact{name, fmt.Sprintf(format, args...)})
}

func (a *agentAnswer) addLimit(format string, args ...any) {
	a.Limits = append(a.Limits, fmt.Sprintf(format, args...))
}

func (a *agentAnswer) addFinding(f finding) {
	if f.isValid() {
		a.Findings = append(a.Findings, f)
	}
}

const (
	answerBytesMax = 1900
	factPrefix     = "fact: "
	limitPrefix    = "limit: "
	limitsMax      = 8
)

// statistics are kinds that say where to look and report no defect: they are listed after
// the other findings of the same severity.
var statistics = []string{kindGap, kindBurst, kindRestart, kindUntested, kindDependency, kindBigFile, kindChurn, kindOwnership, kindLarge,
	kindEntry, kindAPI, kindToolchain, kindLicense, kindSize, kindPeriod, kindLayout, kindRoutine, kindRate}

// sortBySeverity puts severe findings first and keeps the order of equals.
func sortBySeverity(fs []finding) []finding {
	fs = slices.Clone(fs)
	slices.SortStableFunc(fs, func(a, b finding) int {
		if a.Severity != b.Severity {
			return a.Severity.rank() - b.Severity.rank()
		}
		return slices.Index(statistics, a.Kind) - slices.Index(statistics, b.Kind)
	})
	return fs
}

// renderWithin writes the answer within size bytes and the output limit. It drops the least
// severe findings first, then facts, and adds a limit that says how many it dropped.
func (a agentAnswer) renderWithin(t *conversation, size int) string {
	fs := sortBySeverity(a.Findings)
	for keep := len(fs); keep >= 0; keep-- {
		if text := a.formatText(fs[:keep], a.Facts, len(fs)-keep, 0); len(text) <= size && t.tokens.count(text) <= t.max {
			return text
		}
	}
	for keep := len(a.Facts); keep >= 0; keep-- {
		if text := a.formatText(nil, a.Facts[:keep], len(fs), len(a.Facts)-keep); len(text) <= size && t.tokens.count(text) <= t.max {
			return text
		}
	}
	return a.Summary
}

func (a agentAnswer) formatText(fs []finding, facts []fact, lostFindings, lostFacts int) string {
	var b strings.Builder
	b.WriteString(a.Summary + "\n")
	for _, f := range facts {
		b.WriteString(factPrefix + f.name + ": " + f.value + "\n")
	}
	for _, f := range fs {
		b.WriteString(encodeJSON(f) + "\n")
	}
	limits := slices.Compact(slices.Clone(a.Limits))
	if lostFindings+lostFacts > 0 {
		who, _, _ := strings.Cut(a.Summary, ":")
		limits = append(limits, fmt.Sprintf("%s: %s left out, the answer had to be short", who, formatCount(lostFindings+lostFacts, "less severe finding")))
	}
	for i, l := range limits {
		if i == limitsMax {
			b.WriteString(limitPrefix + fmt.Sprintf("and %d more\n", len(limits)-i))
			break
		}
		b.WriteString(limitPrefix + l + "\n")
	}
	return b.String()
}

// encodeJSON keeps <, > and & as they are: evidence is compared byte by byte
// and escapes cost tokens.
func encodeJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return "{}"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var stoppedEarly = lazyregexp.New(`\[stopped early: ([^\]]*)\]`)

// readAnswer reads a child's text. Anything that is not one of the agreed lines
// is skipped; the first such line is the summary.
func readAnswer(agent, text string) agentAnswer {
	var a agentAnswer
	if m := stoppedEarly.FindStringSubmatch(text); m != nil {
		why, _, _ := strings.Cut(m[1], " — ")
		a.stopped = clip.Marked(why, errorShown, "…")
		a.addLimit("%s stopped early (%s): its part is incomplete", agent, a.stopped)
		text = strings.ReplaceAll(text, m[0], "")
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, limitPrefix):
			a.Limits = append(a.Limits, strings.TrimPrefix(line, limitPrefix))
		case strings.HasPrefix(line, factPrefix):
			name, value, ok := strings.Cut(strings.TrimPrefix(line, factPrefix), ": ")
			if ok {
				a.Facts = append(a.Facts, fact{name, value})
			}
		case strings.HasPrefix(line, "{"):
			var f finding
			if json.Unmarshal([]byte(line), &f) != nil {
				continue
			}
			f.Agent = agent
			if f.Detail == "" {
				f.Detail = kindReasons[f.Kind]
			}
			a.addFinding(f)
		case a.Summary == "" && line != "":
			a.Summary = line
		}
	}
	return a
}

func formatCount(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "ch"):
		return formatThousands(int64(n)) + " " + noun + "es"
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ey"):
		return formatThousands(int64(n)) + " " + strings.TrimSuffix(noun, "y") + "ies"
	}
	return formatThousands(int64(n)) + " " + noun + "s"
}

func formatThousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
