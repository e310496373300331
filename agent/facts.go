package agent

import (
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/decoder"
	"github.com/troupe-run/troupe/model"
)

// Input is one fact as the loop reads it from its log.
type Input struct {
	N          uint64 // index of the entry in this log
	At         int64  // stamp of the entry, Unix milliseconds, never decreasing
	Activation string // the activation that is current at this index
	// FromSupervisor: the fact is a message from the supervisor. Damaged: the supervisor's log
	// is shorter than what this agent has read from it (PROTOCOL P13).
	FromSupervisor, Damaged bool
	Fact                    Fact
}

// Fact is something that happened. Facts are past participles.
type Fact interface {
	// Kind is the fact's word in logs.
	Kind() string
}

// Submitted gives an agent its task. It is the first fact that counts.
type Submitted struct {
	Task spec.Task `msgpack:"t"`
}

// Recalled gives an agent a part of an earlier history, before its task: a
// fork, or an import. Parts are numbered from 0 and follow each other in order.
type Recalled struct {
	Messages []model.Message  `msgpack:"m"`
	Past     string           `msgpack:"p,omitempty"` // names the history: parts of two do not mix
	Part     int              `msgpack:"n,omitempty"`
	Fold     *history.Summary `msgpack:"f,omitempty"` // Upto counts the messages of all parts
	// Journal is the run journal as it stood, as the arguments of update_run_journal. Without it the agent
	// rebuilds the journal from the calls that edited it, which a history may no longer have.
	Journal string `msgpack:"j,omitempty"`
	// Obstacles are what the agent of that history has not carried out: the agent that answers
	// in its place must not claim it.
	Obstacles []obstacle `msgpack:"o,omitempty"`
	// Tainted is the text from outside that the agent of that history had read.
	Tainted *spec.Taint `msgpack:"ta,omitempty"`
}

// Granted opens a reservation: one attempt of a model call may begin. Closing grants
// only a closing turn, because of Why.
type Granted struct {
	Reservation int         `msgpack:"l"`
	Output      int64       `msgpack:"o"`
	Calls       int64       `msgpack:"c,omitempty"`
	Closing     bool        `msgpack:"f,omitempty"`
	Why         spec.Reason `msgpack:"w,omitempty"`
	Detail      string      `msgpack:"d,omitempty"` // for people
	// By is the rule of the policy that leaves only a closing turn.
	By *VerdictOrigin `msgpack:"by,omitempty"`
	// Allowance is held for further attempts, which may begin without another grant.
	Allowance *budget.Allowance `msgpack:"h,omitempty"`
	// Left is the rest of the run's budget, for notes to the model.
	Left *RunLeft `msgpack:"rl,omitempty"`
}

// Denied rejects a Reserve: not even a closing turn fits the budget.
type Denied struct {
	Reservation int         `msgpack:"l"`
	Why         spec.Reason `msgpack:"w"`
	Detail      string      `msgpack:"d,omitempty"`
	// By names the policy rule that had vetoed the ordinary turn, if any.
	By *VerdictOrigin `msgpack:"by,omitempty"`
}

// Replied is what the model answered under a reservation.
type Replied struct {
	Reservation int         `msgpack:"l"`
	Reply       model.Reply `msgpack:"r"`
	TookMS      int64       `msgpack:"t,omitempty"`
	// Tokens is the shell's estimate of the reply's message; 0: not counted.
	Tokens int64 `msgpack:"n,omitempty"`
	// Dropped is how many further tool calls of the reply its entry does not hold.
	// None of them runs, and the loop informs the model.
	Dropped int `msgpack:"d,omitempty"`
}

// Failed is an attempt without a usable answer. Reply holds what had arrived.
type Failed struct {
	Reservation int              `msgpack:"l"`
	Class       model.ErrorClass `msgpack:"c"`
	Detail      string           `msgpack:"d,omitempty"`
	Unbilled    bool             `msgpack:"u,omitempty"`
	AfterMS     int64            `msgpack:"a,omitempty"` // what the provider asked to wait
	Reply       model.Reply      `msgpack:"r,omitempty"`
	TookMS      int64            `msgpack:"t,omitempty"`
}

// Started announces that a shell is about to begin a call. The call begins when
// the loop reads this entry while the shell that wrote it is current.
type Started struct {
	Call       string `msgpack:"c"`
	Attempt    int    `msgpack:"a"`
	Activation string `msgpack:"s"`
}

// Returned answers a call: from a tool, or for a delegate from the supervisor.
type Returned struct {
	Call    string `msgpack:"c"`
	Attempt int    `msgpack:"a,omitempty"` // 0: not a tool's
	Text    string `msgpack:"t"`
	Error   bool   `msgpack:"e,omitempty"`
	Killed  bool   `msgpack:"k,omitempty"` // by our abort, while running
	TookMS  int64  `msgpack:"m,omitempty"`
	// Tokens is the shell's estimate of Text; 0: not counted.
	Tokens int64 `msgpack:"n,omitempty"`
	// Transient: the failure may pass (timeout, refused, 429, 5xx).
	Transient bool `msgpack:"r,omitempty"`
	// Ref names the blob that holds the whole result, of Size bytes, when Text
	// is a part of it (PROTOCOL P15: it was stored before this was written).
	Ref  string `msgpack:"b,omitempty"`
	Size int64  `msgpack:"z,omitempty"`
	// Live: the requested child works in the background, or has the conversation, and answers later.
	Live bool `msgpack:"l,omitempty"`
	// WorkedMS is how long the child that answers was at work.
	WorkedMS int64 `msgpack:"w,omitempty"`
	// Outcome is how the agent ended that the conversation was handed off to.
	Outcome *spec.Outcome `msgpack:"oc,omitempty"`
	// Files are what the call changed in files of the directory, and FilesLost why there may be more. No
	// decision depends on them.
	Files     []spec.FileChange `msgpack:"fc,omitempty"`
	FilesLost string            `msgpack:"fl,omitempty"`
	// Metrics are what the tool has reported about the call, and MetricsLost how many reports broke a limit. No
	// decision depends on them.
	Metrics     spec.Metrics `msgpack:"ms,omitempty"`
	MetricsLost int          `msgpack:"ml,omitempty"`
	// Tainted is the text from outside that the agent that answers had read; nil: none.
	Tainted *spec.Taint `msgpack:"ta,omitempty"`
}

// Hooked is what the hooks of one RunHooks answered, in their order.
type Hooked struct {
	ID      string            `msgpack:"i"`
	Point   spec.HookPoint    `msgpack:"p"`
	Answers []spec.HookAnswer `msgpack:"a"`
}

// Canceled asks the agent to end: at the next safe boundary, or Now.
type Canceled struct {
	Why string `msgpack:"w,omitempty"`
	Now bool   `msgpack:"n,omitempty"`
	// Of names one agent of the run; empty means the whole run. Only the supervisor reads it.
	Of spec.ID `msgpack:"o,omitempty"`
	// As is the stop reason of a cancel that is not a person's; "": the phase of the loop decides.
	As spec.Reason `msgpack:"a,omitempty"`
	// By is who has canceled, as the request names them; "": unknown, or no person.
	By string `msgpack:"b,omitempty"`
}

// Woke reports that a timer is due. It counts only if its entry's stamp confirms that.
type Woke struct {
	Timer string `msgpack:"t"`
}

// Checkpoint claims an ack floor; the loop ignores it.
type Checkpoint struct{}

// The kinds in logs. They never change.
func (Submitted) Kind() string   { return "submitted" }
func (Recalled) Kind() string    { return "recalled" }
func (Hooked) Kind() string      { return "hooked" }
func (Granted) Kind() string     { return "granted" }
func (Denied) Kind() string      { return "denied" }
func (Replied) Kind() string     { return "replied" }
func (Failed) Kind() string      { return "failed" }
func (Started) Kind() string     { return "started" }
func (Returned) Kind() string    { return "returned" }
func (StopAllowed) Kind() string { return "stop_allowed" }
func (StopVetoed) Kind() string  { return "stop_vetoed" }
func (Canceled) Kind() string    { return "canceled" }
func (Woke) Kind() string        { return "woke" }
func (Resumed) Kind() string     { return "resumed" }
func (Checkpoint) Kind() string  { return "checkpoint" }
func (Closed) Kind() string      { return "closed" }

// Decode makes a fact of a kind from its body; ok is false for a kind that is
// not an agent's.
func Decode(kind string, body func(into any) error) (f Fact, ok bool, err error) {
	return facts.Decode(kind, body)
}

// facts holds how each kind of fact is decoded.
var facts = decoder.NewTable(
	decoder.Of[Fact, Submitted](), decoder.Of[Fact, Recalled](), decoder.Of[Fact, Forked](),
	decoder.Of[Fact, Granted](), decoder.Of[Fact, Denied](), decoder.Of[Fact, AllowanceRecalled](), decoder.Of[Fact, BudgetFrozen](),
	decoder.Of[Fact, Admitted](), decoder.Of[Fact, Replied](), decoder.Of[Fact, Failed](),
	decoder.Of[Fact, Started](), decoder.Of[Fact, Returned](), decoder.Of[Fact, Hooked](),
	decoder.Of[Fact, StopAllowed](), decoder.Of[Fact, StopVetoed](), decoder.Of[Fact, Canceled](),
	decoder.Of[Fact, Steered](), decoder.Of[Fact, Messaged](), decoder.Of[Fact, Answered](), decoder.Of[Fact, StatusAsked](),
	decoder.Of[Fact, RuleAllowed](), decoder.Of[Fact, Throttled](), decoder.Of[Fact, PermissionsNarrowed](),
	decoder.Of[Fact, TimeLimitSet](), decoder.Of[Fact, ModelSet](), decoder.Of[Fact, ContextSet](),
	decoder.Of[Fact, Woke](), decoder.Of[Fact, Resumed](), decoder.Of[Fact, LogVerified](),
	decoder.Of[Fact, Released](), decoder.Of[Fact, Checkpoint](), decoder.Of[Fact, Closed](),
)

// Effect is something to do. Effects are imperatives and plain data.
//
//sumtype:decl
type Effect interface{ effect() }

// SupervisorMessage is an effect for the supervisor: it becomes an outbox message.
type SupervisorMessage interface {
	Effect
	// Kind is the message's word in the supervisor's log.
	Kind() string
}

// Reserve requests a reservation for one attempt.
type Reserve struct {
	Reservation int                   `msgpack:"l"`
	Request     budget.AttemptRequest `msgpack:"a"`
	Turn        int                   `msgpack:"t"`
	// Node is where the agent runs; only the agent's first reservation, for a turn or a summary, names it.
	Node string `msgpack:"n,omitempty"`
	// Ahead is how many further attempts the agent would like to begin without asking.
	Ahead int `msgpack:"h,omitempty"`
	// Facts is what the rules of the policy need to know; nil: nothing that they could not know.
	Facts *PolicyFacts `msgpack:"pf,omitempty"`
}

// Settle closes a reservation. Lost: the cost is unknown, so the reservation is spent in full.
type Settle struct {
	Reservation int           `msgpack:"l"`
	Used        budget.Amount `msgpack:"u"`
	Usage       model.Usage   `msgpack:"g,omitempty"`
	Lost        bool          `msgpack:"x,omitempty"`
	// Unused: nothing was billed. A reserved closing turn stays reserved.
	Unused bool `msgpack:"n,omitempty"`
	// Turn is the turn of the reservation. Used.Calls is how many of the granted tool calls will be used.
	Turn int `msgpack:"t,omitempty"`
	// Under is the reservation with which the allowance was granted that covered the attempt, and Taken
	// what the attempt took out of it; 0: the reservation was granted itself.
	Under int           `msgpack:"w,omitempty"`
	Taken budget.Amount `msgpack:"k,omitempty"`
}

// ProposeStop says that the agent believes it is done.
type ProposeStop struct {
	Proposal int    `msgpack:"p"`
	Text     string `msgpack:"t"`
	// Results are the tools with a successful result, in order, at most resultsMax.
	Results []string     `msgpack:"r,omitempty"`
	Facts   *PolicyFacts `msgpack:"pf,omitempty"`
}

// Finish is the agent's last message.
type Finish struct {
	Outcome spec.Outcome `msgpack:"o"`
	Turns   int          `msgpack:"t"`
	Calls   int          `msgpack:"c"`
	Usage   model.Usage  `msgpack:"u"`
	Node    string       `msgpack:"n,omitempty"`
	ModelMS int64        `msgpack:"m,omitempty"` // time that models took
	ToolMS  int64        `msgpack:"l,omitempty"` // time that tools took, summed
	// WorkedMS is how long the agent was at work, its children included; 0: not counted.
	WorkedMS int64 `msgpack:"w,omitempty"`
	// Foreign counts its calls of agents of other programs, which report no cost.
	Foreign int `msgpack:"fo,omitempty"`
	// Ordinal counts the messages of this agent to its supervisor up to this one; 0: not counted.
	Ordinal int `msgpack:"r,omitempty"`
}

// ReportLog announces a new activation. Its index in the agent's log shows the supervisor how long that log is (P13).
// Activation names the activation, because the outbox message of an earlier one may be sent again.
type ReportLog struct {
	Activation string `msgpack:"s,omitempty"`
	Node       string `msgpack:"n,omitempty"`
	// Damaged: why this log or the supervisor's is known to be incomplete (hashes, message counts, or a shorter log).
	Damaged string `msgpack:"d,omitempty"`
	// Ended is how the agent ended, if it has: its Finish may have arrived before the
	// supervisor knew of the agent.
	Ended *spec.Outcome `msgpack:"o,omitempty"`
	// Ordinal counts the messages of this agent to its supervisor, this one included, and Received the messages
	// that it received from its supervisor; 0: not counted.
	Ordinal  int `msgpack:"r,omitempty"`
	Received int `msgpack:"h,omitempty"`
}

// The kinds in logs of messages to the supervisor.
func (Reserve) Kind() string     { return "reserve" }
func (Settle) Kind() string      { return "settle" }
func (ProposeStop) Kind() string { return "propose_stop" }
func (Park) Kind() string        { return "park" }
func (Unpark) Kind() string      { return "unpark" }
func (Finish) Kind() string      { return "finish" }
func (ReportLog) Kind() string   { return "report_log" }

// DecodeSupervisorMessage makes a message of a kind from its body; ok is false for an unknown kind.
func DecodeSupervisorMessage(kind string, body func(into any) error) (a SupervisorMessage, ok bool, err error) {
	return supervisorMessages.Decode(kind, body)
}

// supervisorMessages holds how each kind of message is decoded.
var supervisorMessages = decoder.NewTable(
	decoder.Of[SupervisorMessage, Reserve](), decoder.Of[SupervisorMessage, Settle](), decoder.Of[SupervisorMessage, ReturnAllowance](),
	decoder.Of[SupervisorMessage, Delegate](), decoder.Of[SupervisorMessage, Send](), decoder.Of[SupervisorMessage, Backlog](),
	decoder.Of[SupervisorMessage, Steered](), decoder.Of[SupervisorMessage, Messaged](), decoder.Of[SupervisorMessage, AllowRule](),
	decoder.Of[SupervisorMessage, Park](), decoder.Of[SupervisorMessage, Unpark](), decoder.Of[SupervisorMessage, Status](),
	decoder.Of[SupervisorMessage, ProposeStop](), decoder.Of[SupervisorMessage, Finish](),
	decoder.Of[SupervisorMessage, ReportLog](), decoder.Of[SupervisorMessage, VerifyLog](),
)

// CallModel begins an attempt under an open reservation.
type CallModel struct {
	Reservation int
	Request     model.Request
	Model       string // "provider/model"
	Turn        int
	Purpose     Purpose
}

// Begin appends Started for a call; the call itself follows when the loop reads that entry.
type Begin struct {
	Call    string
	Attempt int
}

// CallTool begins a call.
type CallTool struct {
	Call        string
	Attempt     int
	Turn        int
	Name        string
	Args        string
	MayWriteAny bool // the tool may write any file of the directory: a person, or a rule of one, allows it
	Tainted     bool // the agent has read text from outside
}

// RunHooks runs hooks; their answers come back as one Hooked with the same ID. At
// a gate the loop waits for it.
type RunHooks struct {
	ID    string
	Point spec.HookPoint
	Turn  int
	Hooks []spec.Hook
	Input spec.HookData
}

// AbortHooks aborts running hooks; the loop no longer waits for their answer.
type AbortHooks struct{ ID string }

// AbortModel cancels the model call of a reservation; the partial reply comes back as Failed.
type AbortModel struct{ Reservation int }

// AbortTool kills a running call; its end comes back as Returned.
type AbortTool struct{ Call string }

// Arm sets a timer; arming it again moves it.
type Arm struct {
	Timer string
	Due   int64 // Unix milliseconds
}

func (Reserve) effect()     {}
func (Settle) effect()      {}
func (ProposeStop) effect() {}
func (Park) effect()        {}
func (Unpark) effect()      {}
func (Finish) effect()      {}
func (ReportLog) effect()   {}
func (CallModel) effect()   {}
func (Begin) effect()       {}
func (CallTool) effect()    {}
func (RunHooks) effect()    {}
func (AbortHooks) effect()  {}
func (AbortModel) effect()  {}
func (AbortTool) effect()   {}
func (Arm) effect()         {}
