package supervisor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
)

// handleOpened begins the run, unless it waits for its turn in a lane. A second Opened changes nothing: a
// client that asks twice gets the same run.
func handleOpened(s State, f Opened) (State, []Effect) {
	if s.Phase != "" {
		return s, nil
	}
	f = f.shareTexts(&s.texts)
	f.Limits = withRunDefaults(f.Limits)
	s.Run, s.Began = f, s.Now
	if f.InLane {
		return s.queueInLane(), nil
	}
	return beginRun(s)
}

// beginRun makes the run live, creates its budget pool and admits the root agent.
func beginRun(s State) (State, []Effect) {
	f := s.Run
	s.Phase, s.Inquiry.LastMessage = Live, s.Now
	s.Pool = budget.Pool{Limit: budget.Limit{Tokens: f.Limits.Tokens, Nano: f.Limits.Nano, Calls: f.Limits.Calls}}
	if f.Run != "" {
		s = s.publishEvent(event.KindRunStarted, event.RunStarted{Goal: f.Goal, Root: f.Root, Model: f.Model.Name, Limits: f.Limits, Caller: f.Caller,
			Trace: f.Trace, Policy: f.Policy.Version, Past: f.Past})
	}
	def, ok := s.Run.findDefinition(f.Root)
	if !ok {
		return s.endEmptyRun(spec.Outcome{Reason: spec.PolicyBlocked, Partial: true, Detail: fmt.Sprintf("there is no agent %q", f.Root)})
	}
	m := Member{ID: spec.Root, Name: def.Name, NodePool: s.Run.PoolFor(def)}
	m.Rights, m.Deny = s.Run.grantTools(nil, nil, def)
	t := s.Run.newTask(m, def, f.Goal)
	t.Permissions = s.Run.permissionsOf(def, nil)
	m.binding, m.hooks, m.permissions = bindingHooks(t), t.LoopOptions.Hooks, t.Permissions
	first := agent.FirstAttemptRequest(t)
	first.Input += pastBound(f.Past)
	pool, ok := s.Pool.Admit(string(m.ID), ownLimit(t.Limits), first)
	if !ok {
		o, short := tooLittle(s.Pool.Limit, t, first)
		s = s.publishEvent(event.KindBudgetDenied, event.BudgetChanged{Agent: m.ID, Why: o.Reason, Short: short})
		return s.endEmptyRun(o)
	}
	s.Pool = pool
	return startMember(s, m, t, agent.Recalled{})
}

// tooLittle returns the outcome of a run whose limits do not cover even the closing turn of the root, and the limit
// that is short; nil: none, because the price is unknown.
func tooLittle(limit budget.Limit, t spec.Task, request budget.AttemptRequest) (spec.Outcome, *event.BudgetShort) {
	need := request.Price.Bound(request.Input, request.Closing)
	o := spec.Outcome{Reason: spec.TokenBudget, Partial: true, Text: "nothing was found: the limit does not cover one model call"}
	room, own := limit.Room(budget.Amount{}), ownLimit(t.Limits).Room(budget.Amount{})
	short := event.BudgetShort{Of: event.ShortTokens, Whose: event.OfRun, Limit: room.Tokens, Need: need.Tokens}
	if own.Tokens < short.Limit {
		short.Whose, short.Limit = event.OfAgent, own.Tokens
	}
	lacks := short.Need - short.Limit
	o.Detail = fmt.Sprintf("even a closing turn needs up to %d tokens, %d more than the %s's limit", need.Tokens, lacks, short.Whose)
	switch money := min(room.Nano, own.Nano); {
	case money == budget.Unlimited:
	case !request.Price.Covered():
		o.Reason, o.Detail = spec.CostBudget, "the price of "+t.Model.Name+" is not known, so a limit in money cannot be kept"
		return o, nil
	case need.Nano > money:
		short = event.BudgetShort{Of: event.ShortUSD, Whose: event.OfRun, Limit: money, Need: need.Nano}
		if own.Nano < room.Nano {
			short.Whose = event.OfAgent
		}
		lacks = short.Need - short.Limit
		o.Reason, o.Detail = spec.CostBudget, fmt.Sprintf("even a closing turn needs up to $%.6f, $%.6f more than the %s's limit", float64(need.Nano)/budget.NanoPerUSD, float64(lacks)/budget.NanoPerUSD, short.Whose)
	}
	short.Free = short.Limit
	return o, &short
}

func ownLimit(l spec.Limits) budget.Limit {
	return budget.Limit{Tokens: l.Tokens, Nano: l.Nano, Calls: int64(l.Calls)}
}

// endEmptyRun ends a run that has no members.
func (s State) endEmptyRun(o spec.Outcome) (State, []Effect) {
	s.Phase, s.Outcome, s.Ended = Over, o, s.Now
	return s, []Effect{Publish{}}
}

// startMember adds a member and sends it its imported history and its task.
func startMember(s State, m Member, t spec.Task, past agent.Recalled) (State, []Effect) {
	s.Live++
	m.FirstMessageDue = s.Now + FirstMessageMS
	s = s.put(m).publishEvent(event.KindAgentSpawned, event.AgentSpawned{Agent: m.ID, Name: t.Name, Parent: t.Parent, Depth: t.Depth, Pool: m.NodePool})
	var fx []Effect
	if len(past.Messages) > 0 {
		fx = append(fx, Tell{To: m.ID, Fact: past})
	}
	return s, append(fx,
		Tell{To: m.ID, Fact: agent.Submitted{Task: t}},
		Arm{Timer: firstMessageTimer + string(m.ID), Due: m.FirstMessageDue},
	)
}

// handleDelegate starts a child, or sends the parent the reason why not. It ignores a repeated Delegate (the child id
// follows from the call) and one whose child id is not below the sender.
func handleDelegate(s State, from spec.ID, f agent.Delegate) (State, []Effect) {
	parent, ok := s.Member(from)
	if _, exists := s.Member(f.Child); !ok || exists || !f.Child.IsBelow(from) { //mutant:child-exists
		return s, nil
	}
	f.Name = cmp.Or(f.Name, parent.Name)
	def, _ := s.Run.findDefinition(f.Name)
	if why := whyNotDelegated(s, parent, f); why != "" {
		return s, []Effect{refuseDelegation(from, f, why)}
	}
	m := newChild(s.Run, parent, def, f)
	t, why := childTask(s, m, parent, def, f)
	if why != "" {
		return s, []Effect{refuseDelegation(from, f, why)}
	}
	m.permissions, m.binding, m.hooks = t.Permissions, bindingHooks(t), t.LoopOptions.Hooks //mutant:hooks-not-passed-on
	first := agent.FirstAttemptRequest(t)
	if first.Input > taskBytesMax { // Input counts each byte as a token, so it bounds the size of the entry
		return s, []Effect{refuseDelegation(from, f, fmt.Sprintf("its instructions, tools and goal are more than %d bytes", taskBytesMax))}
	}
	if len(f.Past) > 0 {
		first = agent.FirstAttemptRequest(t, f.Past...)
		first.Input += budget.Text(f.Journal)
	}
	pool, why := admitChild(s.Pool, m, t, def, first)
	if why == "" {
		pool, why = holdCharge(pool, m, def)
	}
	if why != "" {
		return s, []Effect{refuseDelegation(from, f, why)}
	}
	s.Pool = pool
	parent.Children++
	if f.HandsOff {
		parent.HandedTo = m.ID
		s = releaseTasks(s, parent, "its agent has handed off")
	}
	s, fx := startMember(noteCutTools(s, parent, def, m.Rights).put(parent), m, t, agent.Recalled{Messages: f.Past, Journal: f.Journal, Obstacles: f.Obstacles}) //mutant:answer-before-the-end
	switch {
	case f.HandsOff:
		fx = append(fx, Tell{To: from, Fact: agent.Returned{Call: f.Call, Live: true, Text: fmt.Sprintf("%s (%s) has the conversation", m.ID, m.Name)}})
	case m.Background:
		fx = append(fx, Tell{To: from, Fact: backgroundAnswer(m)})
	}
	return s, fx
}

// refuseDelegation answers a delegation or handoff that begins nothing.
func refuseDelegation(to spec.ID, f agent.Delegate, why string) Effect {
	what := "not delegated: "
	if f.HandsOff {
		what = "not handed off: "
	}
	return Tell{To: to, Fact: agent.Returned{Call: f.Call, Error: true, Text: what + why}}
}

// whyNotDelegated says why a member may not start a child; "" if it may.
func whyNotDelegated(s State, parent Member, f agent.Delegate) string {
	_, known := s.Run.findDefinition(f.Name)
	own, _ := s.Run.findDefinition(parent.Name)
	l := s.Run.Limits
	switch {
	case s.Cancel != nil || s.Phase != Live || parent.Stopping || parent.Done: //mutant:delegate-after-the-end
		return whyEnding(s, parent)
	case f.HandsOff && whyNotHandedOff(s.Run, parent, own, f) != "":
		return whyNotHandedOff(s.Run, parent, own, f)
	case f.HandsOff:
	case !slices.Contains(parent.Rights, delegateTool):
		return "this agent may not delegate"
	case !known || !slices.Contains(s.Run.delegateNames(own), f.Name):
		return fmt.Sprintf("there is no agent %q for you; the agents are: %s", f.Name, strings.Join(append(s.Run.delegateNames(own), s.Run.foreignDelegates(own)...), ", "))
	case parent.Depth+1 >= l.Depth: //mutant:depth-limit
		return fmt.Sprintf("agents may be nested at most %d deep", l.Depth)
	}
	switch {
	case parent.Children >= l.Children: //mutant:live-children-unlimited
		return fmt.Sprintf("an agent may have at most %d live children", l.Children)
	case s.Count() >= l.Agents: //mutant:agents-unlimited
		return fmt.Sprintf("a run may have at most %d agents", l.Agents)
	case s.Frozen:
		return "the budget is frozen, so the run is ending"
	case !s.Pool.Overrun.Zero():
		return "a provider billed more than its rules allow, so the run is ending"
	}
	return ""
}

// newChild is a member that a delegation or a handoff begins. One that takes a conversation over
// stands where its caller stood.
func newChild(o Opened, parent Member, def Definition, f agent.Delegate) Member {
	m := Member{ID: f.Child, Parent: parent.ID, NodePool: o.PoolFor(def), Call: f.Call, Name: f.Name, Depth: parent.Depth + 1, Background: f.Background}
	if f.HandsOff {
		m.Depth, m.Handoffs = parent.Depth, parent.Handoffs+1
	}
	m.Rights, m.Deny = o.grantTools(parent.Rights, parent.Deny, def)
	m.layers = parent.layers
	if above, _ := o.findDefinition(parent.Name); parent.unattended || above.LoopOptions.Unattended { //mutant:asks-below-an-unattended-agent
		m.unattended = true
	}
	return m
}

// childTask builds the task of a child within the rights, hooks, budget and time of its
// parent; why is set if it is refused.
func childTask(s State, m, parent Member, def Definition, f agent.Delegate) (t spec.Task, why string) {
	t = s.Run.newTask(m, def, f.Goal)
	if keepsUserNotes(t, parent) {
		return t, fmt.Sprintf("%s keeps notes of the user, and nobody has approved the file of %s or of an agent above it; name their directory with --agents", m.Name, parent.Name)
	}
	binding := parent.binding
	switch {
	case f.HandsOff:
		if t, why = handedTask(t, m, parent, def, f); why != "" {
			return t, why
		}
		binding = handedHooks(parent.hooks)
	case f.Schema != "" && t.LoopOptions.Require.Schema != "":
		return t, m.Name + " answers by a schema of its own; delegate without one"
	default:
		t.LoopOptions.Require.Schema = cmp.Or(f.Schema, t.LoopOptions.Require.Schema)
	}
	if t, why = bindChild(t, binding, m.NodePool != parent.NodePool, s.Pool.Account(string(parent.ID))); why != "" {
		return t, why
	}
	t.Limits = withinParentTime(t.Limits, f)
	t.Permissions, t.AddedRules = s.Run.permissionsOf(def, parent.permissions), s.AddedRules
	t.Layers = m.layers                      //mutant:children-without-layers
	t.Tainted = cmp.Or(f.Tainted, t.Tainted) //mutant:child-begins-untainted
	if rulesBytes(t.Permissions) > rulesBytesMax {
		return t, fmt.Sprintf("its permission rules, with those of its parents, are more than %d bytes", rulesBytesMax)
	}
	return t, ""
}

// admitChild opens a child's account and, if its definition has one, carves its share. refusal says why not; "" if the
// child is admitted.
func admitChild(p budget.Pool, m Member, t spec.Task, def Definition, first budget.AttemptRequest) (next budget.Pool, refusal string) {
	next, fits := p.AdmitBelow(string(m.Parent), string(m.ID), ownLimit(t.Limits), first)
	switch {
	case !fits && !p.Carved.Zero():
		return p, fmt.Sprintf("the budget does not cover another agent: %d tokens are held as shares", p.Carved.Tokens)
	case !fits:
		return p, "the budget does not cover another agent"
	}
	if def.Carved { //mutant:share-not-carved
		next = next.Carve(string(m.ID))
	}
	return next, ""
}

// whyEnding says why a member can start no calls and reach no other agents any more.
func whyEnding(s State, m Member) string {
	switch {
	case s.Cancel != nil:
		return "the run was canceled"
	case m.Done:
		return "this agent has ended"
	case s.Phase != Live:
		return "the run is ending"
	}
	return "this agent was stopped"
}

// taskBytesMax bounds the task of a child, so that it fits an entry.
const taskBytesMax = 200 << 10

// handleFinish handles a member's last message: it records what the member reports, takes back its
// allowance, and ends the member: the parent gets the answer, and the member's descendants stop.
func handleFinish(s State, from spec.ID, f agent.Finish) (State, []Effect) {
	m, ok := s.Member(from)
	if !ok || m.Done { //mutant:published-twice
		if m.Silent { // it was given up, and has reported its end after all
			m.Silent = false
			s = s.put(m)
		}
		return s, nil
	}
	m.Outcome, m.Turns, m.Calls, m.Usage, m.Node = f.Outcome, f.Turns, f.Calls, f.Usage, f.Node
	s = settleForeignCalls(s, m, f.Foreign)
	m.ModelMS, m.ToolMS, m.WorkedMS = max(0, f.ModelMS), max(0, f.ToolMS), max(0, f.WorkedMS)
	s.runBudget = s.takeBack(from, budget.Amount{}) // it has settled all that it began //mutant:allowance-not-returned-at-the-end
	return endMember(s, m)
}

// endMember ends a member, whether it has finished or is given up. A reservation that is still open
// is spent in full: the member may have used it.
func endMember(s State, m Member) (State, []Effect) {
	var fx []Effect
	s, fx = s.markFirstMessage(m, fx)
	m.Seen = true // markFirstMessage changed s, not this copy
	if m.Query != nil {
		m.Query = nil
		s.Parked--
	}
	m.Done = true
	s.Live--
	s = releaseTasks(s, m, "its agent has ended") //mutant:tasks-kept-by-the-ended
	if s.Cancel != nil {
		s.Stopped++
	}
	s.Usage = s.Usage.Add(m.Usage)
	s = s.dropRequest(m).put(m)
	s.Pool = s.Pool.Leave(string(m.ID)).Leave(chargeAccount(m.ID)) //mutant:blind-account-never-left
	s.holders = s.holders.without(m.ID)
	if parent, ok := s.Member(m.Parent); ok && m.ID != spec.Root {
		parent.Children-- //mutant:children-never-counted-down
		s = s.put(parent)
		if !parent.Done { //mutant:background-result-lost
			fx = append(fx, Tell{To: m.Parent, Fact: childReport(m)})
		}
	}
	var stops []Effect
	s.roster, stops = s.roster.stopDescendants(m)
	fx = append(fx, stops...)
	if m.ID == spec.Root && s.Phase != Over {
		s.Outcome = m.Outcome
		s.Phase = Closing
	}
	if s.Phase == Closing && s.Live == 0 {
		s.Phase, s.Ended = Over, s.Now
		return s, append(fx, Publish{})
	}
	s, more := s.drainQueue()
	return s, append(fx, more...)
}

// handleReportLog takes what a member's log says of the member: that it ended, is damaged, or lacks messages.
func handleReportLog(s State, from spec.ID, f agent.ReportLog) (State, []Effect) {
	m, ok := s.Member(from)
	if !ok {
		return s, nil
	}
	if m.Done && f.Ended == nil && f.Damaged == "" { // its log does not say that it ended
		return giveUpDamaged(s, from, "the log of "+string(from)+" does not know of its end")
	}
	var doubts []Effect
	if s.Phase != Over && m.mayLackMessages(f) {
		doubts = []Effect{askStatus(m, s.Activation)}
	}
	if !m.Done { // the result of the run names the node that it ended on //mutant:ended-member-moves
		m.Node = f.Node
	}
	s, fx := s.put(m).markFirstMessage(m, doubts)
	if f.Damaged != "" { //mutant:member-damaged
		s, more := giveUpDamaged(s, from, f.Damaged)
		return s, append(fx, more...)
	}
	// its Finish is lost, or came before the supervisor knew the agent: its usage is the settled amount
	if f.Ended != nil {
		s, more := handleFinish(s, from, agent.Finish{Outcome: *f.Ended, Node: f.Node, Turns: m.Turns, Calls: m.Calls, Usage: m.Usage,
			ModelMS: m.ModelMS, ToolMS: m.ToolMS, WorkedMS: m.WorkedMS, Foreign: assumedForeignCalls(s, m)})
		return s, append(fx, more...)
	}
	return s, fx
}

// handleResumed begins an activation. A damaged log halts the run. Otherwise each member without a first message gets
// a new period, and members are asked for their status: at once after a crash, later after an orderly release.
func handleResumed(s State, f agent.Resumed) (State, []Effect) {
	orderly := s.Released || s.Activation == ""
	s.Activation = f.Activation
	if !s.rested { // no process had the run in between, so no agent could renew its lease
		s.backlog.since = s.Now
	}
	s.Released, s.rested = false, false
	var fx []Effect
	if f.Damaged != "" && s.Phase != Over {
		return s.haltRun(f.Damaged)
	}
	next := s
	s.Members(func(m Member) {
		if !m.Seen && !m.Done {
			m.FirstMessageDue = s.Now + FirstMessageMS
			next = next.put(m)
			fx = append(fx, Arm{Timer: firstMessageTimer + string(m.ID), Due: m.FirstMessageDue})
		}
	})
	return next.scheduleInquiry(!orderly, armParkClock(s, fx))
}
