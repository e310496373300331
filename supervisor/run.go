// Package supervisor is a run as a value: its members, its pool of tokens,
// money and calls, the stop veto, and cancellation. Step takes a State and an
// Event and returns the next State and Effects; like agent.Step it is total
// and deterministic and has no third argument.
//
// members.go joins and ends agents, money.go answers Reserve and Settle,
// policy.go holds the veto rules, cancel.go stops a run.
package supervisor

import (
	"cmp"

	"github.com/benbjohnson/immutable"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// Definition describes a kind of agent that a run may have.
type Definition struct {
	Name        string `msgpack:"n" json:"name"`
	Description string `msgpack:"d,omitempty" json:"description"`
	System      string `msgpack:"s" json:"system"`
	// Tools are the agent's rights: nil inherits all that its parent has. An empty
	// list is none, and must come out of the log as one: nothing omits it.
	Tools []string `msgpack:"t" json:"tools,omitempty"`
	// Offer is the part of its rights that the model is told of; nil: all.
	Offer []string `msgpack:"o" json:"offer,omitempty"`
	// Deny is taken away from it and from all below it.
	Deny []string `msgpack:"y,omitempty" json:"deny,omitempty"`
	// Delegates are the definitions it may delegate to; nil: any, empty: none.
	Delegates []string     `msgpack:"g" json:"delegates,omitempty"`
	Model     *agent.Model `msgpack:"m,omitempty" json:"model,omitempty"`
	Limits    agent.Limits `msgpack:"l,omitempty" json:"limits"`
	// Manners go over those of the run.
	Manners agent.Manners `msgpack:"a,omitempty" json:"manners"`
	// Source is the file that it was read from, "" for one that is built in, and
	// Hash the version of its prompt.
	Source string `msgpack:"u,omitempty" json:"source,omitempty"`
	Hash   string `msgpack:"h,omitempty" json:"hash,omitempty"`
	// Pool is where such an agent lives; "" is where the run's agents live.
	Pool string `msgpack:"pl,omitempty" json:"pool,omitempty"`
}

// Limits of a whole run. Zero means the default, but for Tokens and Nano, where
// it means no limit.
type Limits struct {
	Tokens   int64 `msgpack:"t,omitempty" json:"tokens"`
	Nano     int64 `msgpack:"n,omitempty" json:"nano_usd"`
	Calls    int64 `msgpack:"c,omitempty" json:"tool_calls"`
	Depth    int   `msgpack:"d,omitempty" json:"depth"`
	Children int   `msgpack:"h,omitempty" json:"children"` // live ones of one agent
	Agents   int   `msgpack:"a,omitempty" json:"agents"`
	Messages int   `msgpack:"m,omitempty" json:"messages"` // between agents
}

// Defaults of Limits.
const (
	CallsMax    = 200
	DepthMax    = 3
	ChildrenMax = 8
	AgentsMax   = 128
	MessagesMax = 128
)

func (l Limits) withDefaults() Limits {
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

// over puts the limits that are set over others.
func (l Limits) over(base Limits) Limits {
	return Limits{Tokens: cmp.Or(l.Tokens, base.Tokens), Nano: cmp.Or(l.Nano, base.Nano), Calls: cmp.Or(l.Calls, base.Calls),
		Depth: cmp.Or(l.Depth, base.Depth), Children: cmp.Or(l.Children, base.Children), Agents: cmp.Or(l.Agents, base.Agents), Messages: cmp.Or(l.Messages, base.Messages)}
}

// Opened is the first fact of a run: everything it is, so that replay needs
// nothing else.
type Opened struct {
	Run          string           `msgpack:"r" json:"run"`
	Conversation string           `msgpack:"v,omitempty" json:"conversation,omitempty"`
	Goal         string           `msgpack:"g" json:"goal"`
	Media        []model.Media    `msgpack:"md,omitempty" json:"media,omitempty"` // that come with the goal, for the root
	Root         string           `msgpack:"o" json:"root"`                       // name of the root's definition
	Definitions  []Definition     `msgpack:"d" json:"definitions"`
	Tools        []model.ToolSpec `msgpack:"t,omitempty" json:"tools"`
	Commands     []agent.Command  `msgpack:"z,omitempty" json:"commands,omitempty"`
	Servers      []agent.Server   `msgpack:"ms,omitempty" json:"servers,omitempty"`
	Model        agent.Model      `msgpack:"m" json:"model"`
	Why          string           `msgpack:"y,omitempty" json:"why,omitempty"` // this model
	Limits       Limits           `msgpack:"l" json:"limits"`
	Agent        agent.Limits     `msgpack:"a,omitempty" json:"agent_limits"` // over each definition's
	RootTurns    int              `msgpack:"k,omitempty" json:"root_turns"`
	Policy       Policy           `msgpack:"p,omitempty" json:"policy"`
	Caller       string           `msgpack:"c,omitempty" json:"caller,omitempty"`
	Constraints  []string         `msgpack:"n,omitempty" json:"constraints,omitempty"`
	Criteria     []string         `msgpack:"q,omitempty" json:"criteria,omitempty"`
	Trace        string           `msgpack:"w,omitempty" json:"trace,omitempty"`
	Workspace    string           `msgpack:"x,omitempty" json:"workspace,omitempty"`
	Writable     []string         `msgpack:"e,omitempty" json:"writable,omitempty"`
	Rules        int              `msgpack:"u" json:"rules"`
	Manners      agent.Manners    `msgpack:"b,omitempty" json:"manners"`
	// Hashes are the versions of what the node had when the run was begun: its
	// tools, its operator's hooks, the policy (package agent, drift.go).
	Hashes map[string]string `msgpack:"h,omitempty" json:"hashes,omitempty"`
	// Past is what the root was told before the run was opened.
	Past *Past `msgpack:"f,omitempty" json:"past,omitempty"`
	// Pool is where agents live that their definitions place nowhere: that of the
	// machine that has the Workspace. "" is DefaultPool, where all supervisors live.
	Pool string `msgpack:"pl,omitempty" json:"pool,omitempty"`
	// Unpriced are the models that may be called under a limit in money though
	// nobody knows what they cost: somebody has named them.
	Unpriced []string `msgpack:"np,omitempty" json:"unpriced,omitempty"`
}

// shown are the media that come with the task of an agent: only the root's has any.
func (o Opened) shown(depth int) []model.Media {
	if depth > 0 {
		return nil
	}
	return o.Media
}

// Past says which history the root of a run begins with.
type Past struct {
	Run      string `msgpack:"r,omitempty" json:"run,omitempty"`   // forked from; "": imported
	Turn     int    `msgpack:"t,omitempty" json:"turn"`            // after which it was taken
	Messages int    `msgpack:"m" json:"messages"`                  // in all
	Bound    int64  `msgpack:"b,omitempty" json:"bound,omitempty"` // of its tokens
}

func (p *Past) bound() int64 {
	if p == nil {
		return 0
	}
	return p.Bound
}

// Phase of a run.
type Phase string

// Phases. The zero Phase waits for Opened.
const (
	Live    Phase = "live"
	Closing Phase = "closing" // the root has finished, others have not yet
	Over    Phase = "over"
)

// State is a run at one place of its log: a value that shares structure, so
// that a step costs O(log members).
type State struct {
	Run        Opened
	Phase      Phase
	Life       string
	Now        int64
	Began      int64
	Ended      int64
	Pool       budget.Pool
	Frozen     bool // no turn is granted but closing ones
	Usage      model.Usage
	Live       int // members that have not finished
	Parked     int // members that wait for a person
	Messages   int // that agents have sent each other
	Cancel     *agent.Canceled
	Told       int // members that lived when the cancel came
	CanceledAt int64
	Stopped    int   // members that finished after the cancel
	Released   bool  // the activation before ended in order
	Asked      int64 // when the members were asked last how they stand
	AskDue     int64 // when the activation in force asks them; 0: it has, or need not
	News       int64 // when one of them last said anything else
	Halted     bool  // its own log is damaged: who has finished is not known, so nobody is waited for
	Outcome    agent.Outcome

	// Pointers, to what is never written again: a step copies nodes of 32 entries.
	members *immutable.SortedMap[string, *Member]
	queue   *immutable.SortedMap[uint64, *waiter] // reservations that wait for others to settle
	arrival uint64
}

// Member is one agent of the run.
type Member struct {
	ID         agent.ID
	Parent     agent.ID
	Pool       string // where its log is; "": DefaultPool
	Call       string // of the parent, that it answers
	Background bool   // its answer is a message: the call was answered when it was born
	Name       string
	Depth      int
	Rights     []string
	Deny       []string
	Children   int // live ones
	Seen       bool
	Sign       int64 // until when its first letter must come
	Stopping   bool  // canceled alone, without the run
	Done       bool
	Silent     bool // given up after the cancel: it has not said itself that it has ended
	Turns      int
	Calls      int
	Vetoes     int // in a row
	Usage      model.Usage
	ModelMS    int64
	ToolMS     int64
	WorkedMS   int64
	Told       int // facts that it was told
	Heard      int // asks that came of it
	Node       string
	Query      *agent.Park
	Outcome    agent.Outcome
	waits      uint64 // key in the queue, 0: none
	// binding are those hooks of its task that bind its children.
	binding []agent.Hook
}

type waiter struct {
	who   agent.ID
	lease int
	ask   budget.Ask
}

// Member returns one member.
func (s State) Member(id agent.ID) (Member, bool) {
	if s.members == nil {
		return Member{}, false
	}
	m, ok := s.members.Get(string(id))
	if !ok {
		return Member{}, false
	}
	return *m, true
}

// Members calls each for every member in the order of their ids.
func (s State) Members(each func(Member)) {
	if s.members == nil {
		return
	}
	for it := s.members.Iterator(); !it.Done(); {
		_, m, _ := it.Next()
		each(*m)
	}
}

// Count is how many members ever joined.
func (s State) Count() int {
	if s.members == nil {
		return 0
	}
	return s.members.Len()
}

func (s State) put(m Member) State {
	if s.members == nil {
		s.members = immutable.NewSortedMap[string, *Member](nil)
	}
	s.members = s.members.Set(string(m.ID), &m)
	return s
}

// IsParked reports whether the run waits for people alone: somebody is parked, and
// nothing is under way that could change that.
func (s State) IsParked() bool { return s.Parked > 0 && s.Pool.Held.Zero() && s.Waiting() == 0 }

// Waiting is how many reservations wait for others to settle.
func (s State) Waiting() int {
	if s.queue == nil {
		return 0
	}
	return s.queue.Len()
}
