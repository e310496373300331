// Package redact replaces the values of secrets in text, in place: lines stay
// separate lines and the rest of each line stays verbatim.
//
// A secret is found by its shape (the token of a known issuer, a private key, a
// random-looking value assigned to a name like "password"), by being one of the
// values a Masker was made with, or by being in a file that is known to contain
// only secrets (.env, *.pem, *.key, id_rsa). Masking is deterministic, and
// masking masked text changes nothing.
//
// New is the one constructor: a Config also names the places that contain the values
// (credentials, addresses, an environment). Store, Blobs, Handler and Client are the
// outlets of a process, each with a Masker in front.
package redact

import (
	"bytes"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/multimatch"
)

// Replacement takes the place of a secret.
const Replacement = "[masked]"

// ValueBytesMin is the minimum length of an exact value to mask: shorter ones would remove
// ordinary words from ordinary text.
const ValueBytesMin = 6

// Config of a Masker.
type Config struct {
	// Values are secrets to find anywhere, raw or encoded (base64, URL, JSON). Default: none.
	// Values shorter than ValueBytesMin are ignored.
	Values []string
	// Credentials are keys, passwords and tokens. Those that look like secrets count
	// as Values: "not-needed" does not.
	Credentials []string
	// Addresses are URLs. The password, a user without one and the parameters with names that
	// suggest secrets count as Credentials.
	Addresses []string
	// Environ is an environment, NAME=value. The values of names that suggest secrets count as
	// Credentials, and values that are URLs as Addresses.
	Environ []string
}

// Masker masks text. It is safe for concurrent use.
type Masker struct {
	values []string            // longest first, with their encodings
	words  *multimatch.WordSet // of the rules and the values
	// longest is one byte less than the longest value.
	longest int
}

// New returns the Masker that finds secrets by shape and by the given values. Configurations with
// the same values share one Masker.
func New(cfg Config) *Masker { return sharedMaskers.maskerOf(cfg.maskedValues()) }

// maskedValues returns the values to mask, each a line, in order.
func (c Config) maskedValues() []string {
	var values []string
	for _, v := range c.secretValues() {
		for line := range strings.Lines(v) {
			if line = strings.TrimSpace(line); len(line) >= ValueBytesMin && !strings.Contains(Replacement, line) {
				values = append(values, line)
			}
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// MaskText masks a whole text.
func (m *Masker) MaskText(s string) string {
	if s == "" {
		return s
	}
	lines, changed := m.NewLineMasker(""), false
	var b strings.Builder
	for line := range strings.Lines(s) {
		body := strings.TrimSuffix(line, "\n")
		shown := string(lines.MaskLine([]byte(body)))
		changed = changed || shown != body
		b.WriteString(shown)
		b.WriteString(line[len(body):])
	}
	if !changed {
		return s
	}
	return b.String()
}

// MaskValues masks only the exact values, in text in which secrets by shape are already masked
// by code that knows the text's origin.
func (m *Masker) MaskValues(s string) string {
	if !m.MayContainValue([]byte(s)) {
		return s
	}
	return string(replaceSpans([]byte(s), m.exactSpans([]byte(s))))
}

// MayContainValue reports whether a text may contain one of the exact values, in one pass: if not,
// MaskValues changes nothing.
func (m *Masker) MayContainValue(text []byte) bool {
	return len(m.values) > 0 && m.words.MatchTags(text)&tagValue != 0
}

// LineMasker masks the lines of one file, which must come in order from the first: the body of a
// private key can be recognized only by the line above it.
type LineMasker struct {
	m            *Masker
	kind         fileKind
	keyLinesLeft int  // lines that may still belong to a private key
	sawKeyBody   bool // one of them did
}

type fileKind int

const (
	plainFile  fileKind = iota
	sourceFile          // code: a value without quotes is an expression
	envFile             // NAME=value: every value is masked
	keyFile             // a key file: every line is masked but its frame
)

var (
	envName    = lazyregexp.New(`(?i)^(\.env(\..+|rc)?|.+\.env)$`)
	sourceName = lazyregexp.New(`(?i)\.(go|py|[cm]?jsx?|[cm]?tsx?|java|kts?|scala|groovy|c|h|cc|cpp|cxx|hpp|m|mm|cs|fs|rs|rb|php|pl|pm|swift|lua|dart|exs?|erl|hs|ml|clj|zig|nim|jl|vue|svelte|proto)$`)
	keyName    = lazyregexp.New(`(?i)^(id_(rsa|dsa|ecdsa|ed25519)(_.+)?|.+\.(pem|key|p8|ppk))$`)
)

// NewLineMasker starts on a file; path may be "" for text of unknown origin.
func (m *Masker) NewLineMasker(path string) *LineMasker {
	name := path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case envName.MatchString(name):
		return &LineMasker{m: m, kind: envFile}
	case keyName.MatchString(name):
		return &LineMasker{m: m, kind: keyFile}
	case sourceName.MatchString(name):
		return &LineMasker{m: m, kind: sourceFile}
	}
	return &LineMasker{m: m}
}

var (
	keyBegin = lazyregexp.New(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----`)
	keyEnd   = []byte("-----END ")
	keyBody  = lazyregexp.New(`(?:^|[\s"':])([A-Za-z0-9+/=]{16,})(?:\\[nr])*["'+;,\s]*$`)
	keyTail  = lazyregexp.New(`(?:^|[\s"':])([A-Za-z0-9+/=]{2,})(?:\\[nr])*["'+;,\s]*$`)
	keyRun   = lazyregexp.New(`[A-Za-z0-9+/=]{16,}`)
	keyHead  = lazyregexp.New(`^\s*(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash)\s*:.*)?$`)
)

// keyLinesMax is the maximum number of lines of a private key: a frame that is never closed
// must not mask the rest of a file.
const keyLinesMax = 400

// MaskLine returns the masked form of the next line, given without its newline. The result may
// share memory with the argument.
func (l *LineMasker) MaskLine(line []byte) []byte {
	switch l.kind {
	case envFile:
		return maskEnvLine(line)
	case keyFile:
		return maskKeyLine(line)
	}
	within := l.keyLinesLeft > 0
	line = l.maskByRules(line)
	if within && l.keyLinesLeft > 0 {
		line = l.maskInKey(line)
	}
	return line
}

// passesMax bounds how often one line is searched.
const passesMax = 8

// maskByRules masks secrets that the line alone reveals. Masking one value may reveal another
// next to it, so maskByRules repeats until it finds none.
func (l *LineMasker) maskByRules(line []byte) []byte {
	for range passesMax {
		tags := l.m.words.MatchTags(line)
		if tags == 0 {
			break
		}
		if tags&tagKey != 0 {
			if at := keyBegin.FindIndex(line); at != nil && !bytes.Contains(line[at[1]:], keyEnd) {
				l.keyLinesLeft, l.sawKeyBody = keyLinesMax, false
			}
		}
		var spans []span
		if tags&tagValue != 0 {
			spans = l.m.exactSpans(line)
		}
		if spans = l.ruleSpans(line, tags, spans); len(spans) == 0 {
			break
		}
		line = replaceSpans(line, spans)
	}
	return line
}

// maskInKey masks a line between the frame lines of a private key. A line that
// cannot be part of one ends the key: a frame that source code merely mentions
// has no body.
func (l *LineMasker) maskInKey(line []byte) []byte {
	l.keyLinesLeft--
	if keyHead.Match(line) {
		return line
	}
	body := keyBody
	if l.sawKeyBody {
		body = keyTail // the last line of a body is short
	}
	var spans []span
	if at := body.FindSubmatchIndex(line); at != nil {
		spans = append(spans, span{at[2], at[3]})
	}
	if bytes.Contains(line, keyEnd) || len(spans) == 0 && !bytes.Contains(line, []byte(Replacement)) {
		l.keyLinesLeft, l.sawKeyBody = 0, false
		return line
	}
	l.sawKeyBody = true
	for _, at := range keyRun.FindAllIndex(line, -1) {
		spans = append(spans, span{at[0], at[1]})
	}
	return replaceSpans(line, spans)
}

func (m *Masker) exactSpans(line []byte) []span {
	var spans []span
	for _, v := range m.values {
		for from := 0; ; {
			at := bytes.Index(line[from:], []byte(v))
			if at < 0 {
				break
			}
			spans = append(spans, span{from + at, from + at + len(v)})
			from += at + len(v)
		}
	}
	return spans
}

var envAssign = lazyregexp.New(`^\s*#*\s*(?:export\s+)?[A-Za-z_][\w.-]*\s*[=:]\s*`)

// maskEnvLine masks the value of an assignment. A line that is not an assignment, a comment or
// blank continues a value.
func maskEnvLine(line []byte) []byte {
	if at := envAssign.FindIndex(line); at != nil {
		value := bytes.TrimSpace(line[at[1]:])
		if len(value) == 0 || string(value) == Replacement {
			return line
		}
		return append(slices.Clone(line[:at[1]]), Replacement...)
	}
	text := bytes.TrimSpace(line)
	if len(text) == 0 || text[0] == '#' {
		return line
	}
	return []byte(Replacement)
}

func maskKeyLine(line []byte) []byte {
	text := bytes.TrimSpace(line)
	if len(text) == 0 || bytes.HasPrefix(text, []byte("-----")) && bytes.HasSuffix(text, []byte("-----")) {
		return line
	}
	return []byte(Replacement)
}

// span is a part of a line: from, to.
type span struct{ from, to int }

// replaceSpans puts Replacement in place of each span; spans that touch become one.
func replaceSpans(line []byte, spans []span) []byte {
	if len(spans) == 0 {
		return line
	}
	slices.SortFunc(spans, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	out := make([]byte, 0, len(line))
	done := 0
	for i, s := range spans {
		if i > 0 && s.from <= done {
			done = max(done, s.to)
			continue
		}
		out = append(out, line[done:s.from]...)
		out = append(out, Replacement...)
		done = s.to
	}
	return append(out, line[done:]...)
}

// EnvValues returns the values of a .env file to mask elsewhere: those of names that
// suggest secrets and those that look random. "production" and "8080" are not among them,
// or they would be masked everywhere.
func EnvValues(text string) []string {
	var values []string
	for line := range strings.Lines(text) {
		at := envAssign.FindStringIndex(line)
		if at == nil {
			continue
		}
		value := strings.Trim(strings.TrimSpace(line[at[1]:]), `"'`)
		named := secretName.MatchString(line[:at[1]]) && len(value) >= envNamedMin
		if value != Replacement && isNotPlaceholder(value) && (named || len(value) >= longValue && looksRandom(value)) {
			values = append(values, value)
		}
	}
	return values
}

// envNamedMin is the minimum length of a value with a name like PASSWORD that is masked
// elsewhere as well.
const envNamedMin = 8

var secretName = lazyregexp.New(`(?i)pass|pwd|secret|token|key|credential|auth`)
