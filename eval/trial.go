package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/supervisor"
)

const nodeName = "eval"

// What was done from outside.
const (
	canceled = "canceled"
	crashed  = "crashed"
)

// mockCalled is what During may name besides the kinds of events.
const mockCalled = "mock.called"

// called says that a mocked tool has begun.
type called struct{ name string }

// trial is a case under way.
type trial struct {
	c     *Case
	post  *memory.Post
	node  *actors.Node
	lease uint64
	mocks *mocks
	play  *players
	hooks *hooks

	mu     sync.Mutex // what the run says comes from other goroutines
	inbox  []any      // life.Event, supervisor.Result
	news   chan struct{}
	super  *life.Supervisor
	parked bool

	told     []life.Event
	seen     map[string]int // events by kind, and kind and what they are about
	asked    map[string]bool
	answered map[string]bool
	fired    map[int]bool // of During
	said     *supervisor.Result
	requests int
	moving   string        // what was done from outside that has yet to show: canceled, crashed
	took     time.Duration // from Open to the end
}

var (
	errNoEnd = errors.New("the run did not end")
	errLoud  = errors.New("the run told more events than a trial takes")
)

// play runs the case to its end, or to where it waits for a person.
func (c *Case) play(ctx context.Context) (*trial, error) {
	within := time.Duration(c.Within)
	if within == 0 {
		within = TrialMax
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	t := &trial{c: c, post: memory.New(memory.Config{}), mocks: &mocks{c: c, ran: map[string]int{}}, play: c.players(), hooks: &hooks{c: c, asked: map[string]int{}},
		news: make(chan struct{}, 1), super: &life.Supervisor{Addr: mailbox.At(runName, mailbox.Super)},
		seen: map[string]int{}, asked: map[string]bool{}, answered: map[string]bool{}, fired: map[int]bool{}}
	t.mocks.called = func(name string) { t.hear(called{name}) }
	l := life.New(t.super.Addr, "", mailbox.Epoch{}, t.super)
	untail, err := t.post.Tail(ctx, func(m mailbox.Message) {
		if m.To == t.super.Addr {
			t.mu.Lock()
			l.Next(m)
			t.mu.Unlock()
			t.wake()
		}
	})
	if err != nil {
		return nil, fmt.Errorf("eval: %w", err)
	}
	defer untail()
	if err := t.start(ctx); err != nil {
		return nil, err
	}
	defer func() { t.node.Stop() }()
	began := time.Now()
	if err := t.node.Open(ctx, c.opened()); err != nil {
		return nil, fmt.Errorf("eval: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			t.took = time.Since(began)
			return t, fmt.Errorf("%w within %s", errNoEnd, within)
		case <-t.news:
		}
		if done, err := t.look(ctx); done || err != nil {
			t.took = time.Since(began)
			return t, err
		}
	}
}

// start starts a node on the logs of the trial.
func (t *trial) start(ctx context.Context) error {
	t.lease++
	var err error
	t.node, err = actors.Start(context.WithoutCancel(ctx), actors.Config{Name: nodeName, Post: t.post, Lease: t.lease,
		Model: t.play.client, Tools: t.mocks.set, Hooks: t.hooks.funcs(), Events: func(e life.Event) { t.hear(e) },
		Over: func(_ string, r supervisor.Result) { t.hear(r) }})
	if err != nil {
		return fmt.Errorf("eval: %w", err)
	}
	return nil
}

func (t *trial) hear(what any) {
	t.mu.Lock()
	t.inbox = append(t.inbox, what)
	t.mu.Unlock()
	t.wake()
}

func (t *trial) wake() {
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// look takes what has come, does what the case wants done, and reports whether
// the trial is over.
func (t *trial) look(ctx context.Context) (done bool, err error) {
	t.mu.Lock()
	inbox := t.inbox
	t.inbox = nil
	t.mu.Unlock()
	for _, what := range inbox {
		switch what := what.(type) {
		case supervisor.Result:
			t.said = &what
		case called:
			if err := t.after(ctx, life.Event{Run: runName, Agent: string(agent.Root), Kind: mockCalled}, []string{"", what.name}); err != nil {
				return false, err
			}
		case life.Event:
			if t.told = append(t.told, what); len(t.told) > eventsMax {
				return false, errLoud
			}
			if err := t.during(ctx, what); err != nil {
				return false, err
			}
		}
	}
	return t.said != nil || t.waits(), nil
}

// waits reports whether all that is left to do waits for a person: every live
// agent without live children has asked something that nobody answers.
func (t *trial) waits() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, waiting := t.super.State, 0
	all := t.moving == ""
	s.Members(func(m supervisor.Member) {
		switch {
		case m.Done || m.Children > 0:
		case m.Query == nil:
			all = false
		default:
			key := string(m.ID) + " " + m.Query.Query
			all = all && t.asked[key] && !t.answered[key]
			waiting++
		}
	})
	t.parked = all && waiting > 0
	return t.parked
}

// during does what the case wants done after an event.
func (t *trial) during(ctx context.Context, e life.Event) error {
	about := []string{"", e.Agent}
	switch d := e.Data.(type) {
	case agent.ToolNote:
		about = append(about, d.Tool)
	case agent.AgentStarted:
		about = append(about, d.Name)
	case agent.AgentParked:
		t.asked[e.Agent+" "+d.Query] = true
	case agent.AgentResumed:
		if t.moving == crashed {
			t.moving = ""
		}
	}
	return t.after(ctx, e, about)
}

// after does what the case wants done after something that is about the named.
func (t *trial) after(ctx context.Context, e life.Event, about []string) error {
	for _, of := range about {
		t.seen[e.Kind+" "+of]++
	}
	for i, d := range t.c.During {
		if !t.fired[i] && d.After == e.Kind && slices.Contains(about, d.Of) && t.seen[e.Kind+" "+d.Of] == d.Nth {
			t.fired[i] = true
			if err := t.do(ctx, d, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// do is one intervention.
func (t *trial) do(ctx context.Context, d During, e life.Event) error {
	t.requests++
	request := fmt.Sprintf("during-%d", t.requests)
	at := mailbox.At(e.Run, e.Agent)
	switch {
	case d.Cancel != "":
		t.moving = canceled
		f := agent.Canceled{Why: "the case says so", Now: d.Cancel == "now"}
		return t.node.Command(ctx, t.super.Addr, request, f.Kind(), f)
	case d.Steer != "":
		if at == t.super.Addr {
			at = mailbox.At(e.Run, string(agent.Root))
		}
		f := agent.Steered{Text: d.Steer}
		return t.node.Command(ctx, at, request, f.Kind(), f)
	case d.Answer != nil:
		q, ok := e.Data.(agent.AgentParked)
		if !ok {
			return fmt.Errorf("during: nothing was asked by %s; answer after query.asked", e.Kind)
		}
		f := agent.Answered{Query: q.Query, Decision: d.Answer.Decision, Text: d.Answer.Text}
		if f.Decision == "" {
			f.Decision = "text"
		}
		t.answered[e.Agent+" "+q.Query] = true
		return t.node.Command(ctx, at, request, f.Kind(), f)
	}
	t.moving = crashed
	t.node.Stop()
	if err := t.start(ctx); err != nil {
		return err
	}
	return t.node.Resume(ctx, e.Run)
}

// log is all that the run recorded.
func (t *trial) log() ([]mailbox.Message, error) {
	var log []mailbox.Message
	err := t.post.ReadRun(context.Background(), runName, func(m mailbox.Message) error {
		log = append(log, m)
		return nil
	})
	return log, err
}
