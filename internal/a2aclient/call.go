package a2aclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of a call.
const (
	cardBytesMax   = 256 << 10
	answerBytesMax = 1 << 20  // the text of an answer
	bodyBytesMax   = 8 << 20  // one response, with the files in it
	eventBytesMax  = 8 << 20  // one event of a stream
	streamBytesMax = 64 << 20 // a whole stream: an event for each token of a long answer
	errorBytesMax  = 64 << 10 // the body of a response that is no success
	artifactsMax   = 1000
	idBytesMax     = 512
	quotedBytesMax = 4 << 10 // text of an agent in an error

	cardTimeout   = 15 * time.Second
	silenceMax    = 60 * time.Second // of a stream; then the task is asked for
	askTimeout    = 30 * time.Second // of a request about a task
	cancelTimeout = 5 * time.Second
	learnWait     = 500 * time.Millisecond // for the id of a task when the call has ended before it was known
	// cancelWait is for the answer to a cancel: with learnWait less than tool.AbandonGrace.
	cancelWait    = 1200 * time.Millisecond
	pollFirst     = 500 * time.Millisecond // grows to pollMost
	pollMost      = 5 * time.Second
	pollFailures  = 5 // in a row
	retryAfterMax = time.Minute
)

// Errors of a call. Each text describes the outcome to a model.
var (
	errUnknown = errors.New("this node knows no such agent: a2a_agents of its troupe.yaml does not name it; " +
		"the task was not sent")
	errNotSent  = errors.New("the task was not sent")
	errForeign  = errors.New("the agent reports an error")
	errNotAsked = errors.New("this node no longer holds this question: it was restarted, or 256 newer ones were asked; " +
		"what the agent did is unknown")
	errAuth = errors.New("the agent wants an authorization that nobody gives during a call; " +
		"what it did before is unknown")
	errVanished  = errors.New("the agent stopped answering; what it did is unknown")
	errNoWait    = errors.New("the wait for the agent ended; what it did is unknown")
	errMalformed = errors.New("the agent sent something that is not a message of the protocol; what it did is unknown")
	errTooLong   = fmt.Errorf("the answer is longer than %d bytes and is cut here; "+
		"what the agent did after it is unknown", answerBytesMax)
	errTooMany    = fmt.Errorf("the agent sent more than %d artifacts; what it did after them is unknown", artifactsMax)
	errTooLarge   = errors.New("the agent sent too much; what it did is unknown")
	errCredential = errors.New("the server refuses the credential (token_env), and did not take the request")
	errServer     = errors.New("the server failed, and whether it took the request is unknown")
	errBusy       = errors.New("the server does not take the request now")
	errRefused    = errors.New("the server refuses the request")
	errRedirect   = errors.New("the server answers with a redirect, which is not followed")
)

// Config of a Caller.
type Config struct {
	Agents []Agent
	Env    func(string) string // the environment of the node
}

// Caller calls the agents of one node. It is safe for concurrent use.
type Caller struct {
	cfg    Config
	http   *http.Client
	nextID atomic.Int64
	ending sync.WaitGroup // cancels on their way
	open   openTasks

	cardTimeout, silence, learnWait, pollFirst, pollMost time.Duration // tests have others
}

// New returns a Caller.
func New(cfg Config) *Caller {
	return &Caller{
		cfg: cfg, http: newHTTPClient(), cardTimeout: cardTimeout, silence: silenceMax, learnWait: learnWait,
		pollFirst: pollFirst, pollMost: pollMost,
	}
}

// Close waits for the pending cancels, each of which takes at most cancelTimeout, and closes idle connections.
func (c *Caller) Close() {
	c.ending.Wait()
	c.http.CloseIdleConnections()
}

// Request is one task for an agent.
type Request struct {
	Name string // a2a/NAME
	Task string
	// Key is that of the call: the same when a person lets it run again, so that an agent may notice the same message.
	Key string
	// Answers is the ID of the Question that Task answers; "": Task is a new task.
	Answers string
	// Trace is the W3C traceparent of the call, which the agent gets as a header; it may be empty.
	Trace    string
	Progress func(string) // is called with the agent's progress; nil: not called
}

// call is a call under way.
type call struct {
	caller     *Caller
	target     target
	answer     answer
	onProgress func(string)

	learned   chan struct{} // closed once the id of the task is known
	learnOnce sync.Once
}

// Call gives a task to an agent and returns its answer. With an error the text is the part that had arrived until
// then. The task is sent once. If the call ends before the task does, by the end of ctx or by an error, Call cancels
// the task.
func (c *Caller) Call(ctx context.Context, r Request) (string, error) {
	text, err := c.run(ctx, r)
	if err != nil {
		err = fmt.Errorf("%s: %w", r.Name, err)
	}
	return text, err
}

func (c *Caller) run(ctx context.Context, r Request) (string, error) {
	k, err := c.begin(ctx, r)
	if err != nil {
		return "", err
	}
	t := k.target
	params := t.message(r.Key, r.Task, k.answer.task)
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { k.leave(sending, stop) })()
	if t.streaming {
		err = k.stream(sending, params)
	} else {
		err = k.send(sending, params)
	}
	if err == nil && !k.answer.isSettled() {
		err = k.poll(ctx)
	}
	if ctx.Err() != nil && !k.answer.isSettled() && !errors.Is(err, errNotSent) && !isVerdict(err) {
		err = errNoWait
	}
	if err != nil {
		return markPartial(k.answer.text()), k.cancel(ctx, err)
	}
	if k.answer.state == stateInput {
		return markPartial(k.answer.artifactText()), c.open.keep(k, r.Name)
	}
	text, err := k.answer.result()
	if err != nil {
		err = k.cancel(ctx, err)
	}
	return text, err
}

// begin begins a call: of a new task, or one that answers a question about a task.
func (c *Caller) begin(ctx context.Context, r Request) (*call, error) {
	k := &call{caller: c, onProgress: r.Progress, learned: make(chan struct{})}
	if k.onProgress == nil {
		k.onProgress = func(string) {}
	}
	if r.Answers != "" {
		was := c.open.take(r.Answers, r.Name)
		if was == nil {
			return nil, errNotAsked
		}
		k.target, k.answer, k.answer.state = was.target, was.answer, ""
		k.target.trace = r.Trace
		k.learnOnce.Do(func() { close(k.learned) })
		return k, nil
	}
	a, ok := c.find(r.Name)
	if !ok {
		return nil, errUnknown
	}
	var err error
	if k.target, err = c.findTarget(ctx, a); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	k.target.trace = r.Trace
	return k, nil
}

// leave ends the wait for an agent. A task can only be canceled by its id, which is waited for a moment longer.
func (k *call) leave(sending context.Context, stop func()) {
	timer := time.NewTimer(k.caller.learnWait)
	defer timer.Stop()
	select {
	case <-k.learned:
	case <-sending.Done(): // the call has returned
	case <-timer.C:
	}
	stop()
}

// find returns the settings of an agent.
func (c *Caller) find(name string) (Agent, bool) {
	for _, a := range c.cfg.Agents {
		if NamePrefix+a.Name == name {
			return a, true
		}
	}
	return Agent{}, false
}

// send sends the task to an agent that does not stream.
func (k *call) send(ctx context.Context, params any) error {
	result, sent, err := k.caller.request(ctx, k.target, k.target.dialect.send, params)
	if err != nil {
		return whetherSent(sent, err)
	}
	return k.add(result)
}

// whetherSent adds the state of the task to the error of its request.
func whetherSent(sent bool, err error) error {
	switch {
	case !sent:
		return fmt.Errorf("%w: its server is not reached: %w", errNotSent, err)
	case asksElsewhere(err):
		return fmt.Errorf("the server did not take the task: %w", err)
	case errors.Is(err, errRedirect):
		return fmt.Errorf("whether the server took the task is unknown: %w", err)
	case isVerdict(err):
		return err
	}
	return fmt.Errorf("%w: %w", errVanished, err)
}

// add reads a result and reports the progress.
func (k *call) add(result json.RawMessage) error {
	err := k.answer.add(result)
	if k.answer.task != "" {
		k.learnOnce.Do(func() { close(k.learned) })
	}
	if err != nil {
		return err
	}
	k.onProgress(k.answer.progress())
	return nil
}

// stream sends the task and reads what the agent streams. nil: the task is settled, or its stream has ended before it,
// so that it must be asked for.
func (k *call) stream(ctx context.Context, params any) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	res, sent, err := k.caller.post(reading, k.target, k.target.dialect.stream, params, "text/event-stream")
	if err != nil {
		return whetherSent(sent, err)
	}
	defer func() { _ = res.Body.Close() }()
	if !isEventStream(res) || res.StatusCode != http.StatusOK {
		result, err := readResult(res)
		if err != nil {
			return whetherSent(true, err)
		}
		return k.add(result)
	}
	var silence *time.Timer // nil until the task is known: only then it can be asked for
	defer func() {
		if silence != nil {
			silence.Stop()
		}
	}()
	alive := func() {
		switch {
		case k.answer.task == "":
		case silence == nil:
			silence = time.AfterFunc(k.caller.silence, stop)
		default:
			silence.Reset(k.caller.silence)
		}
	}
	err = readEvents(res.Body, alive, func(data []byte) (bool, error) {
		result, err := decode(data)
		if err == nil {
			err = k.add(result)
		}
		alive()
		return k.answer.isSettled(), err
	})
	switch {
	case isVerdict(err):
		return err
	case k.answer.task == "" && !k.answer.isSettled():
		return errVanished
	}
	return nil
}

// isVerdict reports whether an error is about what the agent or its server said, and not about the connection.
func isVerdict(err error) bool {
	return isAny(err, errForeign, errMalformed, errTooLong, errTooMany, errTooLarge, errCredential, errRefused) ||
		isPassing(err)
}

// isPassing reports whether an error is temporary: a retry may get another answer.
func isPassing(err error) bool { return isAny(err, errServer, errBusy, errRedirect) }

func isAny(err error, list ...error) bool {
	return slices.ContainsFunc(list, func(known error) bool { return errors.Is(err, known) })
}

// poll asks for the task until it is settled. It only asks: the task is not sent again.
func (k *call) poll(ctx context.Context) error {
	pause, failures := k.caller.pollFirst, 0
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return errNoWait
		case <-timer.C:
		}
		result, err := k.ask(ctx, k.target.dialect.get, map[string]any{"historyLength": historyLength}, askTimeout)
		var t wireTask
		switch {
		case isVerdict(err) && !isPassing(err):
			return err
		case err != nil && ctx.Err() != nil:
			return errNoWait
		case err == nil && json.Unmarshal(result, &t) != nil:
			return errMalformed
		case err == nil:
			failures = 0
			if err := k.answer.addTask(t); err != nil {
				return err
			}
			k.onProgress(k.answer.progress())
			if k.answer.isSettled() {
				return nil
			}
		default:
			if failures++; failures == pollFailures {
				return fmt.Errorf("%w: it was asked %d times for its task: %w", errVanished, failures, err)
			}
		}
		pause = min(pause*3/2, k.caller.pollMost)
		timer.Reset(max(pause, retryAfter(err)))
	}
}

// ask sends a request about the task.
func (k *call) ask(
	ctx context.Context, method string, more map[string]any, most time.Duration,
) (json.RawMessage, error) {
	asking, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	result, _, err := k.caller.request(asking, k.target, method, k.target.aboutTask(k.answer.task, more))
	return result, err
}

// cancel tells the agent to cancel a task that this call no longer waits for, and adds to the reason what became of
// that.
func (k *call) cancel(ctx context.Context, why error) error {
	if k.answer.task == "" || k.answer.state.isOver() {
		return why
	}
	done := make(chan string, 1)
	k.caller.ending.Go(func() { done <- k.cancelTask(context.WithoutCancel(ctx)) })
	timer := time.NewTimer(cancelWait)
	defer timer.Stop()
	select {
	case what := <-done:
		return fmt.Errorf("%w (%s)", why, what)
	case <-timer.C:
		return fmt.Errorf("%w (it was told to cancel the task, and has not answered)", why)
	}
}

// cancelTask says in words what became of the cancel.
func (k *call) cancelTask(ctx context.Context) string {
	result, err := k.ask(ctx, k.target.dialect.cancel, nil, cancelTimeout)
	var t wireTask
	if err == nil && json.Unmarshal(result, &t) != nil {
		err = errMalformed
	}
	state, _ := parseState(t.Status.State)
	switch {
	case err != nil:
		return fmt.Sprintf("it was told to cancel the task, which failed: %v", err)
	case state == stateCanceled:
		return "its task was canceled"
	}
	return fmt.Sprintf("it was told to cancel the task, whose state is then %.20q", string(state))
}
