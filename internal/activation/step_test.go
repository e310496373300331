package activation_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

const (
	root  = mailbox.Address("r.root")
	super = mailbox.Address("r.super")
)

// drivenAgent is an activation of an agent over a log in memory, whose actions a test carries out.
type drivenAgent struct {
	t     *testing.T
	state activation.State
	log   []mailbox.Message
	last  []activation.Action
	lease uint64 // 0: the node does not hold the log
	sent  uint64 // messages of the supervisor
}

func driveAgent(t *testing.T) *drivenAgent {
	return &drivenAgent{t: t, state: activation.New(root, "a", mailbox.Epoch{Lease: 1, Start: 1}, "node", false), lease: 1}
}

// learnFact steps a fact and says what follows, without timers and what is for the operator.
func (d *drivenAgent) learnFact(fact any) string {
	d.t.Helper()
	d.state, d.last = activation.Step(d.state, activation.Input{Now: 1000, Lease: d.lease, LeaseHeld: d.lease > 0, Fact: fact})
	var list []string
	for _, a := range d.last {
		switch a := a.(type) {
		case activation.Warn, activation.OwnReadBack, activation.ArmTimer:
		case activation.AppendOwn:
			list = append(list, "append "+a.Own.Kind)
		case activation.SendMessages:
			text := "send"
			for _, m := range a.Messages {
				text += " " + m.Kind
			}
			list = append(list, text)
		case activation.SendAnswer:
			list = append(list, "answer "+a.Message.Kind)
		case activation.Perform:
			list = append(list, "perform "+a.Key)
		case activation.EndWork:
			list = append(list, "end "+a.Key)
		case activation.Later:
			list = append(list, fmt.Sprintf("later %s %s", a.Pause, kindOf(a.Fact)))
		case activation.ReportLogEnded:
			list = append(list, fmt.Sprintf("ReportLogEnded %d", a.Place))
		case activation.ReportPassivated:
			list = append(list, fmt.Sprintf("ReportPassivated %d", a.Place))
		default:
			list = append(list, kindOf(a))
		}
	}
	return strings.Join(list, ", ")
}

func kindOf(v any) string { return strings.TrimPrefix(fmt.Sprintf("%T", v), "activation.") }

// wantActions steps a fact that something is to follow from.
func (d *drivenAgent) wantActions(fact any, want string) {
	d.t.Helper()
	if got := d.learnFact(fact); got != want {
		d.t.Fatalf("%s: got %q, want %q", kindOf(fact), got, want)
	}
}

// landEntry puts an entry into the log.
func (d *drivenAgent) landEntry(data []byte) mailbox.Message {
	m := mailbox.Message{To: root, Place: uint64(len(d.log) + 1), At: 1000, Data: data}
	d.log = append(d.log, m)
	return m
}

// landedOwn are the own entries of the last step, in the log.
func (d *drivenAgent) landedOwn() (arrived []activation.EntryArrived) {
	for _, a := range d.last {
		if own, ok := a.(activation.AppendOwn); ok {
			arrived = append(arrived, activation.EntryArrived{Message: d.landEntry(own.Data)})
		}
	}
	return arrived
}

// readBack lands the own entries of the last step and reads them.
func (d *drivenAgent) readBack(want string) {
	d.t.Helper()
	entries := d.landedOwn()
	if len(entries) != 1 {
		d.t.Fatalf("%d own entries were appended", len(entries))
	}
	d.wantActions(entries[0], want)
}

// sayFact lands a message of the supervisor.
func (d *drivenAgent) sayFact(f agent.Fact) activation.EntryArrived {
	d.sent++
	return d.landEncoded(mailbox.Entry{From: super, Items: []mailbox.Item{{N: d.sent, Kind: f.Kind(), Body: decodeBody(d.t, f)}}})
}

// claimElsewhere lands a claim of another activation.
func (d *drivenAgent) claimElsewhere(lease uint64) activation.EntryArrived {
	f := agent.Resumed{Activation: "elsewhere"}
	return d.landEncoded(mailbox.Entry{From: root, Epoch: mailbox.Epoch{Lease: lease}, Start: f.Activation,
		Items: []mailbox.Item{{ID: "elsewhere", Kind: f.Kind(), Body: decodeBody(d.t, f)}}})
}

func (d *drivenAgent) landEncoded(e mailbox.Entry) activation.EntryArrived {
	d.t.Helper()
	e.Form = mailbox.Form
	data, err := mailbox.Encode(e)
	if err != nil {
		d.t.Fatal(err)
	}
	return activation.EntryArrived{Message: d.landEntry(data)}
}

// startActive claims the log and replays it.
func (d *drivenAgent) startActive() string {
	d.t.Helper()
	d.wantActions(activation.Activate{}, "AppendClaim")
	claim := activation.ClaimAppended{Place: d.landEntry(d.last[0].(activation.AppendClaim).Data).Place}
	d.wantActions(claim, "ReadLog")
	return d.learnFact(activation.LogRead{Claim: claim, Log: d.log})
}

// activeAgent is an agent that has its task.
func activeAgent(t *testing.T) *drivenAgent {
	t.Helper()
	d := driveAgent(t)
	d.sayFact(agent.Submitted{Task: spec.Task{Run: "r", ID: spec.Root, Goal: "do it", Limits: spec.Limits{Output: 100},
		Tools: []model.ToolSpec{{Name: "look", Schema: `{"type":"object"}`, Class: model.Read}}}})
	if got := d.startActive(); got != "append checkpoint, send reserve report_log" {
		t.Fatalf("it begins with %q", got)
	}
	d.readBack("")
	d.wantActions(activation.MessagesSent{To: super}, "")
	return d
}

// callingAgent is an agent whose model is called.
func callingAgent(t *testing.T) *drivenAgent {
	t.Helper()
	d := activeAgent(t)
	d.wantActions(d.sayFact(agent.Granted{Reservation: 1, Output: 100, Calls: 9}), "perform model-1")
	return d
}

// replyOfModel is the answer of its model, which calls a tool.
func (d *drivenAgent) replyOfModel() activation.WorkDone {
	own := d.state.OwnResult("replied", activation.ModelKey(1), agent.Replied{Reservation: 1, Reply: model.Reply{UsageKnown: true,
		Message: model.Message{Role: model.Assistant, Calls: []model.ToolCall{{Name: "look", Args: "{}"}}}}})
	return activation.WorkDone{Own: own}
}

// lookingAgent is an agent whose tool runs.
func lookingAgent(t *testing.T) *drivenAgent {
	t.Helper()
	d := callingAgent(t)
	d.wantActions(d.replyOfModel(), "end model-1, append replied")
	d.readBack("perform 1-0, later 20ms HoldExpired")
	return d
}

// resultOfTool is what the tool brings.
func (d *drivenAgent) resultOfTool() activation.WorkDone {
	return activation.WorkDone{Own: d.state.OwnResult("returned", "1-0", agent.Returned{Call: "1-0", Attempt: 1, Text: "seen"})}
}

// A claim that finds no room is made again; a log that nobody leads is read again; only
// then something begins (P1).
func TestStep_ClaimsUntilItHasReadItsClaim(t *testing.T) {
	d := driveAgent(t)
	d.wantActions(activation.Activate{}, "AppendClaim")
	d.wantActions(activation.ClaimAppended{Err: mailbox.ErrFull}, "later 1s ClaimAgain")
	d.wantActions(activation.ClaimAgain{}, "AppendClaim")
	claim := activation.ClaimAppended{Place: 7}
	d.wantActions(claim, "ReadLog")
	d.wantActions(activation.LogRead{Claim: claim, Err: errors.New("no leader")}, "later 1s ClaimAppended")
	d.wantActions(claim, "ReadLog")
	d.wantActions(activation.LogRead{Claim: claim, Err: mailbox.ErrClosed}, "Fail")
	if d.state.Stage() != activation.Claiming {
		t.Errorf("it is %s", d.state.Stage())
	}
}

// What the tail brings before the log is read waits for it.
func TestStep_EntriesAheadOfTheReplayWait(t *testing.T) {
	d := driveAgent(t)
	d.sayFact(agent.Submitted{Task: spec.Task{Run: "r", ID: spec.Root, Limits: spec.Limits{Output: 100}}})
	d.wantActions(activation.Activate{}, "AppendClaim")
	claim := activation.ClaimAppended{Place: d.landEntry(d.last[0].(activation.AppendClaim).Data).Place}
	d.wantActions(claim, "ReadLog")
	upTo := d.log[:len(d.log):len(d.log)]
	d.wantActions(d.sayFact(agent.Granted{Reservation: 1, Output: 100, Calls: 9}), "")
	d.wantActions(activation.LogRead{Claim: claim, Log: upTo}, "append checkpoint, perform model-1, send reserve report_log")
}

// After three activations that did not get through the log, nobody tries again (P18).
func TestStep_AnActorThatNeverStartsIsGivenUp(t *testing.T) {
	d := driveAgent(t)
	d.sayFact(agent.Submitted{Task: spec.Task{ID: spec.Root}})
	for i := range activation.StartsMax {
		start := fmt.Sprint("dead", i)
		d.landEncoded(mailbox.Entry{From: root, Epoch: mailbox.Epoch{Lease: 1}, Start: start,
			Items: []mailbox.Item{{ID: start, Kind: "resumed", Body: decodeBody(t, agent.Resumed{Activation: start})}}})
	}
	if got := d.startActive(); got != "ReportHopeless" {
		t.Error(got)
	}
}

// While the lease is over nothing begins. When it is back, an own entry proves first that
// nobody else has claimed the log (P4, P27).
func TestStep_PostponedEffectsNeedAProvenLease(t *testing.T) {
	d := activeAgent(t)
	d.lease = 0
	d.wantActions(d.sayFact(agent.Granted{Reservation: 1, Output: 100, Calls: 9}), "later 1s ProveLease")
	d.wantActions(activation.ProveLease{}, "later 1s ProveLease")
	d.lease = 3
	d.wantActions(activation.ProveLease{}, "append checkpoint")
	d.readBack("perform model-1")
	if p := d.last[len(d.last)-1].(activation.Perform); p.Lease != 3 {
		t.Errorf("the call begins under lease %d", p.Lease)
	}
}

// A claim that comes before the proof ends what was postponed.
func TestStep_PostponedEffectsNeverStartAfterALaterClaim(t *testing.T) {
	d := activeAgent(t)
	d.lease = 0
	d.wantActions(d.sayFact(agent.Granted{Reservation: 1, Output: 100, Calls: 9}), "later 1s ProveLease")
	d.lease = 3
	d.wantActions(activation.ProveLease{}, "append checkpoint")
	proof := d.last[0].(activation.AppendOwn).Data
	d.wantActions(d.claimElsewhere(2), "DisarmTimers, LeaveThrottle, ReportSuperseded, ReportGone")
	d.wantActions(activation.EntryArrived{Message: d.landEntry(proof)}, "ReportGone")
}

// A superseded activation gives up its model call and waits for its tool, whose result is
// evidence (P4).
func TestStep_SupersededActivationPostsOnlyToolResults(t *testing.T) {
	d := callingAgent(t)
	d.wantActions(d.claimElsewhere(2), "end model-1, DisarmTimers, LeaveThrottle, ReportSuperseded, ReportGone")
	d.wantActions(d.replyOfModel(), "end model-1, ReportGone")

	d = lookingAgent(t)
	d.wantActions(d.claimElsewhere(2), "DisarmTimers, LeaveThrottle, ReportSuperseded")
	d.wantActions(d.resultOfTool(), "end 1-0, append returned, ReportGone")
}

// A draining activation reads on, begins nothing, and leaves once its work is in the log (P3).
func TestStep_DrainingWaitsForTheWorkUnderWay(t *testing.T) {
	d := lookingAgent(t)
	d.wantActions(activation.Drain{}, "DisarmTimers")
	d.wantActions(d.sayFact(agent.Canceled{Why: "enough", Now: true}), "") // the next activation reads it
	d.wantActions(d.resultOfTool(), "end 1-0, append returned")
	d.readBack("append released")
	d.readBack("ReportGone")
}

// One that drains and reads a later claim waits for its tool and for no model: it may
// never act again, and nobody would read the answer.
func TestStep_ADrainingActivationThatIsSupersededWaitsForNoModel(t *testing.T) {
	d := callingAgent(t)
	d.wantActions(activation.Drain{}, "DisarmTimers")
	d.wantActions(d.claimElsewhere(2), "end model-1, LeaveThrottle, ReportGone")

	d = lookingAgent(t)
	d.wantActions(activation.Drain{}, "DisarmTimers")
	d.wantActions(d.claimElsewhere(2), "LeaveThrottle")
	d.wantActions(d.resultOfTool(), "end 1-0, append returned, ReportGone")
}

// An activation that drains before it has read its log gets through it first.
func TestStep_DrainingBeginsAfterTheReplay(t *testing.T) {
	d := driveAgent(t)
	d.sayFact(agent.Submitted{Task: spec.Task{Run: "r", ID: spec.Root, Limits: spec.Limits{Output: 100}}})
	d.wantActions(activation.Drain{}, "")
	if got := d.startActive(); got != "append checkpoint, send reserve report_log, DisarmTimers" {
		t.Error(got)
	}
	d.readBack("append released")
	d.readBack("ReportGone")
}

// One that drains, and was detached from the tail before it had read its log, reads for
// itself until its own entries were read back.
func TestStep_DrainingWhileDetached(t *testing.T) {
	d := driveAgent(t)
	d.sayFact(agent.Submitted{Task: spec.Task{Run: "r", ID: spec.Root, Limits: spec.Limits{Output: 100}}})
	d.wantActions(activation.Detached{Through: 5}, "")
	d.wantActions(activation.Drain{}, "")
	if got := d.startActive(); got != "append checkpoint, send reserve report_log, DisarmTimers, ReadTail" {
		t.Error(got)
	}
}

// An activation passivates when it has nothing to do. What comes before its Released was
// read back is not stepped, so somebody has to look again (P19).
func TestStep_Passivation(t *testing.T) {
	d := activeAgent(t)
	d.wantActions(activation.Passivate{}, "DisarmTimers, append released")
	d.readBack(fmt.Sprintf("ReportPassivated %d", len(d.log)+1))

	d = activeAgent(t)
	d.wantActions(activation.Passivate{}, "DisarmTimers, append released")
	released := d.last[1].(activation.AppendOwn).Data
	d.wantActions(d.sayFact(agent.Granted{Reservation: 1, Output: 100, Calls: 9}), "")
	d.wantActions(activation.EntryArrived{Message: d.landEntry(released)}, "ReportGone")

	for name, busy := range map[string]func(*drivenAgent){
		"its model is called":        func(d *drivenAgent) { d.learnFact(d.sayFact(agent.Granted{Reservation: 1, Output: 100, Calls: 9})) },
		"the lease is over":          func(d *drivenAgent) { d.lease = 0 },
		"an own entry is on its way": func(d *drivenAgent) { d.learnFact(activation.TimerFired{Timer: "x"}) },
	} {
		d = activeAgent(t)
		busy(d)
		if got := d.learnFact(activation.Passivate{}); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A closed log answers each question. An end that was reported before the question was
// read names the place before it, so that the router can tell (P25).
func TestStep_AClosedLogAnswers(t *testing.T) {
	d := callingAgent(t)
	fail := activation.WorkDone{Own: d.state.OwnResult("failed", activation.ModelKey(1), agent.Failed{Reservation: 1, Class: model.Auth, Detail: "no key"})}
	d.wantActions(fail, "end model-1, append failed")
	d.readBack("send settle finish")
	d.wantActions(activation.MessagesSent{To: super}, "append closed")
	d.readBack(fmt.Sprintf("ReportLogEnded %d", len(d.log)+1))
	d.wantActions(d.sayFact(agent.StatusAsked{Activation: "s", Ordinal: 4}), "answer finish")
	d.wantActions(activation.AnswerSent{Message: d.last[0].(activation.SendAnswer).Message, Err: mailbox.ErrFull}, "later 1s AnswerAgain")
	d.wantActions(activation.AnswerAgain{}, "answer finish")
	d.wantActions(activation.AnswerSent{}, fmt.Sprintf("ReportLogEnded %d", len(d.log)))
}

// What is too large for an entry is replaced, once; what finds no room is tried again, and
// what fails otherwise ends the activation.
func TestStep_OwnEntriesThatFail(t *testing.T) {
	d := lookingAgent(t)
	d.wantActions(d.resultOfTool(), "end 1-0, append returned")
	own := d.last[1].(activation.AppendOwn).Own
	d.wantActions(activation.OwnFailed{Own: own, Err: mailbox.ErrFull}, "later 1s AppendAgain")
	d.wantActions(activation.AppendAgain{Own: own}, "append returned")
	d.wantActions(activation.OwnFailed{Own: own, Err: mailbox.ErrTooLarge}, "append returned")
	small := d.last[0].(activation.AppendOwn).Own
	if f := small.Body.(agent.Returned); !f.Error || !small.Small {
		t.Errorf("instead of what is too large: %+v", f)
	}
	d.wantActions(activation.OwnFailed{Own: small, Err: mailbox.ErrTooLarge}, "Fail")
	d.wantActions(activation.OwnFailed{Own: small, Err: mailbox.ErrClosed}, "")
}

// An append may land although its acknowledgement is lost and its repetition finds no room. Once the
// entry was read back, it is not appended again: the actor may have ended meanwhile.
func TestStep_AnOwnEntryThatWasReadBackIsNotAppendedAgain(t *testing.T) {
	d := lookingAgent(t)
	d.wantActions(d.resultOfTool(), "end 1-0, append returned")
	own := d.last[1].(activation.AppendOwn)
	d.wantActions(activation.OwnFailed{Own: own.Own, Err: mailbox.ErrFull}, "later 1s AppendAgain")
	d.learnFact(activation.EntryArrived{Message: d.landEntry(own.Data)})
	d.wantActions(activation.AppendAgain{Own: own.Own}, "")
}

// A detached activation reads for itself until it is level with the tail (P18).
func TestStep_ReadsForItselfUntilLevel(t *testing.T) {
	d := activeAgent(t)
	m := d.sayFact(agent.Granted{Reservation: 1, Output: 100, Calls: 9}).Message
	d.wantActions(activation.Detached{Through: m.Place}, "ReadTail")
	d.wantActions(activation.TailRead{Through: m.Place, Err: errors.New("no leader")}, "later 1s Detached")
	d.wantActions(activation.Detached{Through: m.Place}, "ReadTail")
	d.wantActions(activation.EntryRead{Message: m}, "perform model-1")
	d.wantActions(activation.TailRead{Through: m.Place, Entries: 1}, "ReportReachedTail")
}
