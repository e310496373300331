package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/mailbox"
)

// replayedRun collects facts from the logs of one run, read without the nodes.
type replayedRun struct {
	run  string
	logs map[mailbox.Address][]mailbox.Message
	// stale counts, by kind, the own entries of an activation that came after the claim of a
	// later one.
	stale            map[string]int
	granted, replied int
	// starts are the current Started, by the key of the call and the activation that wrote them,
	// without those that an activation released before it began them.
	starts   map[string]map[string]int
	open     map[string]string           // calls that were started and have not returned, and by which activation
	claims   map[string][]activationSpan // in force, by address
	late     map[string][]string         // calls whose results came from superseded activations, by address and activation
	result   event.Result
	peak     peakUse
	problems []string
}

// activationSpan is an activation that became current. ended is how it ended by its own entry;
// "" means that it was interrupted.
type activationSpan struct {
	start, node string
	at          int64
	ended       string
}

// Regular ends of activations.
const (
	handedOver = "handed over"
	atRest     = "at rest" // it passivated until its next entry (P19)
)

func (f *replayedRun) addProblem(format string, args ...any) {
	f.problems = append(f.problems, fmt.Sprintf(format, args...))
}

func newReplayed(run string) *replayedRun {
	return &replayedRun{run: run, logs: map[mailbox.Address][]mailbox.Message{}, stale: map[string]int{},
		starts: map[string]map[string]int{}, claims: map[string][]activationSpan{}, late: map[string][]string{}, open: map[string]string{}}
}

// replayRun reads and replays the logs of a run.
func replayRun(post *jetstream.Post, run string) (*replayedRun, error) {
	f := newReplayed(run)
	err := repeatRead(context.Background(), func() error {
		clear(f.logs)
		return post.ReadRun(context.Background(), run, func(m mailbox.Message) error {
			f.logs[m.To] = append(f.logs[m.To], m)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	said := map[string]mailbox.Item{}
	for _, at := range sortedKeys(f.logs) {
		f.checkAgreement(at, said)
		f.replayLog(at)
	}
	return f, nil
}

// checkAgreement checks that all activations of a sender sent the same under one identity: two that both
// decided would differ sooner or later.
func (f *replayedRun) checkAgreement(at mailbox.Address, said map[string]mailbox.Item) {
	for _, m := range f.logs[at] {
		e, err := mailbox.Decode(m.Data)
		if err != nil {
			f.addProblem("an entry of %s does not decode: %v", at, err)
			continue
		}
		if e.From == "" || e.From == at {
			continue
		}
		for _, item := range e.Items {
			id := fmt.Sprintf("%s>%s %d.%d", e.From, at, item.N, item.I)
			before, again := said[id]
			said[id] = item
			// ReportLog describes the activation that sends it, so each sends its own.
			if again && item.Kind != (agent.ReportLog{}).Kind() && (before.Kind != item.Kind || !bytes.Equal(before.Body, item.Body)) {
				f.addProblem("%s was said in two ways: %s %s, and %s %s", id, before.Kind, renderBody(before.Body), item.Kind, renderBody(item.Body))
			}
		}
	}
}

// replayLog replays one log as it is, and as if superseded activations had written nothing: the
// machine must not notice the difference. What a tool returned is evidence, and stays.
func (f *replayedRun) replayLog(at mailbox.Address) {
	was, without := newScribe(at), newScribe(at)
	one := activation.Watch(at, was)
	other := activation.Watch(at, without)
	var force mailbox.Epoch
	var forcer string
	reservations, replied, again, ahead := map[string]bool{}, 0, map[string]bool{}, 0
	for _, m := range f.logs[at] {
		if read := one.Next(m); read.Err != nil {
			f.addProblem("%s: %v", at, read.Err)
		}
		switch s := was.Machine.(type) {
		case *activation.Supervisor:
			f.checkStep(s)
		case *activation.Agent: // an attempt under an allowance has a reservation, and no grant of its own
			if begun := s.State.Allowance.Begun; begun > ahead {
				ahead = begun
				f.granted++
			}
		}
		e, err := mailbox.Decode(m.Data)
		if err != nil || len(e.Items) == 0 {
			other.Next(m)
			continue
		}
		item := e.Items[0]
		own := e.From == at
		switch {
		case own && item.Kind == "resumed" && e.Epoch.Higher(force):
			force, forcer = e.Epoch, e.Start
			f.noteClaim(m, e)
		case own && e.Start != forcer:
			f.stale[item.Kind]++
			if item.Kind == "returned" {
				f.noteLateResult(at, e)
			} else {
				e.Items = nil
			}
		case own && !again[item.ID]: // an entry that was sent again before its answer came counts once
			again[item.ID] = true
			f.countEntry(at, e)
			if item.Kind == "replied" {
				replied++
			}
		}
		for _, item := range e.Items {
			if item.Kind == "granted" {
				reservations[fmt.Sprint(item.N, ".", item.I)] = true
			}
		}
		e.Floor, e.Hash = 0, nil
		if m.Data, err = mailbox.Encode(e); err != nil {
			f.addProblem("an entry of %s does not encode: %v", at, err)
		}
		other.Next(m)
	}
	if !slices.Equal(was.steps, without.steps) {
		f.addProblem("%s: superseded activations made a difference", at)
	}
	f.granted += len(reservations)
	f.replied += replied
	if s, ok := was.Machine.(*activation.Supervisor); ok {
		f.result = s.State.Result()
	}
}

// noteClaim records a claim that became current.
func (f *replayedRun) noteClaim(m mailbox.Message, e mailbox.Entry) {
	for _, fact := range (storedLog{m.To, m.At, e}).decodeFacts() {
		if r, ok := fact.(agent.Resumed); ok {
			name := string(m.To.Bare())
			f.claims[name] = append(f.claims[name], activationSpan{start: e.Start, node: r.Node, at: m.At})
		}
	}
}

// noteLateResult records what a tool returned to a superseded activation.
func (f *replayedRun) noteLateResult(at mailbox.Address, e mailbox.Entry) {
	for _, fact := range (storedLog{at, 0, e}).decodeFacts() {
		if r, ok := fact.(agent.Returned); ok {
			key := string(at.Bare()) + " " + e.Start
			f.late[key] = append(f.late[key], r.Call)
		}
	}
}

// countEntry records a current entry.
func (f *replayedRun) countEntry(at mailbox.Address, e mailbox.Entry) {
	name := at.Bare() // the double and the ledger do not know pools
	for _, fact := range (storedLog{at, 0, e}).decodeFacts() {
		switch fact := fact.(type) {
		case agent.Started:
			key := fmt.Sprintf("%s.%s", name, fact.Call)
			if f.starts[key] == nil {
				f.starts[key] = map[string]int{}
			}
			f.starts[key][e.Start]++
			f.open[key] = e.Start
		case agent.Returned:
			delete(f.open, fmt.Sprintf("%s.%s", name, fact.Call))
		case agent.Released:
			f.noteEnd(name, e.Start, fact.Rests)
			for key, start := range f.open {
				if start == e.Start {
					f.starts[key][start]--
				}
			}
		}
	}
}

// noteEnd records that an activation has ended by its own entry.
func (f *replayedRun) noteEnd(name mailbox.Address, start string, rests bool) {
	for i, c := range f.claims[string(name)] {
		if c.start == start && rests {
			f.claims[string(name)][i].ended = atRest
		} else if c.start == start {
			f.claims[string(name)][i].ended = handedOver
		}
	}
}

// countBegun returns how often a call may have been begun.
func (f *replayedRun) countBegun(key string) (n int) {
	for _, started := range f.starts[key] {
		n += started
	}
	return n
}

// stepRecorder is a machine that records each of its steps.
type stepRecorder struct {
	activation.Machine
	steps []string
}

func newScribe(at mailbox.Address) *stepRecorder {
	if at.Agent() == mailbox.Super {
		return &stepRecorder{Machine: &activation.Supervisor{Addr: at}}
	}
	return &stepRecorder{Machine: &activation.Agent{Addr: at}}
}

// Step records the messages and the effects of a step.
func (s *stepRecorder) Step(f activation.Fact) activation.Stepped {
	out := s.Machine.Step(f)
	text, err := json.Marshal([]any{f.N, f.At, f.Activation, f.From, f.Kind, out.Messages, out.Effects})
	if err != nil {
		text = []byte(err.Error())
	}
	sum := sha256.Sum256(text)
	s.steps = append(s.steps, string(sum[:]))
	return out
}

// judgeLogs checks the logs of a run against its result, the ledger and the double's book.
func (t *clusterJudge) judgeLogs(post *jetstream.Post, r *finishedRun, effects map[string]int) {
	f, err := replayRun(post, r.id)
	if err != nil {
		t.found.addOf(r.id, "the logs of run %s: %v", r.id, err)
		return
	}
	for _, p := range f.problems {
		t.found.addOf(r.id, "%s", p)
	}
	t.verifyLogs(f, r)
	for kind, n := range f.stale {
		t.stale[kind] += n
	}
	for key, n := range effects {
		if started := f.countBegun(key); n > started {
			t.found.addOf(r.id, "%s happened %d times, and %d Started were in force", key, n, started)
		}
	}
	for key := range f.starts {
		if started := f.countBegun(key); started > 1+t.load.countAllowed(key) && !t.o.control {
			t.found.addOf(r.id, "%s was started %d times, and a person approved that %d times", key, started, t.load.countAllowed(key))
		}
	}
	t.zombies.judgeRun(f, r, effects)
	t.countMoved(f)
	requests := t.p.countOf(r.id)
	if requests > f.granted {
		t.found.addOf(r.id, "run %s: %d requests were sent under %d reservations", r.id, requests, f.granted)
	}
	if r.result == nil {
		return
	}
	b := r.result.Budget
	if b != f.result.Budget || r.result.Reason != f.result.Reason {
		t.found.addOf(r.id, "run %s was told as %s %+v, and its log says %s %+v", r.id, r.result.Reason, b, f.result.Reason, f.result.Budget)
	}
	if r.canceled {
		return // an interrupted call is charged by what had arrived
	}
	if known := int64(f.replied * (inputTokens + outputTokens)); b.Used-b.Unknown != known {
		t.found.addOf(r.id, "run %s: %d replies cost %d tokens, and its budget says %+v", r.id, f.replied, known, b)
	}
}
