package supervisor

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/decoder"
)

// Input is one fact as the supervisor reads it from its log.
type Input struct {
	N    uint64
	At   int64
	From spec.ID // "" for commands and own entries
	// Damaged: the sender's log is shorter than what the supervisor received from it (P13).
	Damaged bool
	Fact    Fact
}

// Fact is a message of an agent, a command, or an own entry of the supervisor.
type Fact interface{ Kind() string }

// PolicySet replaces the policy of a live run.
type PolicySet struct {
	Policy Policy `msgpack:"p"`
	By     string `msgpack:"b,omitempty"` // who set it
}

// LimitSet replaces the limits of a live run.
type LimitSet struct {
	Limits spec.RunLimits `msgpack:"l"`
	// Patch replaces only those limits that are not zero.
	Patch bool `msgpack:"p,omitempty"`
	// SoftMS and HardMS are new limits of working time for all agents, counted from
	// now; 0: unchanged. With Patch and no other limit they change nothing else.
	SoftMS int64 `msgpack:"ts,omitempty"`
	HardMS int64 `msgpack:"th,omitempty"`
	// Freeze leaves the limits as they are and grants only closing turns: only the
	// amounts kept for closing turns are still spent.
	Freeze bool   `msgpack:"f,omitempty"`
	By     string `msgpack:"b,omitempty"` // who sets them
}

// setsTime reports whether the command names time limits, and they agree with each other.
func (f LimitSet) setsTime() bool { return f.SoftMS > 0 && f.HardMS >= f.SoftMS }

// namesOnlyTime reports whether the freeze and the other limits stay as they are.
func (f LimitSet) namesOnlyTime() bool {
	return f.SoftMS > 0 && f.Patch && !f.Freeze && f.Limits == (spec.RunLimits{})
}

// GivenUp says that no shell of an agent gets through its log: the agent will not
// report again.
type GivenUp struct {
	Agent spec.ID `msgpack:"a"`
	Why   string  `msgpack:"w"`
}

// The kinds in logs.
func (Opened) Kind() string    { return "opened" }
func (PolicySet) Kind() string { return "policy_set" }
func (LimitSet) Kind() string  { return "limit_set" }
func (GivenUp) Kind() string   { return "given_up" }

// Decode makes a fact of the supervisor's log; ok is false for an unknown kind.
func Decode(kind string, body func(into any) error) (f Fact, ok bool, err error) {
	if f, ok, err = facts.Decode(kind, body); ok {
		return f, ok, err
	}
	m, ok, err := agent.DecodeSupervisorMessage(kind, body)
	return m, ok, err
}

// facts holds how each kind of fact is decoded that is no message of an agent.
var facts = decoder.NewTable(
	decoder.Of[Fact, Opened](), decoder.Of[Fact, LaneStarted](), decoder.Of[Fact, GivenUp](), decoder.Of[Fact, OthersUse](),
	decoder.Of[Fact, PolicySet](), decoder.Of[Fact, LimitSet](), decoder.Of[Fact, SubtreeLimitSet](),
	decoder.Of[Fact, PermissionsSet](), decoder.Of[Fact, ContextSet](), decoder.Of[Fact, BacklogSet](),
	decoder.Of[Fact, agent.Canceled](), decoder.Of[Fact, agent.ModelSet](), decoder.Of[Fact, agent.Woke](), decoder.Of[Fact, agent.Resumed](),
	decoder.Of[Fact, agent.Released](), decoder.Of[Fact, agent.Checkpoint](), decoder.Of[Fact, agent.Closed](),
)

// Effect is something to do.
//
//sumtype:decl
type Effect interface{ effect() }

// Tell sends a fact to a member.
type Tell struct {
	To   spec.ID
	Fact agent.Fact
}

// Publish says that the run is over; its result is State.Result.
type Publish struct{}

// Arm sets a timer, Due in Unix milliseconds.
type Arm struct {
	Timer string
	Due   int64
}

// Disarm drops a timer.
type Disarm struct{ Timer string }

func (Tell) effect()    {}
func (Publish) effect() {}
func (Arm) effect()     {}
func (Disarm) effect()  {}

// Step is a run's supervisor: it takes one input and returns the next state and
// the effects. It decides everything that concerns more than one agent; agent.Step decides the loop of each agent.
func Step(s State, e Input) (State, Output) {
	wasOver := s.Phase == Over
	s, fx := stepInput(s, e)
	s, fx = s.recallAllowances(fx)
	s, fx = updateParkClock(s, fx)
	s.roster, fx = s.countSent(fx)
	s, events := s.takeEvents(wasOver)
	return s, Output{Effects: fx, Events: events}
}

func stepInput(s State, e Input) (State, []Effect) {
	s.Now = max(s.Now, e.At)
	if f, ok := e.Fact.(Opened); ok {
		return handleOpened(s, f)
	}
	if s.Phase == "" || s.Phase == Queued {
		return stepUnbegun(s, e)
	}
	sender, known := s.Member(e.From)
	if !known && e.awaitsAnswer() && s.Phase != Over { // the log has lost the delegation
		return s, endUnknown(e.From, "the log of the run does not know of this agent")[:1]
	}
	if e.Damaged {
		return damagedBy(s, e, "the log of "+string(e.From)+" is shorter than what the supervisor received from it")
	}
	if why := sender.lostByMember(e.Fact); why != "" && known {
		return damagedBy(s, e, why)
	}
	if why := s.describeLoss(e.From, e.Fact); why != "" {
		next, fx := s.haltRun(why)
		return next.settledByDamage(s, e), fx
	}
	s = s.countReceived(e)
	switch f := e.Fact.(type) {
	case agent.Reserve:
		return handleReserve(s, e.From, f)
	case agent.Settle:
		return handleSettle(s, e.From, f)
	case agent.ReturnAllowance:
		return handleReturnAllowance(s, e.From, f)
	case agent.Delegate:
		return handleDelegate(s, e.From, f)
	case agent.Send:
		return handleSend(s, e.From, f)
	case agent.Backlog:
		return handleBacklog(s, e.From, f)
	case agent.Steered, agent.Messaged:
		return handleForwarded(s, e.From, f.(agent.Fact))
	case agent.ProposeStop:
		return handleProposeStop(s, e.From, f)
	case agent.Park:
		return handlePark(s, e.From, f, e.N)
	case agent.Unpark:
		return handleUnpark(s, e.From)
	case agent.AllowRule:
		return handleAllowRule(s, e.From, f)
	case agent.Finish:
		return handleFinish(s, e.From, f)
	case agent.ReportLog:
		return handleReportLog(s, e.From, f)
	case agent.VerifyLog:
		return handleVerifyLog(s, e.From, f)
	case agent.Status: // its count was compared: see status.go
		return handleStatus(s, e.From)
	default:
		return stepOther(s, f)
	}
}

// stepOther handles what no agent has sent: commands, timers, and entries of activations.
func stepOther(s State, fact Fact) (State, []Effect) {
	switch f := fact.(type) {
	case agent.Canceled:
		return handleCanceled(s, f)
	case PolicySet:
		return handlePolicySet(s, f), nil
	case LimitSet:
		return handleLimitSet(s, f)
	case SubtreeLimitSet:
		return handleSubtreeLimitSet(s, f)
	case PermissionsSet:
		return handlePermissionsSet(s, f)
	case agent.ModelSet:
		return handleModelSet(s, f), nil
	case ContextSet:
		return handleContextSet(s, f)
	case BacklogSet:
		return handleBacklogSet(s, f), nil
	case OthersUse:
		return handleOthersUse(s, f) //mutant:others-use-ignored
	case GivenUp:
		return handleGivenUp(s, f)
	case agent.Woke:
		return handleTimer(s, f)
	case agent.Resumed:
		return handleResumed(s, f)
	case agent.Released:
		return handleReleased(s, f), nil
	case agent.Checkpoint, agent.Closed, LaneStarted:
		return s, nil
	default:
		panic("supervisor: unknown fact " + fact.Kind())
	}
}

// handleReleased notes that the activation ended in order.
func handleReleased(s State, f agent.Released) State {
	s.Released, s.rested = true, f.Rests
	return s
}

// stepUnbegun handles the facts of a run that has no agents yet.
func stepUnbegun(s State, e Input) (State, []Effect) {
	if s.Phase == Queued {
		return stepQueued(s, e)
	}
	return stepUnopened(s, e)
}

// stepUnopened handles facts before Opened: a cancel ends the run before it began, and so
// does damage.
func stepUnopened(s State, e Input) (State, []Effect) {
	switch f := e.Fact.(type) {
	case agent.Canceled:
		s.Phase, s.Began, s.Ended = Over, s.Now, s.Now
		s.Outcome = spec.Outcome{Reason: spec.ByCancel, Partial: true, Detail: f.Why}
		return s, []Effect{Publish{}}
	case agent.Resumed:
		s.Activation = f.Activation
		if f.Damaged != "" { // the log no longer says what the run was
			s.Began = s.Now
			return s.endEmptyRun(spec.Outcome{Reason: spec.LogDamaged, Partial: true, Detail: f.Damaged})
		}
	case agent.Reserve, agent.Settle, agent.ReturnAllowance, agent.Delegate, agent.Send, agent.Backlog, agent.ProposeStop, agent.Park, agent.VerifyLog, agent.ReportLog, agent.Finish, agent.Status, agent.Unpark, agent.AllowRule, agent.Steered, agent.Messaged:
		// There are no agents before Opened: the log has lost its head.
		s.Began = s.Now
		detail := "an agent sent a message before the run was opened"
		next, fx := s.endEmptyRun(spec.Outcome{Reason: spec.LogDamaged, Partial: true, Detail: detail})
		return next, append(endUnknown(e.From, detail), fx...)
	}
	return s, nil
}
