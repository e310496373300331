package investigator

import (
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// exceptionWords is the line that names the exception of a stack trace: the last line of one of Python, the first of
// one of Java.
const exceptionWords = `^(?:[\w$]+\.)*[A-Z][\w$]*(?:Error|Exception|Exit|Interrupt)(?::|$)`

var (
	exceptionLine = lazyregexp.New(exceptionWords)
	traceHead     = lazyregexp.New(`^Traceback \(most recent call last\)`)
	// traceRest are further lines of a stack trace that hold words of failing lines.
	traceRest = lazyregexp.New(`^\s+at |^\s+\.\.\. \d+ (?:more|common)|^Caused by: |^\s+raise |^\s+File "`)
)

const (
	incidentsRead = 40  // lines, in file order
	causeShown    = 100 // bytes of an exception in a title
	causesShown   = 3   // exceptions in a title
)

// askIncidents lists failing lines with the stack traces behind them, in file order.
func askIncidents(t *conversation) wantedCall {
	return askLogs(t, levelWords+`|^Traceback \(|`+exceptionWords, "stack traces", incidentsRead)
}

func hasTraces(s grepResult) bool {
	for _, f := range s.forms() {
		if traceHead.MatchString(f.text) || exceptionLine.MatchString(f.text) {
			return true
		}
	}
	return false
}

// incidents maps the template of an exception to that of the failing line which its stack traces follow.
type incidents map[string]string

// readIncidents reads which exceptions follow which failing lines. An exception that also stands elsewhere maps to "".
func readIncidents(s grepResult) incidents {
	of := incidents{}
	var last, head fileLine // the last failing line that is no part of a trace, and the last begin of a trace
	for _, h := range s.hits {
		switch {
		case traceHead.MatchString(h.text):
			head = h
		case exceptionLine.MatchString(h.text):
			follows := last.path == h.path && last.line == h.line-1
			if head.path == h.path && head.line > last.line {
				follows = last.path == h.path && last.line == head.line-1
			}
			cause, failing := templateOf(h.text), ""
			if follows {
				failing = templateOf(last.text)
			}
			if known, ok := of[cause]; ok && known != failing {
				failing = ""
			}
			of[cause] = failing
			head = fileLine{}
		case !traceRest.MatchString(h.text):
			last = h
		}
	}
	return of
}

// fold counts each incident once: an exception is told with the failing line that its stack trace follows, and the
// begin of a trace is no failure of its own.
func (of incidents) fold(all []errorCluster) (folded []errorCluster) {
	place := map[string]int{}
	traces, exceptions := 0, 0
	for _, c := range all {
		switch {
		case traceHead.MatchString(c.forms[0].text):
			traces += c.count
		case exceptionLine.MatchString(c.forms[0].text):
			exceptions += c.count
		default:
			place[c.template] = len(place)
		}
	}
	folded = make([]errorCluster, len(place))
	for _, c := range all {
		if i, ok := place[c.template]; ok {
			folded[i] = c
		}
	}
	for _, c := range all {
		i, known := place[of[c.template]]
		switch {
		case traceHead.MatchString(c.forms[0].text):
			if traces > exceptions { // of an exception with a name that scout does not know
				c.count = traces - exceptions
				folded = append(folded, c)
			}
		case !exceptionLine.MatchString(c.forms[0].text):
		case known:
			folded[i].causes = append(folded[i].causes, c)
		default:
			folded = append(folded, c)
		}
	}
	return folded
}

// describeCauses names the exceptions of the incidents, with their counts if they are not those of the failing line.
func (c errorCluster) describeCauses() string {
	if len(c.causes) == 0 {
		return ""
	}
	var words []string
	for i, cause := range c.causes {
		if i == causesShown {
			words = append(words, "…")
			break
		}
		text := clip.Marked(cause.template, causeShown, "…")
		if cause.count != c.count {
			text += fmt.Sprintf(" (%s×)", formatThousands(int64(cause.count)))
		}
		words = append(words, text)
	}
	return " — " + strings.Join(words, ", ")
}
