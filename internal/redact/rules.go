package redact

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/multimatch"
)

// secretRule finds one family of secrets. The value is the first group that matched, or the whole
// match if the pattern has no group.
type secretRule struct {
	words         []string // one of them is in every line that the pattern can match
	pattern       *lazyregexp.Regexp
	needsByte     byte                    // a character that the line must have too; 0: none
	afterWord     bool                    // the pattern is tried directly after each word, and nowhere else
	configOnly    bool                    // not for source code, where such a value is an expression
	isSecretValue func(value string) bool // nil: every match is a secret
	tag           uint64
}

const (
	tagValue uint64 = 1 << 63 // an exact value
	tagKey   uint64 = 1 << 62 // the frame of a private key
)

// issuedToken finds tokens in the format of one issuer. Case counts.
func issuedToken(pattern string, words ...string) secretRule {
	return secretRule{words: words, pattern: lazyregexp.New(pattern)}
}

// namedValue finds the value that follows a name, directly after a word of the name.
func namedValue(judge func(string) bool, pattern string, words ...string) secretRule {
	return secretRule{words: words, pattern: lazyregexp.New("^(?i:" + pattern + ")"), afterWord: true, isSecretValue: judge}
}

const (
	// nameEnd matches the rest of a name after its word.
	nameEnd = `(?:s|[_-]?\d{1,3}|[_-](?:prod|dev|test|staging|live|value|base64|b64|hash|key|string))?["']?\]?`
	assign  = `\s*(?:[:=]{1,3}>?|=>)\s*`
	quoted  = "[bru]?(?:\"([^\"\\s]{8,})\"|'([^'\\s]{8,})'|`([^`\\s]{8,})`)"
	escaped = `\\?"\s*:\s*\\"([^"\\\s]{8,})\\"`
	bareEnd = "\\s*[=:]\\s*([^\\s\"'`,;<>(){}\\[\\]|&]{8,})(?:[\\s\"'`,;<&|]|$)"
	element = `>([^<\s]{8,})</`
	scheme  = `\s+([A-Za-z0-9._~+/=-]{16,})`
)

var nameWords = func() []string {
	words := []string{"passwd", "password", "passphrase", "pwd", "secret", "token", "credential", "authorization"}
	for _, w := range []string{"api", "access", "private", "secret", "auth", "account", "encryption", "signing", "client", "master", "app"} {
		words = append(words, w+"key", w+"_key", w+"-key")
	}
	return words
}()

// rules are the rules for known issuers, then those that guess by name.
var rules = []secretRule{
	issuedToken(`\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b`, "AKIA", "ASIA", "ABIA", "ACCA"),
	issuedToken(`gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{30,}`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
	issuedToken(`glpat-[A-Za-z0-9_-]{20,}`, "glpat-"),
	issuedToken(`xox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}`, "xox", "xapp-"),
	issuedToken(`hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/_-]{20,})`, "hooks.slack.com"),
	issuedToken(`\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9+/=]{16,}`, "k_live_", "k_test_", "whsec_"),
	{words: []string{"sk-"}, pattern: lazyregexp.New(`\bsk-[A-Za-z0-9_-]{20,}`), isSecretValue: looksRandom},
	issuedToken(`\bAIza[0-9A-Za-z_-]{35}|\bya29\.[0-9A-Za-z_-]{20,}|\bGOCSPX-[0-9A-Za-z_-]{20,}`, "AIza", "ya29.", "GOCSPX-"),
	issuedToken(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`, "eyJ"),
	issuedToken(`\bnpm_[A-Za-z0-9]{30,}|\bhf_[A-Za-z]{30,}|\bdckr_pat_[A-Za-z0-9_-]{20,}|\bpypi-[A-Za-z0-9_-]{40,}`, "npm_", "hf_", "dckr_pat_", "pypi-"),
	issuedToken(`\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`, "SG."),
	issuedToken(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|\s)*([A-Za-z0-9+/=\\\s]{16,})`, "PRIVATE KEY"),
	{words: []string{"://"}, needsByte: '@', pattern: lazyregexp.New(`[a-zA-Z]://[^/\s:@"'<>]*:([^/\s:@"'<>]{3,})@[\w\[]`), isSecretValue: isNotPlaceholder},
	namedValue(looksRandom, scheme, "bearer", "basic"),
	namedValue(looksRandom, nameEnd+assign+quoted, nameWords...),
	namedValue(looksRandom, nameEnd+escaped, nameWords...),
	namedValue(looksRandom, element, "password", "passwd", "secret", "token", "apikey", "api_key", "api-key"),
	forConfigOnly(namedValue(isBareSecret, nameEnd+bareEnd, nameWords...)),
}

func forConfigOnly(r secretRule) secretRule {
	r.configOnly = true
	return r
}

// ruleWords also numbers the rules.
var ruleWords = func() []multimatch.Word {
	words := []multimatch.Word{{Text: "PRIVATE KEY", Tag: tagKey}}
	for i := range rules {
		rules[i].tag = 1 << i
		for _, w := range rules[i].words {
			words = append(words, multimatch.Word{Text: w, Tag: rules[i].tag})
		}
	}
	return words
}()

// ruleSpans adds the spans of all rules whose words the line holds.
func (l *LineMasker) ruleSpans(line []byte, tags uint64, spans []span) []span {
	behind := uint64(0)
	for _, r := range rules {
		switch {
		case tags&r.tag == 0 || r.configOnly && l.kind == sourceFile || r.needsByte != 0 && bytes.IndexByte(line, r.needsByte) < 0:
		case r.afterWord:
			behind |= r.tag
		case containsAny(line, r.words):
			for _, at := range r.pattern.FindAllSubmatchIndex(line, -1) {
				spans = r.addMatch(spans, line, at, 0)
			}
		}
	}
	if behind == 0 {
		return spans
	}
	l.m.words.EachMatch(line, func(end int, tags uint64) {
		for _, r := range rules {
			if tags&behind&r.tag == 0 {
				continue
			}
			if at := r.pattern.FindSubmatchIndex(line[end:]); at != nil {
				spans = r.addMatch(spans, line, at, end)
			}
		}
	})
	return spans
}

// addMatch judges a match; offset is where in the line the pattern was tried.
func (r secretRule) addMatch(spans []span, line []byte, at []int, offset int) []span {
	from, to := at[0], at[1]
	for g := 2; g+1 < len(at); g += 2 {
		if at[g] >= 0 {
			from, to = at[g], at[g+1]
			break
		}
	}
	if r.isSecretValue != nil && !r.isSecretValue(string(line[offset+from:offset+to])) {
		return spans
	}
	return append(spans, span{offset + from, offset + to})
}

// containsAny checks the case, which the words' automaton ignores.
func containsAny(line []byte, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(line, []byte(w)) })
}

var (
	placeholders = lazyregexp.New(`(?i)\$\{|\{\{|\$\(|^\$[A-Z_]|%[svdq]|%\(|example|change_?me|placeholder|your[-_]|x{4,}|\*{3}|\.\.\.|dummy|\[masked\]|getenv|environ|process\.env|^<.*>$`)
	pathLike     = lazyregexp.New(`^(?:[a-z][a-z0-9+.-]*://|\.{0,2}/|[A-Za-z]:\\)`)
	letters      = lazyregexp.New(`[A-Za-z]`)
	digits       = lazyregexp.New(`[0-9]`)
	symbols      = lazyregexp.New(`[!@#$%^&*+=?~]`)
	identifier   = lazyregexp.New(`^[A-Za-z_][\w.]*$`)
	digitsInside = lazyregexp.New(`[0-9][^0-9]`)
	number       = lazyregexp.New(`^[-+]?(?:0[xX][0-9a-fA-F_]+|[0-9][0-9_.]*(?:[eE][-+]?[0-9]+)?)$`)
	hexOnly      = lazyregexp.New(`^[0-9a-fA-F]{32,}$`)
)

// Entropy, in bits a byte, from which a value looks random. English words of
// this length reach about 2.5 to 3; random base64 over 4.
const (
	entropyQuoted = 2.5
	entropyBare   = 2.9
	entropyLong   = 3.5
	longValue     = 20
)

func isNotPlaceholder(v string) bool { return !placeholders.MatchString(v) }

// looksRandom reports whether a value looks generated, or like a password, and not like a word,
// a path or a reference.
func looksRandom(v string) bool {
	if !isNotPlaceholder(v) || number.MatchString(v) || pathLike.MatchString(v) || strings.ContainsAny(v, "(){}") {
		return false
	}
	if hexOnly.MatchString(v) {
		return true
	}
	e := entropy(v)
	mixed := letters.MatchString(v) && (digits.MatchString(v) || symbols.MatchString(v))
	upper := strings.ToLower(v) != v && strings.ToUpper(v) != v
	return mixed && e >= entropyQuoted || len(v) >= longValue && upper && e >= entropyLong && !strings.ContainsAny(v, "._-/ ")
}

// isBareSecret judges a value without quotes, which is an expression in source code and a value in
// a configuration file.
func isBareSecret(v string) bool {
	if !looksRandom(v) || !digits.MatchString(v) || entropy(v) < entropyBare {
		return false
	}
	return !identifier.MatchString(v) || !strings.Contains(v, ".") && digitsInside.MatchString(v)
}

// entropy returns the Shannon entropy, in bits a byte.
func entropy(v string) float64 {
	var count [256]int
	for i := range len(v) {
		count[v[i]]++
	}
	sum := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(v))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}
