package agent

import (
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/intern"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/model"
)

// Phase is what an agent waits for.
type Phase string

// Phases. The zero Phase waits for Submitted.
const (
	Reserving Phase = "reserving" // for the supervisor's Granted or Denied
	Thinking  Phase = "thinking"  // for the model
	Acting    Phase = "acting"    // for tools and children
	Waiting   Phase = "waiting"   // for what Suspended says
	Hooking   Phase = "hooking"   // for hooks before a model call, or before a reply's tools
	Stopping  Phase = "stopping"  // for stop hooks, then for the supervisor's verdict on a proposed stop
	Done      Phase = "done"
)

// State is an agent at one index of its log. It is a value: Step never changes its
// input State, so two futures may be stepped from one. Within a step, handlers change the one copy that Step has made: a
// function that returns a *State may have changed the one that it got, and one that returns none only reads it (but for
// copyOf, which notes that both copies share their calls).
// Futures of one State must be stepped by one goroutine at a time: their transcripts share a backing array.
// What changes together is a part with its own methods.
type State struct {
	Task  spec.Task
	Phase Phase
	shellState

	ImportedHistory importedHistory // of an earlier history, until the task comes

	workClock
	transcript
	spending
	modelRoute
	failureStreaks

	Transition spec.Transition // why the last turn was taken
	Purpose    Purpose         // of the newest reservation
	Force      string          // tool choice of the next request: "", "any" or a tool
	reservation
	Allowance allowance // for attempts that begin without a grant of their own

	Calls callList // of the last reply

	Proposal int            // number of the newest proposed stop
	Vetoes   int            // in a row
	VetoedBy *VerdictOrigin // the newest veto

	ClosingReason spec.Reason // set: the turn under way is the closing turn, and why
	Cancel        *Canceled
	PendingSteers []string // messages of users that wait for the turn boundary
	TurnPreempted bool     // one of PendingSteers abandons what the turn under way has not begun
	correspondence
	Suspended suspension // Waiting: for what, and what follows
	Outcome   spec.Outcome

	Fold              Fold // the summary that replaces the beginning of History in prompts
	PendingCompaction pendingCompaction
	Ladder            recoveryLadder // how often the loop has recovered from losing context
	Journal           Journal
	LoopDetection     loopDetection         // the repetition that the loop detects in itself
	Gate              hookGate              // the hooks that the loop waits for, outside of calls
	Tainted           *spec.Taint           // the first text from outside that the agent has read; nil: none
	Remarks           []string              // of hooks that the loop did not wait for, and about dropped calls, until the next turn boundary
	Declared          declaration           // by a call of the newest reply
	Goal              goalProgress          // how often a stop was sent back, and why
	Obstacles         []obstacle            // calls that were not carried out, and have not succeeded since
	HookEffects       hookEffects           // effects of hooks so far
	AddedRules        []spec.PermissionRule // that people have added in this run
	QuestionsAsked    int                   // questions that the loop has put to a person itself
	LimitNotes        limitNotes            // what the model was told of its limits

	Drift           configDrift // how the current node differs from the record
	LogVerification logVerification
	Fork            fork
	NextContext     []ContextSet // change Task before the next request

	Sent     int // messages to the supervisor
	Received int // messages of the supervisor

	texts       intern.Texts    // of Task, which other agents have, too
	tools       *toolRules      // of Task, compiled from it
	hooks       *hookRules      // of Task, compiled from it
	permissions *permission.Set // of Task, compiled from it
	events      stepEvents      // of the step under way
	copiedCalls *Call           // the first of Calls, if the step under way has copied them: it may write to them
}

// reservation is the budget of one attempt to call the model, as its supervisor granted it. Its number
// grows with each request, so an answer to an earlier one is recognized.
type reservation struct {
	Reservation int // number of the newest one
	// FrozenReservation is the newest one that waits, or waited, for the end of a freeze.
	FrozenReservation int
	Open              bool // it is granted and not settled
	Grant             Granted
}

// isFrozen reports whether the newest reservation waits for the end of a freeze, or has waited for it.
func (r reservation) isFrozen() bool {
	return r.FrozenReservation > 0 && r.FrozenReservation == r.Reservation
}

// Purpose is what a model call is for.
type Purpose string

// Purposes of a reservation.
const (
	ForTurn    Purpose = ""
	ForSummary Purpose = "summary" // of what a compaction takes out of the prompt
)

// appendMessage appends a message to the transcript.
func (s *State) appendMessage(m model.Message) *State {
	s.events.publishMessage(len(s.History), m)
	s.transcript = s.extend(m)
	return s
}

// appendSteering appends a message that a person sent after the task: it survives every fold.
func appendSteering(s *State, text string) *State {
	s.UserMessages = append(slices.Clip(s.UserMessages), len(s.History))
	return s.appendMessage(model.Message{Role: model.User, Text: text})
}

// strikeNewest makes the newest message a tombstone.
func (s *State) strikeNewest() *State {
	if m := s.newest(); !m.Tombstone {
		s.events.publishTombstone(len(s.History)-1, m)
	}
	s.transcript = s.withTombstone()
	return s
}

// copyOf returns a shallow copy: slices, maps and pointers are shared, so who changes the copy, or the original after it,
// clones them before it writes, as a step does.
func copyOf(s *State) *State {
	s.copiedCalls = nil
	c := *s
	return &c
}

// trialCopy is copyOf for a change that may be dropped: its events are its own, because a step edits theirs in place.
func trialCopy(s *State) *State {
	c := copyOf(s)
	c.events.list = slices.Clone(c.events.list)
	return c
}

// withCall replaces one call, and publishes its progress.
func (s *State) withCall(i int, c Call) *State {
	s = cloneCalls(s)
	s.events.publishProgress(i, s.Calls[i], c, s.tools)
	s.Calls[i] = c
	return s
}

// cloneCalls copies the calls, so that a write to one affects no other state. It does so once for each copy of the state:
// a step that begins each of 64 calls copies them once, not 64 times.
func cloneCalls(s *State) *State {
	if len(s.Calls) == 0 || s.copiedCalls == &s.Calls[0] {
		return s
	}
	s.Calls = slices.Clone(s.Calls) //mutant:no-clone
	s.copiedCalls = &s.Calls[0]
	return s
}

// appendWaiting appends the messages that waited for a request: those of the loop, then those of the user.
func appendWaiting(s *State) *State {
	for _, text := range s.Remarks {
		s = s.appendMessage(model.Message{Role: model.User, Text: text})
	}
	for _, text := range s.PendingSteers {
		s = appendSteering(s, text)
	}
	s.Remarks = nil
	return withoutSteers(s)
}

// shareTexts returns the task with the texts that other agents have, too, as one copy for all of them: its system prompt
// and its tools. They are shared for as long as texts is held.
func shareTexts(t spec.Task, texts *intern.Texts) spec.Task {
	t.System, t.LoopOptions.Dynamic = texts.Share(t.System), texts.Share(t.LoopOptions.Dynamic)
	t.Tools = texts.ShareTools(t.Tools)
	return t
}
