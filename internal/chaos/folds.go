package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/jetstream"
	"github.com/troupe-run/troupe/supervisor"
)

// folded is what the logs of one run say, read without the nodes.
type folded struct {
	run  string
	logs map[mailbox.Address][]mailbox.Message
	// stale are own entries that a life wrote before, and that came after the claim
	// of a later one, by kind.
	stale            map[string]int
	granted, replied int
	// starts are the Started in force, by the key of the call and the life that
	// wrote them, without those that a life released without having begun them.
	starts   map[string]map[string]int
	open     map[string]string   // calls that were started and have not returned, and by which life
	claims   map[string][]reign  // in force, by address
	late     map[string][]string // calls whose results came from superseded lives, by address and life
	result   supervisor.Result
	peak     peak
	problems []string
}

// reign is a life that came into force. ended is how it said that it was over, if
// it did: without, it was broken off.
type reign struct {
	start, node string
	at          int64
	ended       string
}

// Ends of lives in order.
const (
	handedOver = "handed over"
	atRest     = "at rest" // it waited, and was let go until its next entry (P19)
)

func (f *folded) bad(format string, args ...any) {
	f.problems = append(f.problems, fmt.Sprintf(format, args...))
}

func newFolded(run string) *folded {
	return &folded{run: run, logs: map[mailbox.Address][]mailbox.Message{}, stale: map[string]int{},
		starts: map[string]map[string]int{}, claims: map[string][]reign{}, late: map[string][]string{}, open: map[string]string{}}
}

// fold reads and folds the logs of a run.
func fold(post *jetstream.Post, run string) (*folded, error) {
	f := newFolded(run)
	err := post.ReadRun(context.Background(), run, func(m mailbox.Message) error {
		f.logs[m.To] = append(f.logs[m.To], m)
		return nil
	})
	if err != nil {
		return nil, err
	}
	said := map[string]mailbox.Item{}
	for _, at := range sorted(f.logs) {
		f.agree(at, said)
		f.replay(at)
	}
	return f, nil
}

// agree checks that all lives of a sender said the same under one identity: two
// that both decided would differ sooner or later.
func (f *folded) agree(at mailbox.Address, said map[string]mailbox.Item) {
	for _, m := range f.logs[at] {
		e, err := mailbox.Decode(m.Data)
		if err != nil {
			f.bad("an entry of %s does not decode: %v", at, err)
			continue
		}
		if e.From == "" || e.From == at {
			continue
		}
		for _, item := range e.Items {
			id := fmt.Sprintf("%s>%s %d.%d", e.From, at, item.N, item.I)
			before, again := said[id]
			said[id] = item
			// Back tells of the life that says it, so each life says its own.
			if again && item.Kind != (agent.Back{}).Kind() && (before.Kind != item.Kind || !bytes.Equal(before.Body, item.Body)) {
				f.bad("%s was said in two ways: %s %s, and %s %s", id, before.Kind, body(before.Body), item.Kind, body(item.Body))
			}
		}
	}
}

// replay folds one log as it is, and as if superseded lives had written nothing:
// the machine must not know the difference. What a tool returned is evidence, and
// stays.
func (f *folded) replay(at mailbox.Address) {
	was, without := newScribe(at), newScribe(at)
	one := life.New(at, "", mailbox.Epoch{}, was)
	other := life.New(at, "", mailbox.Epoch{}, without)
	var force mailbox.Epoch
	var forcer string
	leases, replied, again := map[string]bool{}, 0, map[string]bool{}
	for _, m := range f.logs[at] {
		if read := one.Next(m); read.Err != nil {
			f.bad("%s: %v", at, read.Err)
		}
		if s, ok := was.Machine.(*life.Supervisor); ok {
			f.weigh(s)
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
			f.claimed(m, e)
		case own && e.Start != forcer:
			f.stale[item.Kind]++
			if item.Kind == "returned" {
				f.lately(at, e)
			} else {
				e.Items = nil
			}
		case own && !again[item.ID]: // what was sent again before its answer came counts once
			again[item.ID] = true
			f.count(at, e)
			if item.Kind == "replied" {
				replied++
			}
		}
		for _, item := range e.Items {
			if item.Kind == "granted" {
				leases[fmt.Sprint(item.N, ".", item.I)] = true
			}
		}
		e.Floor, e.Hash = 0, nil
		if m.Data, err = mailbox.Encode(e); err != nil {
			f.bad("an entry of %s does not encode: %v", at, err)
		}
		other.Next(m)
	}
	if !slices.Equal(was.steps, without.steps) {
		f.bad("%s: superseded lives made a difference", at)
	}
	f.granted += len(leases)
	f.replied += replied
	if s, ok := was.Machine.(*life.Supervisor); ok {
		f.result = s.State.Result()
	}
}

// claimed takes a claim that came into force.
func (f *folded) claimed(m mailbox.Message, e mailbox.Entry) {
	for _, fact := range (stored{m.To, m.At, e}).facts() {
		if r, ok := fact.(agent.Resumed); ok {
			name := string(m.To.Bare())
			f.claims[name] = append(f.claims[name], reign{start: e.Start, node: r.Node, at: m.At})
		}
	}
}

// lately takes what a tool returned to a life that was superseded.
func (f *folded) lately(at mailbox.Address, e mailbox.Entry) {
	for _, fact := range (stored{at, 0, e}).facts() {
		if r, ok := fact.(agent.Returned); ok {
			key := string(at.Bare()) + " " + e.Start
			f.late[key] = append(f.late[key], r.Call)
		}
	}
}

// count takes an entry in force.
func (f *folded) count(at mailbox.Address, e mailbox.Entry) {
	name := at.Bare() // the double and the ledger know of no pools
	for _, fact := range (stored{at, 0, e}).facts() {
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
			f.over(name, e.Start, fact.Rests)
			for key, start := range f.open {
				if start == e.Start {
					f.starts[key][start]--
				}
			}
		}
	}
}

// over notes that a life has said that it is over.
func (f *folded) over(name mailbox.Address, start string, rests bool) {
	for i, c := range f.claims[string(name)] {
		if c.start == start && rests {
			f.claims[string(name)][i].ended = atRest
		} else if c.start == start {
			f.claims[string(name)][i].ended = handedOver
		}
	}
}

// begun is how often a call may have been begun.
func (f *folded) begun(key string) (n int) {
	for _, started := range f.starts[key] {
		n += started
	}
	return n
}

// scribe is a machine whose every step is written down.
type scribe struct {
	life.Machine
	steps []string
}

func newScribe(at mailbox.Address) *scribe {
	if at.Agent() == mailbox.Super {
		return &scribe{Machine: &life.Supervisor{Addr: at}}
	}
	return &scribe{Machine: &life.Agent{Addr: at}}
}

// Step writes down what is asked of others and of the world.
func (s *scribe) Step(f life.Fact) life.Stepped {
	out := s.Machine.Step(f)
	text, err := json.Marshal([]any{f.N, f.At, f.Life, f.From, f.Kind, out.Letters, out.World})
	if err != nil {
		text = []byte(err.Error())
	}
	sum := sha256.Sum256(text)
	s.steps = append(s.steps, string(sum[:]))
	return out
}

// judgeLogs holds the logs of a run against its result, the ledger and the
// double's book.
func (t *theatre) judgeLogs(post *jetstream.Post, r *ran, effects map[string]int) {
	f, err := fold(post, r.id)
	if err != nil {
		t.found.of(r.id, "the logs of run %s: %v", r.id, err)
		return
	}
	for _, p := range f.problems {
		t.found.of(r.id, "%s", p)
	}
	for kind, n := range f.stale {
		t.stale[kind] += n
	}
	for key, n := range effects {
		if started := f.begun(key); n > started {
			t.found.of(r.id, "%s happened %d times, and %d Started were in force", key, n, started)
		}
	}
	for key := range f.starts {
		if started := f.begun(key); started > 1+t.load.allowed(key) && !t.o.control {
			t.found.of(r.id, "%s was started %d times, and a person approved that %d times", key, started, t.load.allowed(key))
		}
	}
	t.judgeUndead(f, r, effects)
	t.moved(f)
	requests := t.p.counted(r.id)
	if requests > f.granted {
		t.found.of(r.id, "run %s: %d requests were sent under %d leases", r.id, requests, f.granted)
	}
	if r.result == nil {
		return
	}
	b := r.result.Budget
	if b != f.result.Budget || r.result.Reason != f.result.Reason {
		t.found.of(r.id, "run %s was told as %s %+v, and its log says %s %+v", r.id, r.result.Reason, b, f.result.Reason, f.result.Budget)
	}
	if r.canceled {
		return // what was cut short is charged by what had arrived
	}
	if known := int64(f.replied * (inputTokens + outputTokens)); b.Used-b.Unknown != known {
		t.found.of(r.id, "run %s: %d replies cost %d tokens, and its budget says %+v", r.id, f.replied, known, b)
	}
}
