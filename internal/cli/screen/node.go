package screen

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/top"
)

const (
	askTimeout  = 10 * time.Second // for one request
	openTimeout = 3 * time.Second  // to connect to the next node after the previous one was lost
	// Events are forwarded in batches: those that arrive within batchDelay, batchMax at most.
	batchDelay = 30 * time.Millisecond
	batchMax   = 1024
)

// nodeLink executes the screen's effects on a node. If the node is lost, it connects to the next one.
type nodeLink struct {
	ctx   context.Context
	open  func(ctx context.Context) (*session.Session, error)
	send  func(top.Input)
	begin func(ctx context.Context, flags []string, prompt string) (client.RunAccepted, string, error)

	mu      sync.Mutex
	session *session.Session // nil: not connected

	// Only the loop of the screen uses these, and what follows it.
	followed *followed
	begins   []*begun // runs of which the screen does not yet show whether they have begun
}

// followed is the run whose events are forwarded to the screen.
type followed struct {
	run       string
	positions client.Positions // of the last forwarded event
	ctx       context.Context
	stop      context.CancelCauseFunc
}

func newNode(ctx context.Context, open func(ctx context.Context) (*session.Session, error)) *nodeLink {
	return &nodeLink{ctx: ctx, open: open}
}

// findRun opens the first session and resolves RUN to a run id; "" if no run was given.
func (n *nodeLink) findRun(word string) (string, error) {
	s, err := n.open(n.ctx)
	if err != nil {
		return "", err
	}
	n.session = s
	if word == "" {
		return "", nil
	}
	run, err := s.FindRun(s.Context, word)
	if err != nil {
		return "", err
	}
	_, err = s.State(s.Context, run)
	return run, err
}

func (n *nodeLink) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.session == nil {
		return nil
	}
	return n.session.Close()
}

// connect returns the session, or opens one.
func (n *nodeLink) connect() (*session.Session, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.session != nil {
		return n.session, nil
	}
	ctx, cancel := context.WithCancel(n.ctx) // the session lives in it
	late := time.AfterFunc(openTimeout, cancel)
	s, err := n.open(ctx)
	if !late.Stop() && err == nil {
		err = errors.Join(client.ErrUnavailable, s.Close())
	}
	if err != nil {
		cancel()
		return nil, err
	}
	n.session = s
	return s, nil
}

// drop closes a session whose node is gone.
func (n *nodeLink) drop(s *session.Session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.session == s {
		n.session = nil
		_ = s.Close() // the node is gone: closing cannot lose anything
	}
}

// carryOut executes an effect and returns its answer. ok is false if another run has replaced a Follow.
func (n *nodeLink) carryOut(e top.Effect, run *followed) (answer top.Fetched, ok bool) {
	data, lost, err := n.request(e, run)
	if errors.Is(err, errReplaced) {
		return answer, false
	}
	return answerOf(e, data, lost, err), true
}

// request connects to a node, sends the request of an effect, and returns its reply. lost says that no node answered.
func (n *nodeLink) request(e top.Effect, run *followed) (data any, lost bool, err error) {
	s, err := n.connect()
	if err != nil {
		return nil, true, err
	}
	if _, ok := e.(top.Follow); ok {
		err = n.follow(s, run)
	} else {
		data, err = n.answerEffect(s, e)
	}
	if lost = isLost(s, err); lost && (s.IsGone(err) || s.Context.Err() != nil) {
		n.drop(s)
	}
	return data, lost, err
}

// answerOf is what the screen learns of the outcome of an effect.
func answerOf(e top.Effect, data any, lost bool, err error) top.Fetched {
	answer := top.Fetched{Effect: e, Data: data, Lost: lost, At: time.Now()}
	if err != nil {
		f := exit.Explain(err)
		answer.Problem = exit.PlainText(f)
		if f.Hint != "" && !lost {
			answer.Problem += ": " + f.Hint
		}
	}
	return answer
}

// answerEffect sends the request of an effect, and returns its reply. Of these a run that begins may need time to copy a
// directory, and a comparison to read two runs.
func (n *nodeLink) answerEffect(s *session.Session, e top.Effect) (any, error) {
	switch e := e.(type) {
	case top.StartRun:
		return n.beginRun(startFlags(e), e.Prompt)
	case top.ForkRun:
		return n.beginRun(forkFlags(e), e.Prompt)
	case top.FetchComparison:
		return compareRuns(s.Context, s, e)
	}
	ctx, cancel := context.WithTimeout(s.Context, askTimeout)
	defer cancel()
	return ask(ctx, s, e)
}

// isLost reports whether an error is temporary: the node does not answer now but may later.
func isLost(s *session.Session, err error) bool {
	if err == nil {
		return false
	}
	var refused *client.Error
	logsUnavailable := errors.As(err, &refused) && refused.Code == client.CodeLogs
	return s.IsGone(err) || client.Busy(err) || logsUnavailable || errors.Is(err, context.DeadlineExceeded) || s.Context.Err() != nil
}

// ask sends one request and returns its reply.
func ask(ctx context.Context, s *session.Session, e top.Effect) (any, error) {
	switch e := e.(type) {
	case top.FetchRuns:
		return s.ListRuns(ctx, client.ListRequest{Limit: e.Limit})
	case top.FetchRun:
		return s.State(ctx, e.Run)
	case top.FetchQuestions:
		return s.Questions(ctx)
	case top.FetchNodes:
		return s.Nodes(ctx)
	case top.FetchTranscript:
		return s.Transcript(ctx, e.Run, e.Agent)
	case top.FetchBudget:
		return s.Describe(ctx, e.Run)
	case top.FetchEntries:
		return readEntries(ctx, s, e)
	}
	return send(ctx, s, e)
}

// send sends a person's action and returns a message about it.
func send(ctx context.Context, s *session.Session, e top.Effect) (string, error) {
	switch e := e.(type) {
	case top.SendAnswer:
		return sendAnswer(ctx, s, e.Request)
	case top.SendCancel:
		reply, err := s.Cancel(ctx, e.Request)
		return fmt.Sprintf("the cancel of %s is recorded: %s", e.Request.RunID, reply.Text), err
	case top.SendBudget:
		return fmt.Sprintf("the limits of %s are changed", e.Request.RunID), s.Budget(ctx, e.Request)
	case top.SendMessage:
		return "the message is recorded; the agent reads it at its next turn", s.Steer(ctx, e.Request)
	}
	return "", fmt.Errorf("%w: %T", errEffect, e)
}

// sendAnswer sends an answer, and returns what it does beyond being recorded: a rule for a directory, or that another
// person must approve, too.
func sendAnswer(ctx context.Context, s *session.Session, r client.AnswerRequest) (string, error) {
	text := fmt.Sprintf("%s: recorded for %s of %s; the first answer counts", r.Decision, r.Agent, r.RunID)
	if r.Decision == spec.TextOnly {
		text = fmt.Sprintf("the answer is recorded for %s of %s; the first answer counts", r.Agent, r.RunID)
	}
	var said []string
	err := request.SendAnswer(ctx, s, r, func(line string) { said = append(said, line) })
	if len(said) > 0 {
		text = strings.Join(said, "; ")
	}
	return text, err
}

// errEffect is a bug: no code handles this effect.
var errEffect = errors.New("screen: unknown effect")

// errReplaced stops the event stream of a run when another run is opened.
var errReplaced = errors.New("screen: another run is followed")

// beginFollow replaces the followed run. If it is the same run, its events continue after the last forwarded one.
func (n *nodeLink) beginFollow(run string) *followed {
	f := &followed{run: run, positions: client.Positions{}}
	if old := n.followed; old != nil {
		old.stop(errReplaced)
		if old.run == run {
			f.positions = old.positions
		}
	}
	f.ctx, f.stop = context.WithCancelCause(n.ctx)
	n.followed = f
	return f
}

// follow forwards the events of a run until it has ended.
func (n *nodeLink) follow(s *session.Session, f *followed) error {
	defer context.AfterFunc(s.Context, func() { f.stop(context.Cause(s.Context)) })()
	defer f.stop(nil)
	events := make(chan client.Event, batchMax)
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.sendBatches(f.run, events)
	}()
	err := s.Events(f.ctx, f.run, f.positions.Cursor(), true, func(e client.Event, _ []byte) error {
		if !f.positions.Advance(e) {
			return nil
		}
		select {
		case events <- e:
			return nil
		case <-f.ctx.Done():
			return f.ctx.Err()
		}
	})
	close(events)
	<-done
	if errors.Is(context.Cause(f.ctx), errReplaced) {
		return errReplaced
	}
	return err
}

// sendBatches forwards events in batches.
func (n *nodeLink) sendBatches(run string, events <-chan client.Event) {
	for e := range events {
		batch := []client.Event{e}
		late := time.After(batchDelay)
	fill:
		for len(batch) < batchMax {
			select {
			case next, ok := <-events:
				if !ok {
					break fill
				}
				batch = append(batch, next)
			case <-late:
				break fill
			}
		}
		n.send(top.EventsRead{Run: run, Events: batch})
	}
}
