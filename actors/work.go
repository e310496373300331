package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget/tokens"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/failpoint"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// activeWork holds the work that a shell has under way: model calls, tools, timers.
type activeWork struct {
	cancels map[string]context.CancelCauseFunc // by key of the work
	timers  map[string]*time.Timer
	tools   *tool.Set
	toolsOf toolGrant // for which tools was made
	busy    func(change int)
}

// toolGrant is what of a task decides which tools its agent has.
type toolGrant struct {
	tools       []model.ToolSpec
	commands    []spec.Command
	servers     []spec.Server
	permissions int // only a narrowing changes them: it adds one, whose rules may hide files
}

func toolGrantOf(t *spec.Task) toolGrant {
	return toolGrant{t.Tools, t.Commands, t.Servers, len(t.Permissions)}
}

func (g toolGrant) equal(h toolGrant) bool {
	return g.permissions == h.permissions && slices.Equal(g.tools, h.tools) && slices.Equal(g.commands, h.commands) && slices.Equal(g.servers, h.servers)
}

// errAborted is the cause of a context that the machine canceled.
var errAborted = errors.New("actors: aborted by the run")

func (w *activeWork) beginWork(ctx context.Context, key string) context.Context {
	if w.cancels == nil {
		w.cancels = map[string]context.CancelCauseFunc{}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if _, again := w.cancels[key]; !again {
		w.busy(+1)
	}
	w.cancels[key] = cancel
	return ctx
}

func (w *activeWork) endWork(key string) {
	if cancel, ok := w.cancels[key]; ok {
		cancel(nil)
		delete(w.cancels, key)
		w.busy(-1)
	}
}

func (w *activeWork) abortWork(key string) {
	if cancel, ok := w.cancels[key]; ok {
		cancel(errAborted)
	}
}

func (w *activeWork) timerFired(timer string) { delete(w.timers, timer) }

func (w *activeWork) disarmTimer(timer string) {
	if t, ok := w.timers[timer]; ok {
		t.Stop()
		delete(w.timers, timer)
	}
}

func (w *activeWork) cancelAll() {
	for key := range w.cancels {
		w.endWork(key)
	}
	w.disarmAll()
}

func (w *activeWork) disarmAll() {
	for timer := range w.timers {
		w.disarmTimer(timer)
	}
}

// carryOutWork carries out an action on the world, and reports whether the action is one.
func (s *shell) carryOutWork(c actor.Context, action activation.Action) bool {
	switch a := action.(type) {
	case activation.Perform:
		s.performEffect(c, a)
	case activation.AbortWork:
		s.work.abortWork(a.Key)
	case activation.EndWork:
		s.work.endWork(a.Key)
	case activation.LeaveThrottle:
		s.leaveThrottle(c)
	case activation.ArmTimer:
		s.armTimer(c, a.Timer, a.Due)
	case activation.DisarmTimer:
		s.work.disarmTimer(a.Timer)
	case activation.DisarmTimers:
		s.work.disarmAll()
	default:
		return false
	}
	return true
}

// performEffect begins an effect, whose result becomes an entry of the actor's own log.
func (s *shell) performEffect(c actor.Context, p activation.Perform) {
	switch e := p.Effect.(type) {
	case agent.CallModel:
		s.callModel(c, e, p)
	case agent.CallTool:
		s.callTool(c, e, p)
	case agent.RunHooks:
		s.runHooks(c, e, p)
	case agent.AwaitThrottle:
		s.awaitThrottle(c, e)
	default:
		panic(fmt.Sprintf("actors: unknown effect %T", p.Effect))
	}
}

// mayBegin returns the check that the shell makes just before a call begins (PROTOCOL P27):
// the lease must still hold, and be the one under which this activation was last seen to be
// current. Between the decision and the call the process may have been frozen; if the lease
// was lost and acquired again meanwhile, another node may have claimed the log in between,
// with a claim that this activation has not read yet. The check may be called from any
// goroutine.
func (s *shell) mayBegin(under uint64) func() bool {
	holds, at := s.cfg.Holds, s.addr
	return func() bool {
		lease, ok := holds(at)
		return ok && lease == under
	}
}

// notBegun returns a function that tells the activation that a call did not begin.
func (s *shell) notBegun(c actor.Context, key string, effect any) func() {
	tell, start := s.factSender(c), s.start
	return func() { tell(activation.WorkNotBegun{Start: start, Key: key, Effect: effect}) }
}

// timerPauseMin keeps a timer from firing in a tight loop while the stamp of its entry is too early.
const timerPauseMin = 20 * time.Millisecond

func (s *shell) armTimer(c actor.Context, timer string, dueMS int64) {
	s.work.disarmTimer(timer)
	if s.work.timers == nil {
		s.work.timers = map[string]*time.Timer{}
	}
	self, root := c.Self(), c.ActorSystem().Root
	wait := max(time.Until(time.UnixMilli(dueMS)), timerPauseMin)
	s.work.timers[timer] = time.AfterFunc(wait, func() { root.Send(self, timerDue{timer}) })
}

// failedFact turns a client's error into the fact that the agent steps.
func failedFact(ctx context.Context, reservation int, reply model.Reply, err error, tookMS int64) agent.Failed {
	f := agent.Failed{Reservation: reservation, Class: model.UnknownClass, Detail: err.Error(), Reply: reply, TookMS: tookMS}
	var known *model.Error
	if errors.As(err, &known) {
		f.Class, f.Detail, f.Unbilled, f.AfterMS = known.Class, known.Message, known.Unbilled, known.RetryAfter.Milliseconds()
	}
	if errors.Is(context.Cause(ctx), errAborted) {
		f.Class, f.Unbilled = model.Aborted, false
	}
	return f
}

// callTool runs one call. The tool receives the key that identifies the call across all its
// attempts.
func (s *shell) callTool(c actor.Context, e agent.CallTool, p activation.Perform) {
	w := s.state.OwnResult("returned", p.Key, nil)
	t := s.state.Agent.State.Task
	set, err := s.taskTools(t)
	if err != nil {
		w.Body = agent.Returned{Call: e.Call, Attempt: e.Attempt, Error: true, Text: "no tools here: " + err.Error()}
		s.resultSender(c)(w)
		return
	}
	call := tool.Call{Run: t.Run, Agent: string(t.ID), Turn: e.Turn, ID: e.Call, Attempt: e.Attempt, Trace: s.cfg.Traceparent(t, e.Name, e.Call, e.Attempt), MayWriteAny: e.MayWriteAny, Tainted: e.Tainted,
		Key: fmt.Sprintf("%s.%s.%s", t.Run, t.ID, e.Call), Args: []byte(e.Args), Progress: s.publishProgress(e)}
	ctx, deliver, keeper, counts := s.work.beginWork(s.ctx, p.Key), s.resultSender(c), s.resultStoreFor(t), s.state.Agent.State.Counts()
	mayBegin, unbegun := s.mayBegin(p.Lease), s.notBegun(c, p.Key, e)
	id := t.ID // the task is large, and the function lives as long as the call
	s.cfg.calls.Go(func() {
		began := time.Now()
		failpoint.At(failpoint.ToolBefore, call.Key)
		if !mayBegin() {
			unbegun()
			return
		}
		r := set.Call(ctx, e.Name, call)
		failpoint.At(failpoint.ToolAfter, call.Key)
		f := agent.Returned{Call: e.Call, Attempt: e.Attempt, Text: r.Text, Error: r.Error, Transient: r.Transient, TookMS: time.Since(began).Milliseconds()}
		killed := errors.Is(context.Cause(ctx), errAborted) // aborted while it ran, not while its result is stored
		f.Metrics, f.MetricsLost = r.Metrics, r.MetricsLost
		if r.Tainted {
			f.Tainted = &spec.Taint{Source: "memory", Agent: id, Tool: e.Name, Call: e.Call}
		}
		f = keeper.storeChanges(keeper.storeWhole(f, r.Whole), r)
		if killed {
			f.Killed, f.Error, f.Text = true, true, "killed while running: "+f.Text
		} else if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errAborted) {
			return // the node is stopping: the call is lost, and the next activation records that
		}
		if counts {
			f.Tokens = tokens.Estimate(f.Text)
		}
		w.Body = f
		deliver(w)
	})
}

// taskTools returns the tools of the task. A change of the agent's tools or permissions makes a
// new set; a call that is under way keeps its own.
func (s *shell) taskTools(t spec.Task) (*tool.Set, error) {
	grant := toolGrantOf(&t)
	if s.work.tools != nil && s.work.toolsOf.equal(grant) {
		return s.work.tools, nil
	}
	set, err := s.cfg.Tools(t)
	if err == nil {
		s.work.tools, s.work.toolsOf = set, grant
	}
	return set, err
}

// streamDeltas publishes a reply as it streams. Deltas are no entries: they may be lost. Only
// replies of turns are published, not those of other model calls such as summaries.
func (s *shell) streamDeltas(e agent.CallModel) func(model.Delta) {
	if s.cfg.OnEvent == nil || e.Purpose != agent.ForTurn {
		return nil
	}
	// The task and the call are large, and the function lives as long as the call.
	t := s.state.Agent.State.Task
	run, id, parent := t.Run, string(t.ID), string(t.Parent)
	at, turn, reservation := s.addr, e.Turn, e.Reservation
	events, node, i := s.cfg.OnEvent, s.cfg.Name, 0
	return func(d model.Delta) {
		kind := event.KindMessageDelta
		if d.Kind == model.ReasoningDelta {
			kind = event.KindMessageReasoning
		}
		i++
		events(activation.NewPublished(time.Now().UnixMilli(), event.Published{ID: fmt.Sprintf("%s#lease-%d.%d", at.Bare(), reservation, i),
			Run: run, Agent: id, Parent: parent, Node: node, Kind: kind, Turn: turn,
			Data: event.Delta{Text: d.Text}}))
	}
}
