package eval

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
)

const nodeName = "eval"

// Outside events.
const (
	canceled = "canceled"
	crashed  = "crashed"
)

// Values that Intervention.After accepts and that are no kinds of events: what is under way then has begun for
// certain. A model.started comes before the call has passed the limits of the node.
const (
	MockCalled = "mock.called"
	MockAsked  = "mock.asked" // a scripted model has the request of an agent's turn
)

// mockCalledMessage is the message that a mocked tool has begun.
type mockCalledMessage struct {
	name string
	call tool.Call
}

// mockAskedMessage is the message that a scripted model has a request of an agent.
type mockAskedMessage struct{ agent string }

// caseRun is a case that is running.
type caseRun struct {
	c      *Case
	post   *memory.Post
	node   *actors.Node
	lease  uint64
	mocks  *toolMocks
	models *scriptedModels
	hooks  *scriptedHooks
	// cancels receives all entries.
	cancels *cancelWait

	mu     sync.Mutex // the run reports from other goroutines
	inbox  []any      // event.Published, supervisor.Result
	wakeup chan struct{}
	super  *activation.Supervisor
	parked bool

	published           []event.Published
	seen                map[string]int // events by kind, and by kind and subject
	asked               map[string]bool
	answered            map[string]bool
	fired               map[int]bool // of Case.Interventions, by index
	reported            *event.Result
	requests            int
	pendingIntervention string        // outside event that has yet to show: canceled, crashed
	duration            time.Duration // from Open to the end
}

var (
	errNoEnd         = errors.New("the run did not end")
	errTooManyEvents = errors.New("the run published more events than a trial accepts")
)

// runToEnd runs the case to its end, or until it waits for the user.
func (c *Case) runToEnd(ctx context.Context) (*caseRun, error) {
	within := time.Duration(c.TimeLimit)
	if within == 0 {
		within = CaseTimeMax
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	t := &caseRun{c: c, post: memory.New(memory.Config{}), models: c.newScriptedModels(), hooks: &scriptedHooks{c: c, asked: map[string]int{}},
		cancels: newCancelWait(c), wakeup: make(chan struct{}, 1), super: &activation.Supervisor{Addr: mailbox.At(runName, mailbox.Super)},
		seen: map[string]int{}, asked: map[string]bool{}, answered: map[string]bool{}, fired: map[int]bool{}}
	t.models.cancels, t.models.onAsk = t.cancels, func(agentID string) { t.enqueueMessage(mockAskedMessage{agentID}) }
	t.mocks = newToolMocks(c, t.cancels, func(name string, call tool.Call) { t.enqueueMessage(mockCalledMessage{name, call}) })
	l := activation.Watch(t.super.Addr, t.super)
	untail, err := t.post.Tail(ctx, func(m mailbox.Message) {
		t.cancels.note(m)
		if m.To == t.super.Addr {
			t.mu.Lock()
			l.Next(m)
			t.mu.Unlock()
			t.signalWakeup()
		}
	})
	if err != nil {
		return nil, fmt.Errorf("eval: %w", err)
	}
	defer untail()
	if err := t.startNode(ctx); err != nil {
		return nil, err
	}
	defer func() { t.node.Stop() }()
	began := time.Now()
	if err := t.node.Open(ctx, c.openedEntry()); err != nil {
		return nil, fmt.Errorf("eval: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			t.duration = time.Since(began)
			return t, fmt.Errorf("%w within %s", errNoEnd, within)
		case <-t.wakeup:
		}
		if done, err := t.processInbox(ctx); done || err != nil {
			t.duration = time.Since(began)
			return t, err
		}
	}
}

// startNode starts a node on the logs of the trial.
func (t *caseRun) startNode(ctx context.Context) error {
	t.lease++
	var err error
	t.node, err = actors.Start(context.WithoutCancel(ctx), actors.Config{Name: nodeName, Post: t.post, Lease: t.lease,
		Model: t.models.clientFor, Tools: t.mocks.newToolSet, Hooks: t.hooks.hookFuncs(), OnEvent: func(e event.Published) { t.enqueueMessage(e) },
		OnResult: func(_ string, r event.Result) { t.enqueueMessage(r) }})
	if err != nil {
		return fmt.Errorf("eval: %w", err)
	}
	return nil
}

func (t *caseRun) enqueueMessage(what any) {
	t.mu.Lock()
	t.inbox = append(t.inbox, what)
	t.mu.Unlock()
	t.signalWakeup()
}

func (t *caseRun) signalWakeup() {
	select {
	case t.wakeup <- struct{}{}:
	default:
	}
}

// processInbox processes the new events, performs the outside events of the case, and reports
// whether the trial is over.
func (t *caseRun) processInbox(ctx context.Context) (done bool, err error) {
	t.mu.Lock()
	inbox := t.inbox
	t.inbox = nil
	t.mu.Unlock()
	for _, what := range inbox {
		switch what := what.(type) {
		case event.Result:
			t.reported = &what
		case mockCalledMessage:
			if err := t.fireInterventions(ctx, event.Published{Run: runName, Agent: string(spec.Root), Kind: MockCalled}, []string{"", what.name, callName(what.call)}); err != nil {
				return false, err
			}
		case mockAskedMessage:
			if err := t.fireInterventions(ctx, event.Published{Run: runName, Agent: what.agent, Kind: MockAsked}, []string{"", what.agent}); err != nil {
				return false, err
			}
		case event.Published:
			if t.published = append(t.published, what); len(t.published) > eventsMax {
				return false, errTooManyEvents
			}
			if err := t.handlePublished(ctx, what); err != nil {
				return false, err
			}
		}
	}
	return t.reported != nil || t.isWaiting(), nil
}

// isWaiting reports whether the run can continue only with input from the user: every live
// agent without live children has asked a question that the case does not answer.
func (t *caseRun) isWaiting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, waiting := t.super.State, 0
	all := t.pendingIntervention == ""
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

// handlePublished performs the interventions of the case after an event.
func (t *caseRun) handlePublished(ctx context.Context, e event.Published) error {
	about := []string{"", e.Agent}
	switch d := e.Data.(type) {
	case event.ToolCall:
		about = append(about, d.Tool)
	case event.AgentStarted:
		about = append(about, d.Name)
	case event.AgentParked:
		t.asked[e.Agent+" "+d.Query] = true
	case event.AgentResumed:
		if t.pendingIntervention == crashed {
			t.pendingIntervention = ""
		}
	}
	return t.fireInterventions(ctx, e, about)
}

// fireInterventions performs the interventions of the case after an event about the named subject.
func (t *caseRun) fireInterventions(ctx context.Context, e event.Published, about []string) error {
	for _, of := range about {
		t.seen[e.Kind+" "+of]++
	}
	for i, d := range t.c.Interventions {
		if !t.fired[i] && t.isDue(d, e.Kind, about) {
			t.fired[i] = true
			if err := t.performIntervention(ctx, d, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// performIntervention performs one intervention.
func (t *caseRun) performIntervention(ctx context.Context, d Intervention, e event.Published) error {
	t.requests++
	request := fmt.Sprintf("during-%d", t.requests)
	at := mailbox.At(e.Run, e.Agent)
	switch {
	case d.Cancel != "":
		t.pendingIntervention = canceled
		f := agent.Canceled{Why: "the case says so", Now: d.Cancel == "now"}
		return t.node.Command(ctx, t.super.Addr, request, f.Kind(), f)
	case d.Steer != "":
		if at == t.super.Addr {
			at = mailbox.At(e.Run, string(spec.Root))
		}
		f := agent.Steered{Text: d.Steer}
		return t.node.Command(ctx, at, request, f.Kind(), f)
	case d.Answer != nil:
		q, ok := e.Data.(event.AgentParked)
		if !ok {
			return fmt.Errorf("during: nothing was asked by %s; answer after query.asked", e.Kind)
		}
		f := agent.Answered{Query: q.Query, Decision: d.Answer.Decision, Text: d.Answer.Text, Always: d.Answer.Always}
		if f.Decision == "" {
			f.Decision = spec.TextOnly
		}
		t.answered[e.Agent+" "+q.Query] = true
		return t.node.Command(ctx, at, request, f.Kind(), f)
	}
	t.pendingIntervention = crashed
	t.node.Stop()
	if err := t.startNode(ctx); err != nil {
		return err
	}
	return t.node.Resume(ctx, e.Run)
}

// readLog returns all entries of the run.
func (t *caseRun) readLog() ([]mailbox.Message, error) {
	var log []mailbox.Message
	err := t.post.ReadRun(context.Background(), runName, func(m mailbox.Message) error {
		log = append(log, m)
		return nil
	})
	return log, err
}
