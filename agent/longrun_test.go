package agent_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// countingProvider stands for the service behind a model: it counts by a vocabulary of
// its own and refuses what is beyond its window.
type countingProvider struct {
	window   int64
	calls    int
	refused  int
	sent     string          // the newest request of a turn, as bytes in their order
	prefixes map[string]bool // hashes of the first message of each request
	rewrites int             // requests that do not begin with the one before
	largest  int64
}

// bytesOf writes a request in the order in which a cache reads it.
func bytesOf(r model.Request) string {
	var b strings.Builder
	b.WriteString(r.System)
	for _, t := range r.Tools {
		b.WriteString("\x00" + t.Name + t.Description + t.Schema)
	}
	b.WriteString("\x00" + r.Dynamic)
	for _, m := range r.Messages {
		fmt.Fprintf(&b, "\x00%s\x00%s", m.Role, m.Text)
		for _, c := range m.Calls {
			fmt.Fprintf(&b, "\x00%s %s %s", c.ID, c.Name, c.Args)
		}
		for _, res := range m.Results {
			fmt.Fprintf(&b, "\x00%s %s", res.Call, res.Text)
		}
	}
	return b.String()
}

// countUsage is one attempt: what it counts, or false where it is too long.
func (p *countingProvider) countUsage(r model.Request, turn bool) (model.Usage, bool) {
	p.calls++
	raw := bytesOf(r)
	u := model.Usage{Input: int64(len(raw))/4 + 7*int64(len(r.Messages)), Output: 40}
	if u.Input+r.MaxOutput > p.window {
		p.refused++
		return model.Usage{}, false
	}
	if turn {
		if p.sent != "" && !strings.HasPrefix(raw, p.sent) {
			p.rewrites++
		}
		p.sent, p.largest = raw, max(p.largest, u.Input)
		first := sha256.Sum256([]byte(r.System + r.Dynamic + r.Messages[0].Text))
		p.prefixes[string(first[:])] = true
	}
	return u, true
}

// longRun is an agent that works for many turns, driven without a shell.
type longRun struct {
	t        *testing.T
	s        agent.State
	provider *countingProvider
	folds    int
	read     int64 // tokens of all that tools returned, as the provider counts
	pending  []agent.Effect
}

func (l *longRun) stepFact(f agent.Fact) {
	l.t.Helper()
	before := l.s
	e := agent.Input{At: l.s.Now + 10, Activation: "a", Fact: f}
	next, stepped := agent.Step(before, e)
	l.s, l.pending = next, stepped.Effects
	if l.s.Fold.Upto != before.Fold.Upto {
		l.folds++
	}
}

// replyWith answers the call that is due: a summary, or what the turn says.
func (l *longRun) replyWith(reply model.Message) {
	l.t.Helper()
	for {
		l.stepFact(agent.Granted{Reservation: l.s.Reservation, Output: 2000, Calls: 64})
		call, ok := l.pending[len(l.pending)-1].(agent.CallModel)
		if !ok {
			l.t.Fatalf("turn %d: no model call, but %T", l.s.Turn, l.pending[len(l.pending)-1])
		}
		if err := strictRequest(call.Request); err != nil {
			l.t.Fatalf("turn %d: %v", l.s.Turn, err)
		}
		turn := l.s.Purpose == agent.ForTurn
		usage, taken := l.provider.countUsage(call.Request, turn)
		if !taken {
			l.t.Fatalf("turn %d: a prompt of %d messages is too long, the loop took it for %d tokens", l.s.Turn, len(call.Request.Messages), l.s.Estimate())
		}
		if turn {
			l.stepFact(agent.Replied{Reservation: l.s.Reservation, Tokens: 30, Reply: model.Reply{Message: reply, Usage: usage, UsageKnown: true}})
			return
		}
		l.stepFact(agent.Replied{Reservation: l.s.Reservation, Reply: model.Reply{UsageKnown: true, Usage: usage,
			Message: model.Message{Text: fmt.Sprintf("So far %d turns of reading; nothing else was wrong.", l.s.Turn)}}})
	}
}

// TestTwoHundredTurnsThroughFiveWindows: a run whose context passes its window
// five times over ends completed, no prompt is ever refused, what was pinned is
// in the prompt to the end, and what was sent is rewritten by compactions alone
// (D1, D2, D3, D7; acceptance point 4).
//
// The shell's vocabulary is not the provider's, which counts four bytes a token
// here: the run goes well whether the shell counts more, fewer, or nothing.
//
//behaviour:shows D1 D2
func TestTwoHundredTurnsThroughFiveWindows(t *testing.T) {
	for name, bytesPerToken := range map[string]int{"counts more": 3, "counts fewer": 6, "counts nothing": 0} {
		t.Run(name, func(t *testing.T) { twoHundredTurns(t, bytesPerToken) })
	}
}

func twoHundredTurns(t *testing.T, bytesPerToken int) {
	const window, turns = 40_000, 200
	tools := append(agent.JournalTools(), model.ToolSpec{Name: "read", Class: model.Read, Schema: toolSchema("read")},
		model.ToolSpec{Name: "search", Class: model.Read, Schema: toolSchema("search")})
	m := spec.DefaultLoopOptions()
	m.LimitNotes = spec.LimitNotes{}
	m.Require.Evidence = []spec.Evidence{{Tool: "search", Contains: "INVOICE"}}
	m.Dynamic = "Today is Monday."
	p := &countingProvider{window: window, prefixes: map[string]bool{}}
	l := &longRun{t: t, provider: p}
	l.stepFact(agent.Resumed{Activation: "a"})
	l.stepFact(agent.Submitted{Task: spec.Task{ID: spec.Root, Goal: "Which invoice is wrong?", System: "You are careful.", Tools: tools,
		Constraints: []string{"Pay nothing."}, Model: spec.Model{Name: "m/one", Window: window}, LoopOptions: m, Limits: spec.Limits{Turns: turns + 5, Output: 2000}}})
	for turn := range turns {
		tool, text := "read", fmt.Sprintf("page %d: ", turn)+strings.Repeat(fmt.Sprintf("line of page %d\n", turn), 250)
		switch turn {
		case 3:
			tool, text = "search", "INVOICE 4711 is wrong"
		case 4:
			l.replyWith(model.Message{Calls: []model.ToolCall{{Name: "append_run_journal_entry", Args: `{"section":"verified_findings","entry":"the ledger of May is complete"}`}}})
			continue
		}
		l.replyWith(model.Message{Calls: []model.ToolCall{{Name: tool, Args: fmt.Sprintf(`{"q":"%d"}`, turn)}}})
		counted := int64(0)
		if bytesPerToken > 0 {
			counted = int64(len(text) / bytesPerToken)
		}
		l.stepFact(agent.Returned{Call: l.s.Calls[0].ID, Attempt: 1, Text: text, Tokens: counted})
		l.read += int64(len(text)) / 4
	}
	l.replyWith(model.Message{Text: "It is 4711."})
	l.stepFact(agent.StopAllowed{Proposal: l.s.Proposal})
	if l.s.Phase != agent.Done || l.s.Outcome.Reason != spec.Completed || l.s.Turn != turns+1 {
		t.Errorf("%s after %d turns: %+v", l.s.Phase, l.s.Turn, l.s.Outcome)
	}
	last := p.sent
	for _, want := range []string{"Which invoice is wrong?", "Pay nothing.", "INVOICE 4711 is wrong", "the ledger of May is complete", "page 199: ", "Today is Monday."} {
		if !strings.Contains(last, want) {
			t.Errorf("the last prompt does not hold %q", want)
		}
	}
	if l.read < 5*window || l.folds < 5 {
		t.Errorf("%d tokens were read, %.1f windows; %d compactions", l.read, float64(l.read)/window, l.folds)
	}
	if p.rewrites != l.folds || len(p.prefixes) != l.folds+1 {
		t.Errorf("what was sent was rewritten %d times, by %d compactions; it began in %d ways", p.rewrites, l.folds, len(p.prefixes))
	}
	if len(l.s.History) != 2*turns+2 {
		t.Errorf("the transcript holds %d messages, want all %d", len(l.s.History), 2*turns+2)
	}
	t.Logf("%.1f windows read in %d turns: %d compactions, %d recoveries, %d model calls, largest prompt %d of %d tokens",
		float64(l.read)/window, l.s.Turn, l.folds, l.s.Ladder.Used, p.calls, p.largest, window)
}

// TestRejectedPromptsEndAfterThreeCalls: whatever the loop does about
// "prompt too long", it does it once (A23; acceptance point 4).
//
//behaviour:shows A23
func TestRejectedPromptsEndAfterThreeCalls(t *testing.T) {
	for name, m := range map[string]spec.Model{"a known window": {Name: "m/one", Window: 200_000}, "none": {Name: "m/one"}} {
		s := stepAgent(agent.State{}, agent.Resumed{Activation: "a"})
		options := spec.DefaultLoopOptions()
		options.Fallbacks = []spec.Model{{Name: "m/two", Window: 100_000}}
		s = stepAgent(s, agent.Submitted{Task: spec.Task{ID: spec.Root, Goal: "Look.", Model: m, LoopOptions: options, Limits: spec.Limits{Turns: 100},
			Tools: []model.ToolSpec{{Name: "search", Class: model.Read, Schema: toolSchema("search")}}}})
		for n := range 20 { // it worked well until here
			s = stepAgent(s, agent.Granted{Reservation: s.Reservation, Output: 4096, Calls: 64})
			s = stepAgent(s, agent.Replied{Reservation: s.Reservation, Reply: model.Reply{Message: model.Message{Calls: []model.ToolCall{{Name: "search", Args: fmt.Sprintf(`{"q":"%d"}`, n)}}}}})
			s = stepAgent(s, agent.Returned{Call: s.Calls[0].ID, Attempt: 1, Text: strings.Repeat(fmt.Sprint("word ", n), 50)})
		}
		calls := 0
		for s.Phase != agent.Done && calls < 100 {
			s = stepAgent(s, agent.Granted{Reservation: s.Reservation, Output: 4096, Calls: 64})
			if s.Phase == agent.Thinking {
				calls++
				s = stepAgent(s, agent.Failed{Reservation: s.Reservation, Class: model.TooLong, Unbilled: true})
			}
			if s.Phase == agent.Stopping {
				s = stepAgent(s, agent.StopVetoed{Proposal: s.Proposal, Why: "Go on."})
			}
			s = stepAgent(s, agent.Steered{Text: "Go on."})
		}
		if calls != 3 || s.Outcome.Reason != spec.PromptTooLong {
			t.Errorf("%s: %d calls, then %s", name, calls, s.Outcome.Reason)
		}
	}
}
