package activation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/supervisor"
)

// A node begins work only for logs that it holds. The order of the log is what keeps two
// nodes from acting at once; that an activation also waits while its lease is over is an
// extra defense, and saves work (PROTOCOL P4). The end of a lease ends nothing by itself: if
// no other node has claimed the log by the time this node holds it again, the activation
// continues the work that it began (P3).

// beginEffects begins effects, or postpones them while the lease is over.
func beginEffects(s *stepContext, effects []any) {
	if len(effects) == 0 || s.toDrain { // the next activation begins what this one never begins
		return
	}
	if len(s.postponed) > 0 || !s.mayBegin(s.nodeLease, s.leaseHeld) { //mutant:begins-without-its-lease
		postponeEffects(s, effects...)
		return
	}
	for _, effect := range effects {
		doEffect(s, effect)
	}
}

// doEffect begins one effect, whose result becomes an own entry.
func doEffect(s *stepContext, effect any) {
	switch e := effect.(type) {
	case agent.CallModel:
		performWork(s, e, ModelKey(e.Reservation))
	case agent.CallTool:
		performWork(s, e, e.Call)
	case agent.RunHooks:
		performWork(s, e, HookKey(e.ID))
	case agent.AwaitThrottle:
		performWork(s, e, "")
	case agent.Begin:
		requestOwnAppend(s, s.OwnResult("started", AttemptKey(e.Call, e.Attempt), agent.Started{Call: e.Call, Attempt: e.Attempt, Activation: s.Reader.Start}))
	case agent.AbortHooks:
		endWork(s, HookKey(e.ID))
	case agent.AbortModel:
		s.addActions(AbortWork{ModelKey(e.Reservation)}, LeaveThrottle{})
	case agent.LeaveThrottle:
		s.addActions(LeaveThrottle{})
	case agent.AbortTool:
		s.addActions(AbortWork{e.Call})
	case agent.Arm:
		s.addActions(ArmTimer{e.Timer, e.Due})
	case supervisor.Arm:
		s.addActions(ArmTimer{e.Timer, e.Due})
	case supervisor.Disarm:
		s.addActions(DisarmTimer{e.Timer})
	case supervisor.Publish:
		publishResult(s)
	default:
		panic(fmt.Sprintf("activation: unknown effect %T", effect))
	}
}

func performWork(s *stepContext, effect any, key string) {
	if key != "" {
		s.work = withID(s.work, key)
	}
	s.addActions(Perform{effect, key, s.provenLease})
}

// endWork forgets work, and cancels it if it is under way.
func endWork(s *stepContext, key string) {
	s.work = withoutID(s.work, key)
	s.addActions(EndWork{key})
}

// handleWorkEnd notes the end of work if this activation began it; otherwise the key may belong
// to another attempt.
func handleWorkEnd(s *stepContext, start, key string) bool {
	if start == s.Reader.Start {
		endWork(s, key)
	}
	return start == s.Reader.Start
}

// giveUpWork cancels work whose result no activation will read: model calls and hooks. Tools
// continue.
func giveUpWork(s *stepContext) {
	for _, key := range s.work {
		if strings.HasPrefix(key, modelPrefix) || strings.HasPrefix(key, hookPrefix) {
			endWork(s, key)
		}
	}
}

// postponeEffects keeps effects until the lease holds and the activation is proven to be current.
func postponeEffects(s *stepContext, effects ...any) {
	if s.Reader.Phase != Active || s.toDrain {
		return
	}
	if len(s.postponed) == 0 {
		s.deliverLater(ProveLease{})
	}
	s.postponed = append(s.postponed[:len(s.postponed):len(s.postponed)], effects...)
}

// proveLease checks whether the node holds the log again. Another node may have claimed the
// log meanwhile, with a claim that this activation has not read yet: so it appends an own
// entry, and the postponed effects wait until it has read that entry back.
func proveLease(s *stepContext) {
	switch {
	case len(s.postponed) == 0 || s.Reader.Phase != Active:
	case !s.leaseHeld:
		s.deliverLater(ProveLease{})
	default:
		s.proofLease = s.nodeLease //mutant:regained-lease-not-proven
		o := s.OwnResult("checkpoint", "held-"+strconv.FormatUint(s.Reader.N, 10), agent.Checkpoint{})
		s.proof = s.idOf(o)
		requestOwnAppend(s, o)
	}
}

// doPostponed begins the postponed effects: no other node claimed the log before this place.
func doPostponed(s *stepContext) {
	effects := s.postponed
	s.proof, s.postponed, s.provenLease = "", nil, s.proofLease
	beginEffects(s, dropAborted(s, effects))
}

// dropAborted removes tool calls that were aborted while they were postponed: they never
// begin, and the log says so.
func dropAborted(s *stepContext, effects []any) []any {
	aborted := map[string]bool{}
	for _, effect := range effects {
		if e, ok := effect.(agent.AbortTool); ok {
			aborted[e.Call] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(effects), func(effect any) bool {
		e, ok := effect.(agent.CallTool)
		if !ok || !aborted[e.Call] {
			return false
		}
		requestOwnAppend(s, s.OwnResult("returned", AttemptKey(e.Call, e.Attempt), agent.Returned{Call: e.Call, Attempt: e.Attempt, Killed: true, Error: true,
			Text: "never began: it was aborted while the node did not hold the log"}))
		return true
	})
}

// extendFirstMessageWait gives a member whose time for its first message is over more time, if it may:
// it arms the timer again, and reports whether it did. It does so while a node of its pool is alive, and for one more
// period after that node was last seen, because another node may be about to replace it. The machine learns of the
// timer only after that; a new activation begins the wait anew.
func extendFirstMessageWait(s *stepContext, f TimerFired) bool {
	pool, unseen := s.UnseenPool(f.Timer)
	if !unseen || !f.Served && !s.awaited[f.Timer] {
		return false
	}
	awaited := map[string]bool{f.Timer: f.Served}
	for timer, served := range s.awaited {
		if timer != f.Timer {
			awaited[timer] = served
		}
	}
	s.awaited = awaited
	if f.Served {
		s.addActions(Warn{"the agent has not reported; waiting, because its pool has a live node",
			[]any{"actor", s.Reader.Addr, "timer", f.Timer, "pool", pool}})
	}
	s.addActions(ArmTimer{f.Timer, s.now + supervisor.FirstMessageMS})
	return true
}
