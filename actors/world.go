package actors

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/budget/tokens"
	"github.com/troupe-run/troupe/internal/trap"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
)

// world is what a shell has under way: model calls, tools, timers.
type world struct {
	cancels map[string]context.CancelCauseFunc // by key of the work
	timers  map[string]*time.Timer
	tools   *tool.Set
	busy    func(change int)
}

// errAborted is the cause of a context that the machine aborted.
var errAborted = errors.New("actors: aborted by the run")

func (w *world) begin(ctx context.Context, key string) context.Context {
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

func (w *world) done(key string) {
	if cancel, ok := w.cancels[key]; ok {
		cancel(nil)
		delete(w.cancels, key)
		w.busy(-1)
	}
}

func (w *world) abort(key string) {
	if cancel, ok := w.cancels[key]; ok {
		cancel(errAborted)
	}
}

// giveUp ends what nobody will read: model calls, hooks and timers. Tools go on.
func (w *world) giveUp() {
	for key := range w.cancels {
		if strings.HasPrefix(key, leasePrefix) || strings.HasPrefix(key, hookPrefix) {
			w.done(key)
		}
	}
	for timer := range w.timers {
		w.disarm(timer)
	}
}

func (w *world) idle() bool { return len(w.cancels) == 0 }

func (w *world) fired(timer string) { delete(w.timers, timer) }

func (w *world) disarm(timer string) {
	if t, ok := w.timers[timer]; ok {
		t.Stop()
		delete(w.timers, timer)
	}
}

func (w *world) cancelAll() {
	for key := range w.cancels {
		w.done(key)
	}
	for timer := range w.timers {
		w.disarm(timer)
	}
}

// do does one effect. Whatever it brings becomes an entry of our own log.
func (s *shell) do(c actor.Context, effect any) {
	switch e := effect.(type) {
	case agent.CallModel:
		s.callModel(c, e)
	case agent.Begin:
		s.append(c, s.own("started", key(e.Call, e.Attempt), agent.Started{Call: e.Call, Attempt: e.Attempt, Life: s.life.Start}))
	case agent.CallTool:
		s.callTool(c, e)
	case agent.RunHooks:
		s.runHooks(c, e)
	case agent.AbortHooks:
		s.work.done(hookPrefix + e.ID)
	case agent.AbortModel:
		s.work.abort(leaseKey(e.Lease))
		s.leaveGate(c)
	case agent.AwaitGate:
		s.awaitGate(c, e)
	case agent.LeaveGate:
		s.leaveGate(c)
	case agent.AbortTool:
		s.work.abort(e.Call)
	case agent.Arm:
		s.arm(c, e.Timer, e.Due)
	case supervisor.Arm:
		s.arm(c, e.Timer, e.Due)
	case supervisor.Disarm:
		s.work.disarm(e.Timer)
	case supervisor.Publish:
		s.over()
	default:
		panic(fmt.Sprintf("actors: unknown effect %T", effect))
	}
}

func key(call string, attempt int) string { return fmt.Sprintf("%s.%d", call, attempt) }

// leasePrefix begins the keys of model calls; no call of a tool begins so.
const leasePrefix = "lease-"

func leaseKey(lease int) string { return fmt.Sprintf("%s%d", leasePrefix, lease) }

// timerPauseMin keeps a timer whose stamp came too early from spinning.
const timerPauseMin = 20 * time.Millisecond

func (s *shell) arm(c actor.Context, timer string, dueMS int64) {
	s.work.disarm(timer)
	if s.work.timers == nil {
		s.work.timers = map[string]*time.Timer{}
	}
	self, root := c.Self(), c.ActorSystem().Root
	wait := max(time.Until(time.UnixMilli(dueMS)), timerPauseMin)
	s.work.timers[timer] = time.AfterFunc(wait, func() { root.Send(self, due{timer}) })
}

// send brings a result back by way of the router, which outlives this shell.
func (s *shell) deliver(c actor.Context) func(worked) {
	router, root := s.router, c.ActorSystem().Root
	return func(w worked) { root.Send(router, w) }
}

// failure turns an error of a client into the fact that the loop steps.
func failure(ctx context.Context, lease int, reply model.Reply, err error, tookMS int64) agent.Failed {
	f := agent.Failed{Lease: lease, Class: model.UnknownClass, Detail: err.Error(), Reply: reply, TookMS: tookMS}
	var known *model.Error
	if errors.As(err, &known) {
		f.Class, f.Detail, f.Unbilled, f.AfterMS = known.Class, known.Message, known.Unbilled, known.RetryAfter.Milliseconds()
	}
	if errors.Is(context.Cause(ctx), errAborted) {
		f.Class, f.Unbilled = model.Aborted, false
	}
	return f
}

// callTool runs one call. The tool is told the key that names the call over
// all its attempts.
func (s *shell) callTool(c actor.Context, e agent.CallTool) {
	w := s.own("returned", key(e.Call, e.Attempt), nil)
	w.key = e.Call
	t := s.agent.State.Task
	set, err := s.toolset(t)
	if err != nil {
		w.body = agent.Returned{Call: e.Call, Attempt: e.Attempt, Error: true, Text: "no tools here: " + err.Error()}
		s.deliver(c)(w)
		return
	}
	call := tool.Call{Run: t.Run, Agent: string(t.ID), Turn: e.Turn, ID: e.Call, Attempt: e.Attempt, Trace: t.Trace,
		Key: fmt.Sprintf("%s.%s.%s", t.Run, t.ID, e.Call), Args: []byte(e.Args), Progress: s.progress(e)}
	ctx, deliver, keeper, counts := s.work.begin(s.ctx, e.Call), s.deliver(c), s.keeper(t), s.agent.State.Counts()
	mayBegin, unbegun := s.mayBegin(), s.sendUnbegun(c, e.Call, e)
	go func() {
		began := time.Now()
		trap.At(trap.ToolBefore, call.Key)
		if !mayBegin() {
			unbegun()
			return
		}
		r := set.Call(ctx, e.Name, call)
		trap.At(trap.ToolAfter, call.Key)
		f := agent.Returned{Call: e.Call, Attempt: e.Attempt, Text: r.Text, Error: r.Error, Transient: r.Transient, TookMS: time.Since(began).Milliseconds()}
		killed := errors.Is(context.Cause(ctx), errAborted) // while it ran, not while its result is kept
		f = keeper.keep(f, r.Whole)
		if killed {
			f.Killed, f.Error, f.Text = true, true, "killed while running: "+f.Text
		} else if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errAborted) {
			return // the process is ending: the call is lost, and the next life says so
		}
		if counts {
			f.Tokens = tokens.Estimate(f.Text)
		}
		w.body = f
		deliver(w)
	}()
}

func (s *shell) toolset(t agent.Task) (*tool.Set, error) {
	if s.work.tools != nil {
		return s.work.tools, nil
	}
	set, err := s.cfg.Tools(t)
	if err == nil {
		s.work.tools = set
	}
	return set, err
}

// deltas tells observers a reply as it streams. Deltas are no entries: they may
// be lost. What is no turn is nobody's to read.
func (s *shell) deltas(e agent.CallModel) func(model.Delta) {
	if s.cfg.Events == nil || e.Purpose != agent.ForTurn {
		return nil
	}
	at, t := s.life.Addr, s.agent.State.Task
	events, node, i := s.cfg.Events, s.cfg.Name, 0
	return func(d model.Delta) {
		kind := "message.delta"
		if d.Kind == model.ReasoningDelta {
			kind = "message.reasoning"
		}
		i++
		events(life.Event{V: 1, ID: fmt.Sprintf("%s#lease-%d.%d", at.Bare(), e.Lease, i), TS: life.Stamp(time.Now().UnixMilli()),
			Run: t.Run, Agent: string(t.ID), Parent: string(t.Parent), Node: node, Kind: kind, Turn: e.Turn,
			Data: Delta{Text: d.Text}})
	}
}

// Delta is the data of message.delta and message.reasoning.
type Delta struct {
	Text string `json:"text"`
}

// tell makes events of what an entry brought. While folding they are kept: a
// crash may have come before they were told.
func (s *shell) tell(r life.Read, stamp int64) {
	if s.cfg.Events == nil || len(r.Notes) == 0 {
		return
	}
	if s.life.Phase == life.Folding {
		s.held = append(s.held, heldNotes{r.N, stamp, r.Notes})
		return
	}
	s.publish(r.N, stamp, r.Notes)
}

func (s *shell) publish(n uint64, stamp int64, notes []life.Note) {
	parent := ""
	if s.agent != nil {
		parent = string(s.agent.State.Task.Parent)
	}
	for _, e := range life.Tell(s.life.Addr, parent, s.cfg.Name, n, stamp, notes) {
		s.cfg.Events(e)
	}
}

// untold tells what was read while folding above the floor: nobody knows
// whether the life before did. The ids are the same, so observers can drop doubles.
func (s *shell) untold() {
	for _, h := range s.held {
		if h.n > s.life.Floor() {
			s.publish(h.n, h.stamp, h.notes)
		}
	}
	s.held = nil
}
