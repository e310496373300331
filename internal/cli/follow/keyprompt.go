package follow

import (
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/request"
)

// A key may answer a question by accident: it was meant for something else, or it is part of a paste. So it counts only
// if no other key was pressed for keyQuiet before it while the question was on the screen, and none for
// keySettle after: longer than people take from one key of a word to the next, and than a keyboard takes to
// repeat a key that is held.
const (
	keyQuiet  = 500 * time.Millisecond
	keySettle = 350 * time.Millisecond
)

// Keys that answer a question about a call.
const (
	keyOnce    = 'y'
	keyRun     = 'a'
	keyProject = 'p'
	keyNo      = 'n'
	keyReason  = 'r'
	keySkip    = 's'
	keyResult  = 't'
	keyEnd     = '\x04' // Ctrl-D: the end of the input
)

// keyPrompt decides which key answers a question about a call. It reads no clock.
type keyPrompt struct {
	question client.Question
	quiet    time.Time // since when no key was pressed
	pressed  byte      // the key that counts unless another one follows; 0: none
	early    bool      // a key did not count, because it came too early
}

// newKeyPrompt begins with the question on the screen at a time.
func newKeyPrompt(q client.Question, shown time.Time) *keyPrompt {
	return &keyPrompt{question: q, quiet: shown}
}

// press takes what was typed at a time.
func (p *keyPrompt) press(typed string, at time.Time) {
	before := p.quiet
	p.quiet = at
	if p.pressed != 0 && at.Sub(before) < keySettle {
		if strings.Trim(typed, "\r\n") != "" {
			p.pressed, p.early = 0, true
		}
		return
	}
	key := strings.TrimRight(typed, "\r\n") // a habit: the key and Enter
	switch {
	case len(key) == 0 || len(key) == 1 && !p.offers(lower(key[0])):
	case len(key) > 1 || at.Sub(before) < keyQuiet:
		p.early = true
	default:
		p.pressed, p.early = lower(key[0]), false
	}
}

// settled returns the key that answers; 0: none does yet.
func (p *keyPrompt) settled(now time.Time) byte {
	if p.pressed == 0 || now.Sub(p.quiet) < keySettle {
		return 0
	}
	key := p.pressed
	p.pressed = 0
	return key
}

// offers reports whether a key means something at this question.
func (p *keyPrompt) offers(key byte) bool {
	switch key {
	case keyRun:
		return p.question.Rule != ""
	case keyProject:
		return p.offersProject()
	case keyOnce, keyNo, keyReason, keySkip, keyResult, keyEnd:
		return true
	}
	return false
}

func lower(key byte) byte {
	if key >= 'A' && key <= 'Z' {
		return key + 'a' - 'A'
	}
	return key
}

// decide returns the answer that a key gives; text is what was typed for keyReason and keyResult. The answer counts for
// the call of the question only.
func (p *keyPrompt) decide(key byte, text string) client.AnswerRequest {
	q := p.question
	r := client.AnswerRequest{RunID: q.RunID, Agent: q.Agent, Query: q.Query, Digest: q.Digest, By: request.UserName(), Decision: spec.Deny, Text: text}
	switch key {
	case keyOnce:
		r.Decision = spec.Approve
	case keyRun:
		r.Decision, r.Always = spec.Approve, "run"
	case keyProject:
		r.Decision, r.Always = spec.Approve, "project"
	case keySkip:
		r.Decision = spec.Skip
	case keyResult:
		r.Decision = spec.TextOnly
	}
	return r
}

// choices are the lines that say what the keys mean.
func (p *keyPrompt) choices() []string {
	const last = "s skip   t type the result of the call"
	if p.question.Rule == "" {
		return []string{"y once   n no   r no, with a reason", last}
	}
	if !p.offersProject() {
		return []string{"y once   a always in this run", "n no   r no, with a reason   " + last}
	}
	return []string{"y once   a always in this run   p always in this directory", "n no   r no, with a reason   " + last}
}

// offersProject reports whether a person may approve calls like this one for all their runs: if one person decides.
func (p *keyPrompt) offersProject() bool { return p.question.Rule != "" && p.question.Approvals < 2 }

// chosen says what a key means.
func chosen(key byte) string {
	return map[byte]string{keyOnce: "once", keyRun: "always in this run", keyProject: "always in this directory", keyNo: "no", keySkip: "skip",
		keyReason: "no, because", keyResult: "the result is", keyEnd: "no answer now"}[key]
}
