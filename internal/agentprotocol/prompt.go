package agentprotocol

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/abandon"
	"github.com/troupe-run/troupe/internal/answertext"
)

const (
	// withdrawTimeout bounds the removal of the attachments of a run that was refused.
	withdrawTimeout = 30 * time.Second
	// lookAgainAfter is how soon the state of a run that waits for a person is read again without an event.
	lookAgainAfter = 10 * time.Second
	// noForeignCalls keeps a run that another program has started from calling agents of other programs. Such a call
	// may lead back here: agents that call each other would start runs without end, each with a budget of its own.
	noForeignCalls = "delegate(*/*)"
)

// promptRun is the run of one prompt.
type promptRun struct {
	host *Host
	out  *replyStream
	id   string
	ctx  context.Context // of the prompt
	// opened is closed when the caller knows which run answers. Questions wait for it.
	opened chan struct{}
	// woken says that a run that waited for a person may go on.
	woken chan struct{}
	work  sync.WaitGroup // questions
	// allHeard is closed by the event that ends the run: the text of the turns came before it.
	allHeard  chan struct{}
	hearsLast sync.Once

	mu    sync.Mutex
	open  bool // the run is accepted: its text is sent
	quiet bool // the run existed before: only its answer is sent
	ended bool
	early []string // text that came before it was open
	text  answertext.Stream
	asked map[string]context.CancelFunc // questions that were put, by question.key
	// tokens and limit are those of the run, waiting says that it waits for a person.
	tokens, limit int64
	waiting       bool
}

// servePrompt answers one prompt: it starts a run of the agent, and passes on its answer.
func (h *Host) servePrompt(a *exportedAgent, m promptRequest) {
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	out := &replyStream{conn: h.cfg.Conn, subject: m.reply, redact: h.cfg.Redact, logger: h.cfg.Logger}
	defer out.end()
	defer func() {
		if bug := recover(); bug != nil {
			h.cfg.Logger.Error("a prompt met a bug", "agent", a.name, "panic", bug, "stack", string(debug.Stack()))
			out.fail(bugProblem)
		}
	}()
	if len(m.data) > h.payloadMax {
		out.fail(refusalOf(badEnvelope("", "the payload has %d bytes, at most %d are accepted", len(m.data), h.payloadMax)))
		return
	}
	caller, failed := h.checkSender(m.sender, m.subject, m.data)
	if failed != nil {
		out.fail(*failed)
		return
	}
	e, err := decodeEnvelope(m.data, a.task)
	if err != nil {
		out.fail(refusalOf(err))
		return
	}
	if a.isStopped() {
		out.fail(stoppedProblem)
		return
	}
	e.Run.Caller = a.runCaller(caller, e.Run.Caller)
	out.send(chunkStatus, statusAck)
	p := &promptRun{host: h, out: out, id: cmp.Or(e.Run.RunID, client.NewID()), ctx: ctx, opened: make(chan struct{}), woken: make(chan struct{}, 1), allHeard: make(chan struct{}), asked: map[string]context.CancelFunc{}}
	p.text.Send = p.sendText
	a.addRun(p)
	defer a.removeRun(p)
	defer p.close(cancel)
	p.startWork(p.keepAlive)
	if failed := p.answerPrompt(e, a, m.trace); failed != nil {
		if h.ctx.Err() != nil {
			*failed = closingProblem
		}
		if p.isAccepted() {
			failed.RunID = p.id
		}
		out.fail(*failed)
	}
}

// close ends the work of the prompt.
func (p *promptRun) close(cancel func()) {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	cancel()
	p.work.Wait()
}

// keepAlive shows the caller that the stream is alive while the run says nothing.
func (p *promptRun) keepAlive() {
	tick := time.NewTicker(keepAliveInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-p.ctx.Done():
			return
		}
		if _, waiting, _, _ := p.state(); waiting {
			p.out.send(chunkStatus, statusWaiting)
		} else {
			p.out.send(chunkStatus, statusWorking)
		}
	}
}

// answerPrompt starts the run and follows it to its end. The result is nil if the run was successful.
func (p *promptRun) answerPrompt(e envelope, a *exportedAgent, trace string) *problem {
	watch, err := p.host.cfg.Client.NewRunWatch(p.id)
	if err != nil {
		return problemOf(err)
	}
	defer watch.Close()
	unwatch, err := p.host.cfg.Client.WatchRun(p.id, p.handle)
	if err != nil {
		return problemOf(err)
	}
	defer unwatch()
	accepted, err := p.start(e, trace)
	if err != nil {
		return problemOf(err)
	}
	p.begin(accepted)
	if a.isStopped() && !accepted.Existed { // the run began while its session was stopped
		if err := p.abandon("its session was stopped"); err != nil {
			return problemOf(err)
		}
	}
	info, err := p.await(watch, accepted.Existed)
	if err != nil {
		return problemOf(err)
	}
	p.awaitEvents(info)
	return p.finish(info)
}

func problemOf(err error) *problem {
	p := refusalOf(err)
	return &p
}

// start uploads the attachments and starts the run, as the verbs attach and run do. The request is not given up with
// the prompt: a run that was accepted must be known.
func (p *promptRun) start(e envelope, trace string) (a client.RunAccepted, err error) {
	c, r := p.host.cfg.Client, e.Run
	r.RunID, r.Prompt = p.id, e.Prompt
	r.Trace, r.Outside = cmp.Or(r.Trace, trace), true
	r.DisallowedTools = append(slices.Clone(r.DisallowedTools), noForeignCalls)
	for _, f := range e.Attachments {
		file, err := c.Attach(p.ctx, p.id, f.Name, f.Type, f.Data)
		if err != nil {
			return a, errors.Join(err, p.withdraw(e))
		}
		r.Attach = append(r.Attach, file)
	}
	// This node has the agent; another one may not.
	a, err = c.RunOn(context.WithoutCancel(p.ctx), p.host.cfg.Machine, r)
	if errors.Is(err, nats.ErrNoResponders) {
		a, err = c.Run(context.WithoutCancel(p.ctx), r)
	}
	switch {
	case err == nil:
		return a, nil
	case e.Run.RunID != "": // the caller named it: it may be a run at work, or another's attachments
		return a, err
	case client.IsRefused(err):
		return a, errors.Join(err, p.withdraw(e))
	}
	return a, errors.Join(err, p.abandon("the prompt was answered with an error"))
}

// abandon cancels a run that a node may have accepted: the caller is told that it failed, and may send the prompt
// again.
func (p *promptRun) abandon(why string) error {
	return abandon.Run(p.ctx, p.host.cfg.Client, p.id, why)
}

// withdraw removes the attachments of a run that was not started.
func (p *promptRun) withdraw(e envelope) error {
	if len(e.Attachments) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), withdrawTimeout)
	defer cancel()
	return p.host.cfg.Client.Withdraw(ctx, p.id)
}

// begin tells the caller which run answers, and sends the text that was held back.
func (p *promptRun) begin(a client.RunAccepted) {
	p.out.send(chunkStatus, statusRunPrefix+p.id)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit, p.open, p.quiet = a.Limit, true, a.Existed
	if p.quiet {
		p.text = answertext.Stream{Send: p.sendText} // nothing of it was sent
		p.early = nil
	}
	for _, text := range p.early {
		p.out.sendText(text)
	}
	p.early = nil
	close(p.opened)
}

// sendText sends a piece of the answer. The caller holds mu.
func (p *promptRun) sendText(text string) {
	if !p.open {
		p.early = append(p.early, text)
		return
	}
	p.out.sendText(text)
}

func (p *promptRun) isAccepted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// handle handles an event of the run.
func (p *promptRun) handle(e client.Event) {
	switch e.Kind {
	case event.KindQueryAsked:
		if q := client.DataOf[event.AgentParked](e); q.Question != "" {
			p.putQuestion(question{e.Agent, event.OpenQuery{Query: q.Query, Question: q.Question, Reason: q.Reason, Call: q.Call, Digest: q.Digest, Rule: q.Rule, DueMS: q.DueMS}})
		} else if q.Query != "" {
			p.startWork(p.lookForQuestions)
		}
	case event.KindQueryAnswered:
		p.withdrawQuestion(e.Agent, client.DataOf[event.QueryAnswered](e))
		p.wakeUp()
	case event.KindRunFinished:
		p.hearsLast.Do(func() { close(p.allHeard) })
		p.wakeUp()
	case event.KindAgentResumed:
		p.wakeUp()
	case event.KindBudgetReserved, event.KindBudgetSettled, event.KindBudgetChanged:
		b := client.DataOf[event.BudgetChanged](e)
		p.mu.Lock()
		p.tokens, p.limit = b.Used, b.Limit.Tokens
		p.mu.Unlock()
	default:
		p.mu.Lock()
		if !p.ended && !p.quiet {
			p.text.Handle(e)
		}
		p.mu.Unlock()
	}
}

// startWork runs work in parallel with the run, unless the prompt has ended.
func (p *promptRun) startWork(work func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.work.Go(work)
	}
}

// wakeUp has await read the state of the run.
func (p *promptRun) wakeUp() {
	select {
	case p.woken <- struct{}{}:
	default: // it is about to
	}
}

// await waits for the end of the run. While the run waits for a person, the caller answers its questions; if nothing
// happens for the patience of the host, other people may answer.
func (p *promptRun) await(watch *client.RunWatch, existed bool) (info client.RunInfo, err error) {
	if existed {
		info, err = watch.Wait(p.ctx)
	} else {
		info, err = watch.WaitNew(p.ctx)
	}
	patience := time.NewTimer(p.host.cfg.AnswerTimeout)
	defer patience.Stop()
	for waited := false; err == nil && info.State == client.RunParked; info, err = watch.Wait(p.ctx) {
		p.setWaiting(true)
		if !waited {
			patience.Reset(p.host.cfg.AnswerTimeout)
		}
		if p.hasNewQuestion(info) {
			if _, err := p.putQuestions(); err != nil { // they are put when the state is read again
				p.host.cfg.Logger.Debug("open questions were not read", "run", p.id, "error", err)
			}
		}
		select {
		case <-p.woken:
			waited = false
		case <-time.After(lookAgainAfter):
			waited = true
		case <-patience.C:
			return info, nil
		case <-p.ctx.Done():
			return info, p.ctx.Err()
		}
		p.setWaiting(false)
	}
	return info, err
}

// lateEventsMax is how long a prompt waits for the events of a run that has ended. They may be lost.
const lateEventsMax = time.Second

// awaitEvents waits until the events of a run that has ended were heard: its state may be known before they arrive, and
// the result has the text of the last turn alone.
func (p *promptRun) awaitEvents(info client.RunInfo) {
	if info.State != client.RunFinished || p.quiet {
		return
	}
	select {
	case <-p.allHeard:
	case <-time.After(lateEventsMax):
	case <-p.ctx.Done():
	}
}

// finish sends the rest of the answer.
func (p *promptRun) finish(info client.RunInfo) *problem {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	switch {
	case info.State == client.RunParked:
		return &problem{code: client.CodeConflict, Error: "needs_human", Message: "nobody answered; the run waits for a person", Hint: "troupe questions; troupe answer " + p.id + " QUERY approve|deny|skip|TEXT"}
	case info.Result == nil:
		return &problem{code: client.CodeInternal, Error: "internal", Message: "the run has no result"}
	}
	p.text.Complete(info.Result.Text)
	if failed, ok := outcomeOf(*info.Result); ok {
		return &failed
	}
	return nil
}

func (p *promptRun) setWaiting(waiting bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = waiting
}

// state is what heartbeats say of the run.
func (p *promptRun) state() (run string, waiting bool, tokens, limit int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.id, p.waiting, p.tokens, p.limit
}
