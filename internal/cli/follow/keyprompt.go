package follow

import (
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/term"
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
	keyHelp    = '?'
	keyEnd     = '\x04' // Ctrl-D: the end of the input
	keyEscape  = '\x1b' // ends a line that answers nothing
)

// keyPrompt decides which key answers a question about a call. It reads no clock.
type keyPrompt struct {
	question  client.Question
	lastKeyAt time.Time // or when the question was shown
	pressed   byte      // the key that counts unless another one follows; 0: none
	ignored   ignored   // why the last key did not count
}

// ignored says why a key did not count.
type ignored int

const (
	ignoredNone        ignored = iota // it counts, or none was pressed
	ignoredEarly                      // it came too early, or with others
	ignoredMeaningless                // it means nothing at this question
)

// newKeyPrompt begins with the question on the screen at a time.
func newKeyPrompt(q client.Question, shown time.Time) *keyPrompt {
	return &keyPrompt{question: q, lastKeyAt: shown}
}

// press takes what was typed at a time.
func (p *keyPrompt) press(typed string, at time.Time) {
	if p.pressed != 0 && at.Sub(p.lastKeyAt) >= keySettle {
		return // the key before it answers: settled is about to return it
	}
	isQuick := at.Sub(p.lastKeyAt) < keyQuiet
	p.lastKeyAt = at
	if p.pressed != 0 {
		if strings.Trim(typed, "\r\n") != "" {
			p.pressed, p.ignored = 0, ignoredEarly
		}
		return
	}
	key := strings.TrimRight(typed, "\r\n") // a habit: the key and Enter
	isMeaningless := len(key) == 0 || len(key) == 1 && !p.offers(lower(key[0]))
	switch {
	case isMeaningless && isQuick && p.ignored == ignoredEarly: // one of several keys
	case isMeaningless:
		p.ignored = ignoredMeaningless
	case len(key) > 1 || isQuick:
		p.ignored = ignoredEarly
	default:
		p.pressed, p.ignored = lower(key[0]), ignoredNone
	}
}

// settled returns the key that answers; 0: none does yet.
func (p *keyPrompt) settled(now time.Time) byte {
	if p.pressed == 0 || now.Sub(p.lastKeyAt) < keySettle {
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
	case keySkip:
		return spec.Reason(p.question.Reason) != spec.ResumeUnsafe // n and y say it all there
	case keyOnce, keyNo, keyReason, keyResult, keyHelp, keyEnd:
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
	if isAboutOutcome(p.question) {
		return []string{"y run it again   n do not run it again   r do not, with a reason", "t type its outcome   ? help"}
	}
	if p.question.Digest == "" {
		return []string{"y go on   n end the agent   r end it, with a reason   t go on, and tell the agent   ? help"}
	}
	const last = "s skip   t type the result of the call   ? help"
	if p.question.Rule == "" {
		return []string{"y once   n no   r no, with a reason", last}
	}
	if !p.offersProject() {
		return []string{"y once   a always in this run", "n no   r no, with a reason   " + last}
	}
	return []string{"y once   a always in this run   p also in later runs here", "n no   r no, with a reason   " + last}
}

// offersProject reports whether a person may approve calls like this one for all their runs: if one person decides.
func (p *keyPrompt) offersProject() bool { return p.question.Rule != "" && p.question.Approvals < 2 }

// isAboutOutcome reports whether a question is about a call that may have run before a crash.
func isAboutOutcome(q client.Question) bool {
	return q.Digest == "" && spec.Reason(q.Reason) == spec.ResumeUnsafe && q.Call != ""
}

// chosen says what a key means at a question.
func chosen(q client.Question, key byte) string {
	words := map[byte]string{keyOnce: "once", keyRun: "always in this run", keyProject: "always in this run and in later runs here", keyNo: "no", keySkip: "skip",
		keyReason: "no, because", keyResult: "the result is", keyEnd: "no answer now"}
	switch {
	case isAboutOutcome(q):
		words[keyOnce], words[keyNo], words[keyReason], words[keyResult] = "run it again", "do not run it again", "do not run it again, because", "its outcome is"
	case q.Digest == "":
		words[keyOnce], words[keyNo], words[keyReason], words[keyResult] = "go on", "end the agent", "end the agent, because", "go on, and tell the agent"
	}
	return words[key]
}

// describeAnswers says what the answers to a question do, one a line.
func describeAnswers(q client.Question) []string {
	whole := "the commands `troupe answer` and `troupe questions` do the same; Ctrl-D leaves the question open"
	switch {
	case isAboutOutcome(q):
		return []string{"y  the call runs again: it may take effect twice", "n  it does not run again; the agent reads that its outcome is unknown",
			"r, n REASON  the same, and the agent reads your reason", "t TEXT  it does not run again, and TEXT is its outcome: write what you know", whole}
	case q.Digest != "":
		lines := []string{"y  the call runs once"}
		if q.Rule == "" {
			lines = append(lines, "a, p  are not offered: no permission rule means just calls like this one, such as several commands in one line")
		} else {
			lines = append(lines, "a  it runs, and so do calls that "+term.CleanLine(q.Rule)+" matches, until the run ends")
		}
		if newKeyPrompt(q, time.Time{}).offersProject() {
			lines = append(lines, "p  the same, and in your runs in its directory that begin later (runs at work still ask)")
		}
		return append(lines, "n  it does not run", "r, n REASON  it does not run, and the agent reads your reason (Esc goes back)", "s  it does not run, and the agent goes on",
			"t TEXT  it does not run, and TEXT is its result", whole)
	case spec.Reason(q.Reason) == spec.ResumeUnsafe:
		return []string{"y  the agent goes on as the run began", "n  the agent ends", "t TEXT  it goes on and reads TEXT", whole}
	case q.Call != "":
		return []string{"TEXT  the agent reads it as your answer", "skip  the agent goes on without an answer", whole}
	}
	return []string{"approve, or TEXT that the agent reads  the agent goes on", "deny  the agent ends", whole}
}
