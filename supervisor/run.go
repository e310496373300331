package supervisor

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/intern"
	"github.com/troupe-run/troupe/model"
)

// Definition describes a kind of agent that a run may have.
type Definition struct {
	Name        string `msgpack:"n" json:"name"`
	Description string `msgpack:"d,omitempty" json:"description"`
	System      string `msgpack:"s" json:"system"`
	// Tools are the agent's rights: nil inherits all rights of its parent. An empty list
	// grants none, and must be decoded from the log as an empty list: no tag omits it.
	Tools []string `msgpack:"t" json:"tools,omitempty"`
	// Offer is the part of its rights that the model sees; nil: all.
	Offer []string `msgpack:"o" json:"offer,omitempty"`
	// Deny is taken away from the agent and all its descendants.
	Deny []string `msgpack:"y,omitempty" json:"deny,omitempty"`
	// Delegates are the definitions it may delegate to; nil: all but those that are OnlyNamed, empty: none.
	Delegates []string `msgpack:"g" json:"delegates,omitempty"`
	// Handoffs are the definitions to which it may hand off its conversation; nil: none.
	Handoffs []string    `msgpack:"hf,omitempty" json:"handoffs,omitempty"`
	Model    *spec.Model `msgpack:"m,omitempty" json:"model,omitempty"`
	Limits   spec.Limits `msgpack:"l,omitempty" json:"limits"`
	// Carved: the pool holds the agent's own limits of tokens and money for it from its start to its end.
	Carved bool `msgpack:"cv,omitempty" json:"carved,omitempty"`
	// OnlyNamed: only definitions that name it delegate to it.
	OnlyNamed bool `msgpack:"on,omitempty" json:"only_named,omitempty"`
	// LoopOptions take precedence over those of the run.
	LoopOptions spec.LoopOptions `msgpack:"a,omitempty" json:"loop_options"`
	// Permissions are its own, in addition to those of the run.
	Permissions *spec.Permissions `msgpack:"pe,omitempty" json:"permissions,omitempty"`
	// Constraints, Criteria and FailIf add to those of the run.
	Constraints []string `msgpack:"co,omitempty" json:"constraints,omitempty"`
	Criteria    []string `msgpack:"cr,omitempty" json:"criteria,omitempty"`
	FailIf      []string `msgpack:"fi,omitempty" json:"failure_conditions,omitempty"`
	// Source is the file that defines it, "" for a built-in one, and Hash the version
	// of its prompt.
	Source string `msgpack:"u,omitempty" json:"source,omitempty"`
	Hash   string `msgpack:"h,omitempty" json:"hash,omitempty"`
	// NodePool is the node pool in which such an agent lives; "" is the pool of the run's agents.
	NodePool string `msgpack:"pl,omitempty" json:"pool,omitempty"`
	// Memory says whose notes the agent keeps beyond the run: agentmemory.User or Project; "": it has no memory.
	Memory string `msgpack:"me,omitempty" json:"memory,omitempty"`
	// Foreign: the agent represents the agent of another program of that name, and calls it by rule.
	Foreign bool `msgpack:"fo,omitempty" json:"foreign,omitempty"`
	// ChargeNano is held and then booked for the work of that other agent, in billionths of a US dollar; 0: no
	// charge, so its cost is unknown.
	ChargeNano int64 `msgpack:"ch,omitempty" json:"charge_nano,omitempty"`
	// Tainted: its prompt lists notes that were written after text from outside was read.
	Tainted *spec.Taint `msgpack:"ta,omitempty" json:"tainted,omitempty"`
}

// Defaults of Limits.
const (
	CallsMax    = 200
	DepthMax    = 3
	ChildrenMax = 8
	AgentsMax   = 128
	MessagesMax = 128
)

// withRunDefaults fills what is zero.
func withRunDefaults(l spec.RunLimits) spec.RunLimits {
	if l.Calls == 0 {
		l.Calls = CallsMax
	}
	if l.Depth == 0 {
		l.Depth = DepthMax
	}
	if l.Children == 0 {
		l.Children = ChildrenMax
	}
	if l.Agents == 0 {
		l.Agents = AgentsMax
	}
	if l.Messages == 0 {
		l.Messages = MessagesMax
	}
	return l
}

// Opened is the first fact of a run: it holds the whole configuration, so that
// replay needs nothing else.
type Opened struct {
	Run          string           `msgpack:"r" json:"run"`
	Conversation string           `msgpack:"v,omitempty" json:"conversation,omitempty"`
	Goal         string           `msgpack:"g" json:"goal"`
	Media        []model.Media    `msgpack:"md,omitempty" json:"media,omitempty"` // that come with the goal, for the root
	Root         string           `msgpack:"o" json:"root"`                       // name of the root's definition
	Definitions  []Definition     `msgpack:"d" json:"definitions"`
	Tools        []model.ToolSpec `msgpack:"t,omitempty" json:"tools"`
	Commands     []spec.Command   `msgpack:"z,omitempty" json:"commands,omitempty"`
	Servers      []spec.Server    `msgpack:"ms,omitempty" json:"servers,omitempty"`
	Model        spec.Model       `msgpack:"m" json:"model"`
	Why          string           `msgpack:"y,omitempty" json:"why,omitempty"` // this model
	Limits       spec.RunLimits   `msgpack:"l" json:"limits"`
	Agent        spec.Limits      `msgpack:"a,omitempty" json:"agent_limits"` // over each definition's
	RootTurns    int              `msgpack:"k,omitempty" json:"root_turns"`
	Policy       Policy           `msgpack:"p,omitempty" json:"policy"`
	Caller       string           `msgpack:"c,omitempty" json:"caller,omitempty"`
	Priority     string           `msgpack:"pr,omitempty" json:"priority,omitempty"` // "": normal
	Constraints  []string         `msgpack:"n,omitempty" json:"constraints,omitempty"`
	Criteria     []string         `msgpack:"q,omitempty" json:"criteria,omitempty"`
	FailIf       []string         `msgpack:"fi,omitempty" json:"failure_conditions,omitempty"`
	Trace        string           `msgpack:"w,omitempty" json:"trace,omitempty"`
	Workspace    string           `msgpack:"x,omitempty" json:"workspace,omitempty"`
	Writable     []string         `msgpack:"e,omitempty" json:"writable,omitempty"`
	LoopOptions  spec.LoopOptions `msgpack:"b,omitempty" json:"loop_options"`
	// Permissions are those of all agents. nil: no call is denied or asked about.
	Permissions *spec.Permissions `msgpack:"pe,omitempty" json:"permissions,omitempty"`
	// Tainted: the task is text from outside; nil: it is the user's own.
	Tainted *spec.Taint `msgpack:"ta,omitempty" json:"tainted,omitempty"`
	// Hashes are the versions of the node's configuration when the run began: its
	// tools, its operator's hooks, the policy (package agent, drift.go).
	Hashes map[string]string `msgpack:"h,omitempty" json:"hashes,omitempty"`
	// Past describes the history that the root received before the run was opened.
	Past *spec.HistoryOrigin `msgpack:"f,omitempty" json:"past,omitempty"`
	// NodePool is the node pool of agents whose definitions name none: that of the machine
	// that has the Workspace. "" is DefaultPool, where all supervisors live.
	NodePool string `msgpack:"pl,omitempty" json:"pool,omitempty"`
	// Unpriced are the models that may be called under a limit in money although their
	// price is unknown: a person has named them.
	Unpriced []string `msgpack:"np,omitempty" json:"unpriced,omitempty"`
	// InLane: the run waits for LaneStarted, because Conversation may have runs before it.
	InLane bool `msgpack:"il,omitempty" json:"in_lane,omitempty"`
	// ParkMS is how long the run may wait for people alone before it ends as unanswered; 0: for ever.
	ParkMS int64 `msgpack:"pk,omitempty" json:"park_timeout_ms,omitempty"`
	// Owner is who may see and change the run, besides operators; "": operators only. It never changes.
	Owner string `msgpack:"ow,omitempty" json:"owner,omitempty"`
	// Fork is the point of another run that this run began at, as RUN@AGENT:POINT; "": it began with its task.
	Fork string `msgpack:"fo,omitempty" json:"fork,omitempty"`
}

// shareTexts returns the entry with the texts that other runs have, too, as one copy for all of them, for as long as texts
// is held.
func (o Opened) shareTexts(texts *intern.Texts) Opened {
	o.Tools, o.Definitions = texts.ShareTools(o.Tools), slices.Clone(o.Definitions)
	for i := range o.Definitions {
		d := &o.Definitions[i]
		d.System, d.Description = texts.Share(d.System), texts.Share(d.Description)
	}
	return o
}

// Phase of a run.
type Phase string

// Phases. The zero Phase waits for Opened.
const (
	Queued  Phase = "queued" // it waits for its turn in the lane of its conversation
	Live    Phase = "live"
	Closing Phase = "closing" // the root has finished, others have not yet
	Over    Phase = "over"
)

// State is a run at one index of its log: a value that shares structure, so that a
// step costs O(log members).
type State struct {
	Run           Opened
	Phase         Phase
	Activation    string
	Now           int64
	Began         int64
	Ended         int64
	Usage         model.Usage
	Foreign       int   // calls of agents of other programs by members that have finished, for which nothing was charged
	Charged       bool  // a charge was booked for an agent of another program
	Live          int   // members that have not finished
	Parked        int   // members that wait for a person
	ParkDue       int64 // when the run ends, if it waits for people alone until then; 0: it does not, or has no clock
	Messages      int   // that agents have sent each other
	Cancel        *agent.Canceled
	CancelTargets int // members that lived when the cancel came
	CanceledAt    int64
	Stopped       int  // members that finished after the cancel
	Released      bool // the activation before ended in order
	Halted        bool // its own log is damaged and does not show which members have finished, so the run waits for none
	Outcome       spec.Outcome

	AddedRules []spec.PermissionRule // that people have added to the run
	Narrowings []PermissionsSet      // what operators, or the owner, have taken from agents of the run

	PolicySetBy string // who replaced the policy last; "": it is that of the request
	PolicySetAt int64
	before      modelsBefore
	others      OthersUse // that are not in this run

	backlog backlog
	rested  bool // the activation before ended because there was nothing to do

	Inquiry memberInquiry
	roster
	runBudget
	events []event.Event // of the step under way
	// cutNoted are the pairs of parent and child whose lost tools an event has named.
	cutNoted []string

	texts intern.Texts // of Run, which other runs have, too
}

// Models are the routes of the models that the run may call: its own, those of its definitions, the fallbacks, and
// those that write summaries. A route may come twice.
func (o Opened) Models() []string {
	routes := append([]string{o.Model.Name}, o.LoopOptions.Models()...)
	for _, d := range o.Definitions {
		if d.Model != nil {
			routes = append(routes, d.Model.Name)
		}
		routes = append(routes, d.LoopOptions.Models()...)
	}
	return routes
}

// Member is one agent of the run.
type Member struct {
	ID              spec.ID
	Parent          spec.ID
	NodePool        string // where its log is; "": DefaultPool
	Call            string // of the parent, that it answers
	Background      bool   // its answer is a message: the call was answered when it was born
	Name            string
	Depth           int
	Handoffs        int     // how often the conversation was handed off until it came to this member; 0: it began its own
	HandedTo        spec.ID // the member to which it has handed off; "": it has its conversation itself
	Rights          []string
	Deny            []string
	Children        int   // live ones
	Seen            bool  // has sent its first message
	FirstMessageDue int64 // until when its first message must come
	Stopping        bool  // told to stop, by itself or with an agent above it, while the run continues
	Done            bool
	GivenUp         bool // the run ended it without its own end
	Silent          bool // given up after the cancel: it has not reported its end itself
	Turns           int
	Calls           int
	Vetoes          int // in a row
	Loops           int // that its loop detection has found
	FutileCalls     int // its newest calls in a row that brought nothing new
	Usage           model.Usage
	ModelMS         int64
	ToolMS          int64
	WorkedMS        int64
	Sent            int // messages sent to it
	Received        int // messages received from it
	Node            string
	Query           *agent.Park
	Outcome         spec.Outcome
	queueKey        uint64 // key in the queue, 0: none
	askedMS         int64  // the stamp of that entry
	heardMS         int64  // of its newest message but answers about its own log
	asked           uint64 // the entry that holds Query
	// hooks are those of its task, and binding those of them that bind its children.
	hooks, binding []spec.Hook
	// permissions are those of its task: they bind its children, too.
	permissions []spec.Permissions
	// unattended: an agent above it is unattended.
	unattended bool
	// layers are the parts of its system prompt that it inherits, and those that it passes on.
	layers []spec.Layer
	added  []string // tools that it was given while it lived
}

// IsParked reports whether the run waits for people alone: a member is parked, and
// nothing in progress could change that.
func (s State) IsParked() bool {
	return s.Parked > 0 && s.Pool.Held.Minus(s.Pool.Charges).Zero() && s.Waiting() == 0 && s.roster.busy == 0 //mutant:parked-while-an-agent-works
}

// put replaces a member, or adds it.
func (s State) put(m Member) State {
	s.roster = s.roster.put(m)
	return s
}
