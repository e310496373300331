package activation

import (
	"fmt"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// Action is an instruction from Step to its shell: one of the types of this file. If carrying
// out an action produces a fact, the action's comment names that fact.
type Action any

// Actions on logs.
type (
	// AppendClaim appends a claim to the actor's own log. Fact: ClaimAppended.
	AppendClaim struct{ Data []byte }
	// ReadLog reads the actor's own log from its start up to the claim. Fact: LogRead.
	ReadLog struct{ Claim ClaimAppended }
	// ReadTail reads a part of the entries after a place. Facts: EntryRead for each entry,
	// then TailRead.
	ReadTail struct{ After, Through uint64 }
	// AppendOwn appends an own entry. Fact: OwnFailed if the append fails; otherwise the
	// reader reads the entry back.
	AppendOwn struct {
		Own  OwnResult
		ID   string
		Data []byte
	}
	// SendMessages appends messages to the log of another actor. Fact: MessagesSent.
	SendMessages struct {
		To       mailbox.Address
		Messages []OutboxMessage
		Data     []byte
	}
	// SendAnswer appends an answer of a closed log to the log of another actor. Fact:
	// AnswerSent.
	SendAnswer struct {
		Message OutboxMessage
		Data    []byte
	}
	// OwnReadBack says that the activation has read back one of its own entries. The shell
	// need not act on it.
	OwnReadBack struct{ ID string }
)

// Actions in the world.
type (
	// Perform begins a model call, a tool call or hooks (agent.CallModel, agent.CallTool,
	// agent.RunHooks), or queues at the throttle of a model (agent.AwaitThrottle). The shell
	// checks just before the call begins that the node holds the log under Lease; if not, the
	// fact is WorkNotBegun (PROTOCOL P27). Work with a key ends with WorkDone or WorkPosted.
	Perform struct {
		Effect any
		Key    string
		Lease  uint64
	}
	// AbortWork makes work end soon. Fact: WorkDone.
	AbortWork struct{ Key string }
	// EndWork forgets work, and cancels it if it is still under way.
	EndWork struct{ Key string }
	// LeaveThrottle withdraws all requests of the activation that queue at the throttles of
	// models.
	LeaveThrottle struct{}
	// ArmTimer makes a timer fire at Due, in Unix milliseconds, instead of at the time it was
	// armed for before. Fact: TimerFired.
	ArmTimer struct {
		Timer string
		Due   int64
	}
	// DisarmTimer and DisarmTimers stop timers from firing.
	DisarmTimer  struct{ Timer string }
	DisarmTimers struct{}
	// Later delivers a fact after a pause.
	Later struct {
		Pause time.Duration
		Fact  any
	}
)

// Actions for observers and the operator.
type (
	// PublishEvents publishes the events of entry N.
	PublishEvents struct {
		N      uint64
		Stamp  int64 // stamp of the entry
		Parent string
		Events []event.Event
	}
	// PublishRestart publishes that this activation continues an agent whose previous activation did not
	// end in order; N is the entry of its claim. No log holds the event.
	PublishRestart struct {
		N      uint64
		Stamp  int64 // stamp of the claim
		Parent string
		Turn   int
		Data   event.AgentResumed
	}
	// PublishState publishes the state of a run whose supervisor has read the entry at Place.
	PublishState struct {
		State supervisor.State
		Place uint64
	}
	// PublishResult publishes the result of a run that is over.
	PublishResult struct{ Result event.Result }
	// Warn logs a line for the operator: a message, keys and values.
	Warn struct {
		Text string
		Args []any
	}
	// Fail ends the activation because it cannot continue without its log.
	Fail struct {
		Doing string // what the activation was about to do
		Err   error
	}
)

// Actions that report to the router.
type (
	// ReportSuperseded says that the activation decides nothing more, though work may be under
	// way.
	ReportSuperseded struct{}
	// ReportGone says that the activation decides nothing more and has no work under way.
	ReportGone struct{}
	// ReportLogEnded says that the log is closed, and that all entries up to Place are answered.
	ReportLogEnded struct{ Place uint64 }
	// ReportPassivated says that the activation has nothing to do before the entry after
	// Place, or before Due.
	ReportPassivated struct {
		Place uint64
		Due   int64 // Unix milliseconds, 0: never
	}
	// ReportHopeless says that no activation gets through the log.
	ReportHopeless struct{ Why string }
	// ReportNewerLog says that the log is newer than this program.
	ReportNewerLog struct{ Why string }
	// ReportEntriesTaken says how many entries of the tail the activation has taken.
	ReportEntriesTaken struct{ Entries int }
	// ReportReachedTail says that the activation has read all entries up to Place and wants the tail
	// again.
	ReportReachedTail struct{ Place uint64 }
)

// Prefixes of work keys. No tool call has a key that begins with one of them.
const (
	modelPrefix = "model-"
	hookPrefix  = "hook:"
)

// ModelKey names the work of a model call.
func ModelKey(reservation int) string { return fmt.Sprintf("%s%d", modelPrefix, reservation) }

// HookKey names the work of the hooks of one point.
func HookKey(id string) string { return hookPrefix + id }

// AttemptKey names one attempt of a tool call.
func AttemptKey(call string, attempt int) string { return fmt.Sprintf("%s.%d", call, attempt) }
