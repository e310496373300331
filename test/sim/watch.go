package sim

import (
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// read decodes a fact of a log once more, for the judge.
func read[T any](s *sim, f activation.Fact) T {
	var v T
	if err := mailbox.Unmarshal(f.Body, &v); err != nil && !s.on(Garbage) && !s.hurtAny() {
		s.fail("a fact %s does not decode: %v", f.Kind, err)
	}
	return v
}

// watchAgent checks a step of an agent's log, whether or not a shell will carry it out.
func (s *sim) watchAgent(w *shadow, before agent.State, f activation.Fact, out activation.Stepped) {
	a, after := w.actor, &w.agent.State
	if out.Err != nil {
		s.reach.hit(Undecoded)
		return
	}
	switch f.Kind {
	case "started":
		e := read[agent.Started](s, f)
		if e.Life == before.Life {
			s.ledger.started[callKey{a.id, e.Call, e.Attempt}] = true
		}
	case "answered":
		e := read[agent.Answered](s, f)
		if before.Query.Query != "" && e.Query == before.Query.Query && e.Decision == "approve" {
			i := strings.LastIndexByte(e.Query, '.')
			attempt := 0
			for _, c := range before.Calls {
				if c.ID == e.Query[:i] {
					attempt = c.Attempt
				}
			}
			s.ledger.approved[callKey{a.id, e.Query[:i], attempt + 1}] = true
		}
	case "returned":
		s.watchReturned(a, before, after, f)
	case "woke":
		s.watchTimer(w, &before, after)
	}
	decision := ""
	if f.Kind == "answered" {
		decision = read[agent.Answered](s, f).Decision
	}
	s.watchAgreed(a, &before, after, f.Kind, decision)
	for _, effect := range out.World {
		s.watchEffect(a, before, after, effect)
	}
	s.watchAsked(a, before, out)
	s.watchLoop(w, &before, after, f, out)
	if after.Phase == agent.Done && before.Phase != agent.Done {
		s.watchEnd(w, after)
	}
	if after.Phase == agent.Done && before.Phase != agent.Done && len(after.Calls) > 0 && !a.hurt {
		s.fail("%s is done with open calls", a.id)
	}
	s.reachAgent(w, &before, after, f)
}

// watchTimer checks that a timer counts only from its time on, by the timestamp of its entry.
func (s *sim) watchTimer(w *shadow, before, after *agent.State) {
	a, l, began := w.actor, after.Task.Limits, w.judge.began
	if a.hurt {
		return
	}
	if after.Soft && !before.Soft && after.Now < began+l.SoftMS {
		s.fail("%s: the soft limit passes too early", a.id)
	}
	if after.Cancel != nil && before.Cancel == nil && after.Now < began+l.HardMS {
		s.fail("%s: the hard limit passes too early", a.id)
	}
	if before.Phase == agent.Waiting && !before.Pause.Waiting && !before.Idle && after.Phase == agent.Leasing && after.Now < before.RetryDue {
		s.fail("%s: a retry comes too early", a.id)
	}
}

// watchEffect checks that the log allows the effects that it requests.
func (s *sim) watchEffect(a *actor, before agent.State, after *agent.State, effect any) {
	switch e := effect.(type) {
	case agent.CallModel, agent.Begin, agent.CallTool:
		if after.Cancel != nil || before.Phase == agent.Done {
			s.fail("%s: %T after the cancel", a.id, effect)
		}
		if call, ok := effect.(agent.CallTool); ok {
			s.watchCall(a, after, call)
		}
	case agent.Arm:
		if e.Due <= 0 {
			s.fail("%s: timer %s without a time", a.id, e.Timer)
		}
	}
}

// watchCall checks that a call that must run alone does so, and that no more calls run at once than allowed.
func (s *sim) watchCall(a *actor, after *agent.State, e agent.CallTool) {
	running, alone := 0, false
	for _, c := range after.Calls {
		if (c.Stage == agent.Running || c.Stage == agent.Starting) && c.Child == "" {
			running++
		}
		if c.ID == e.Call {
			alone = c.Class != "read"
		}
	}
	if alone && running > 1 {
		s.fail("%s: %s begins beside other calls", a.id, e.Name)
	}
	if running > after.Task.Limits.Parallel {
		s.fail("%s: %d tools at once", a.id, running)
	}
}

// watchReturned checks that a parent reads its child's answer after the child has ended.
func (s *sim) watchReturned(a *actor, before agent.State, after *agent.State, f activation.Fact) {
	e := read[agent.Returned](s, f)
	for i, c := range before.Calls {
		if c.ID == e.Call && c.Stage == agent.Running && c.Attempt != e.Attempt {
			if len(after.Calls) <= i || after.Calls[i].Stage != agent.Running {
				s.fail("%s: call %s, attempt %d, is answered by attempt %d", a.id, c.ID, c.Attempt, e.Attempt)
			}
		}
		if c.ID != e.Call || c.Child == "" || c.Stage != agent.Running || f.From == "" || e.Live {
			continue
		}
		child := s.byAddr[mailbox.At(runName, string(c.Child))]
		if child == nil || child.hurt || child.closed {
			continue
		}
		m, _ := s.super.shadow.super.State.Member(c.Child)
		if m.Outcome.Reason == spec.Timeout && m.Outcome.Detail == "no sign of life" {
			s.reach.hit(GivenUp)
			continue
		}
		if st := child.shadow.agent.State; st.Phase != agent.Done && m.ID != "" {
			s.fail("%s reads the answer of %s, which is %s", a.id, c.Child, st.Phase)
		}
	}
	s.reachReturned(before, after, e, f)
}

// watchSuper checks a step of the supervisor's log.
func (s *sim) watchSuper(w *shadow, before supervisor.State, f activation.Fact, key letterKey, out activation.Stepped) {
	after := &w.super.State
	if out.Err != nil {
		s.reach.hit(Undecoded)
		return
	}
	s.watchPool(&before, after, f)
	s.watchLeave(after, f)
	for _, t := range out.Messages {
		switch t.Kind {
		case "granted":
			s.watchGrant(&before, after, t)
			s.watchTurn(t)
		case "denied":
			s.watchTurn(t)
		case "stop_vetoed", "stop_allowed":
			s.watchVerdict(t)
		case "submitted":
			id := spec.ID(t.To.Agent())
			if after.Cancel != nil || before.Cancel != nil {
				s.fail("the child %s begins after the cancel", id)
			}
			s.watchBirth(after, id)
			s.watchRights(after, id, t)
		}
	}
	s.watchQueue(&before, after, f)
	s.watchEnds(&before, after, f, out)
	s.watchMessages(&before, after, f, out)
	for _, effect := range out.World {
		if _, ok := effect.(supervisor.Publish); ok {
			s.ledger.over++
		}
	}
	if before.Phase == supervisor.Over && after.Phase != supervisor.Over {
		s.fail("the run was over and is %s", after.Phase)
	}
	s.reachSuper(&before, after, f, out)
}

// watchBirth checks that the limits of the tree hold, and that no agent is spawned below a dead one.
func (s *sim) watchBirth(after *supervisor.State, id spec.ID) {
	m, _ := after.Member(id)
	l := after.Run.Limits
	if after.Count() > l.Agents && !s.on(Limits) {
		s.fail("%d agents, %d are allowed", after.Count(), l.Agents)
	}
	if m.Depth >= l.Depth && id != spec.Root {
		s.fail("%s lives %d deep, %d are allowed", id, m.Depth, l.Depth)
	}
	if id == spec.Root {
		return
	}
	parent, ok := after.Member(m.Parent)
	for up := parent; ok; up, ok = after.Member(up.Parent) {
		if up.Done {
			s.fail("%s begins, and %s above it has ended", id, up.ID)
		}
		if s.ledger.stopping[up.ID] && !s.super.hurt {
			s.fail("%s begins after the cancel of %s above it", id, up.ID)
		}
	}
	live := 0
	after.Members(func(c supervisor.Member) {
		if c.Parent == parent.ID && c.ID != spec.Root && !c.Done {
			live++
		}
	})
	if live > l.Children || live != parent.Children {
		s.fail("%s has %d live children (it says %d), %d are allowed", parent.ID, live, parent.Children, l.Children)
	}
}

// watchGrant notes the amount that a lease reserves.
func (s *sim) watchGrant(before, after *supervisor.State, t activation.OutboxMessage) {
	var g agent.Granted
	if err := mailbox.Unmarshal(t.Body, &g); err != nil {
		s.fail("granted: %v", err)
	}
	id := t.To.Agent()
	account := after.Pool.Account(id)
	key := leaseKey{spec.ID(id), g.Lease}
	if account.Open != g.Lease {
		s.fail("%s is granted lease %d, and %d is open", id, g.Lease, account.Open)
	}
	if _, twice := s.ledger.grants[key]; twice && !s.super.hurt && !s.hurtAny() {
		s.fail("%s is granted lease %d twice", id, g.Lease)
	}
	if after.Cancel != nil {
		s.fail("%s is granted lease %d after the cancel", id, g.Lease)
	}
	if !g.Closing && before.Frozen && after.Frozen {
		s.fail("%s is granted a turn of a frozen budget", id)
	}
	if !g.Closing && !before.Pool.Overrun.Zero() {
		s.fail("%s is granted a turn after an overrun", id)
	}
	if !g.Closing && account.Kept.Tokens < account.Held.Tokens+closingOutput && !s.hurtAny() {
		s.fail("%s is granted a turn, and only %+v are kept for its closing turn", id, account.Kept)
	}
	s.ledger.grants[key] = account.Held
}

// watchPool checks that nothing is committed beyond the limit, and that the accounts add up.
func (s *sim) watchPool(before, after *supervisor.State, f activation.Fact) {
	p := after.Pool
	used := p.Spent.Plus(p.Held).Minus(p.Overrun)
	if f.Kind == "limit_set" {
		s.ledger.excess = used.Over(budget.Amount(p.Limit))
		s.ledger.crowd = used.Plus(p.Kept).Over(budget.Amount(p.Limit))
	}
	room := p.Limit.Room(used)
	over := budget.Amount{Tokens: -room.Tokens, Nano: -room.Nano, Calls: -room.Calls}
	if more := over.Over(s.ledger.excess); !more.Zero() {
		s.fail("%+v are committed beyond the limit %+v: spent %+v, held %+v", more, p.Limit, p.Spent, p.Held)
	}
	if s.ledger.excess.Zero() && !p.Within() {
		s.fail("the pool is not within its limit")
	}
	all := p.Limit.Room(used.Plus(p.Kept))
	if more := (budget.Amount{Tokens: -all.Tokens, Nano: -all.Nano}).Over(s.ledger.crowd); more.Tokens > 0 || more.Nano > 0 {
		s.fail("%+v are kept for closing turns beyond the limit %+v: spent %+v, held %+v, kept %+v", more, p.Limit, p.Spent, p.Held, p.Kept)
	}
	var held, kept, spent budget.Amount
	live, parked := 0, 0
	after.Members(func(m supervisor.Member) {
		a := p.Account(string(m.ID))
		held, kept, spent = held.Plus(a.Held), kept.Plus(a.Kept), spent.Plus(a.Spent)
		if m.Done && (!a.Held.Zero() || !a.Kept.Zero()) {
			s.fail("%s has ended and holds %+v, keeps %+v", m.ID, a.Held, a.Kept)
		}
		if !m.Done {
			live++
		}
		if m.Query != nil {
			parked++
		}
	})
	if held != p.Held || kept != p.Kept || spent != p.Spent {
		s.fail("the accounts hold %+v keep %+v spent %+v, the pool %+v %+v %+v", held, kept, spent, p.Held, p.Kept, p.Spent)
	}
	if live != after.Live || parked != after.Parked {
		s.fail("%d live and %d parked, counted %d and %d", live, parked, after.Live, after.Parked)
	}
	if before.Pool.Spent.Tokens > p.Spent.Tokens || p.Held.Tokens < 0 || p.Kept.Tokens < 0 {
		s.fail("the pool goes back: %+v", p)
	}
}
