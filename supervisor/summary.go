package supervisor

import (
	"strings"
	"unicode/utf8"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
)

// Limits of a Summary that is published: together with the counts, it fits the row of a run in
// an index that holds thousands of runs.
const (
	summaryAgentsBytesMax    = 2 << 10 // of the list of agents
	summaryQuestionsBytesMax = 2 << 10 // of the list of questions, with their texts
	summaryAgentBytes        = 64      // of an agent or a question in JSON, without its texts
	summaryDetailBytes       = 512
)

// Summary is what requests about a run need to know of it. The node that acts on the run
// publishes it, so that such a request does not read the run's log.
type Summary struct {
	Phase Phase `json:"phase"`
	// Active says that an activation of the supervisor has read the log.
	Active  bool  `json:"active,omitempty"`
	BeganMS int64 `json:"began_ms,omitempty"` // Unix
	// Parked says that the run waits for people alone.
	Parked bool `json:"parked,omitempty"`
	// ParkDueMS is when the run ends if nobody answers, in Unix milliseconds; 0: the clock of a parked run does not run.
	ParkDueMS int64 `json:"park_due_ms,omitempty"`
	// Priced says that the price of the run's model is known.
	Priced bool `json:"priced,omitempty"`
	// Reason and Detail say how the run ended.
	Reason spec.Reason `json:"reason,omitempty"`
	Detail string      `json:"detail,omitempty"`
	// Root is the definition of the root, of a run of a conversation, and HandedTo the agent
	// that its root has handed off to.
	Root     string                    `json:"root,omitempty"`
	HandedTo *event.ConversationHolder `json:"handed_to,omitempty"`
	// Canceled and CanceledNow say that the supervisor has read a cancel of the run; CancelTargets is how
	// many agents were live then.
	Canceled      bool `json:"canceled,omitempty"`
	CanceledNow   bool `json:"canceled_now,omitempty"`
	CancelTargets int  `json:"cancel_targets,omitempty"`
	// Joined is how many agents the run ever had.
	Joined int   `json:"joined,omitempty"`
	Tally  Tally `json:"tally"`
	// Spend may be old: what was spent since is less than a sixteenth of the limit, or was spent
	// in the run's first seconds.
	Spend event.Spend `json:"spend"`
	// Agents are those that have not ended, and those that a cancel has ended. AgentsCut says that
	// some are left out.
	Agents    []AgentSummary `json:"agents,omitempty"`
	AgentsCut bool           `json:"agents_cut,omitempty"`
	// Questions are open. QuestionsCut says that some are left out, or lack their text.
	Questions    []OpenQuestion `json:"questions,omitempty"`
	QuestionsCut bool           `json:"questions_cut,omitempty"`
}

// Tally counts agents.
type Tally struct {
	// Live counts those that have not ended, by node.
	Live map[string]int `json:"live,omitempty"`
	// Stopped counts those that were canceled alone, without the run, and have reported their end;
	// Silent those that were given up after a cancel.
	Stopped int `json:"stopped,omitempty"`
	Silent  int `json:"silent,omitempty"`
}

// AgentSummary is one agent in a Summary.
type AgentSummary struct {
	ID       spec.ID `json:"id"`
	Pool     string  `json:"pool,omitempty"`
	Node     string  `json:"node,omitempty"`
	Done     bool    `json:"done,omitempty"`
	Stopping bool    `json:"stopping,omitempty"`
	Silent   bool    `json:"silent,omitempty"`
}

// OpenQuestion is a question in a Summary. Asked is the entry of the run's log that holds it: it
// tells the question from an earlier one of the same name.
type OpenQuestion struct {
	Agent    spec.ID     `json:"agent"`
	Name     string      `json:"name,omitempty"` // of the agent
	Pool     string      `json:"pool,omitempty"`
	Query    string      `json:"query"`
	Reason   spec.Reason `json:"reason"`
	Call     string      `json:"call,omitempty"`
	Question string      `json:"question,omitempty"`
	Digest   string      `json:"digest,omitempty"`
	Rule     string      `json:"rule,omitempty"`
	DueMS    int64       `json:"due_ms,omitempty"`
	AskedMS  int64       `json:"asked_ms,omitempty"`
	Asked    uint64      `json:"asked"`
	// Approvals, ApprovedBy and ApprovedRequest are those of agent.Park.
	Approvals       int    `json:"approvals,omitempty"`
	ApprovedBy      string `json:"approved_by,omitempty"`
	ApprovedRequest string `json:"approved_request,omitempty"`
}

// SummaryKey changes whenever the Summary of a run does, but for its limits.
type SummaryKey struct {
	members       uint64
	phase         Phase
	active        bool
	parked        bool
	parkDue       int64
	canceled, now bool
	spent         int64 // in steps of the limit
	limit         budget.Limit
	frozen        bool
}

// While a run works, its Summary is published anew whenever it has spent another part of its limit. So a
// list shows what live runs have spent, to the sixteenth of their limits, and such a run costs at most
// spentSteps more writes of its row.
const (
	spentSteps = 16
	// spentAfterMS is how long a run works before its spend is published: most runs end earlier.
	spentAfterMS = 5_000
)

// spentStep is the larger part of the limits in tokens and in money that is spent, in steps.
func spentStep(s State) (step int64) {
	if s.Now-s.Began < spentAfterMS {
		return 0
	}
	if limit := s.Pool.Limit.Tokens; limit >= spentSteps {
		step = s.Pool.Spent.Tokens / (limit / spentSteps)
	}
	if limit := s.Pool.Limit.Nano; limit >= spentSteps {
		step = max(step, s.Pool.Spent.Nano/(limit/spentSteps))
	}
	return min(step, spentSteps)
}

// SummaryKey costs less than a Summary.
func (s State) SummaryKey() SummaryKey {
	return SummaryKey{members: s.roster.revision, phase: s.Phase, active: s.Activation != "", parked: s.IsParked(), parkDue: s.ParkDue,
		canceled: s.Cancel != nil, now: s.Cancel != nil && s.Cancel.Now,
		spent: spentStep(s), limit: s.Pool.Limit, frozen: s.Frozen}
}

// Summary sums up the run. With full, nothing is left out.
func (s State) Summary(full bool) Summary {
	r := Summary{Phase: s.Phase, Active: s.Activation != "", BeganMS: s.Began, Parked: s.IsParked(), ParkDueMS: s.ParkDue, Priced: s.Run.Model.Price.Known && !s.before.unknown,
		Reason: s.Outcome.Reason, Detail: clipDetail(s.Outcome.Detail),
		Canceled: s.Cancel != nil, CanceledNow: s.Cancel != nil && s.Cancel.Now, CancelTargets: s.CancelTargets, Joined: s.Count(),
		Spend: spendOf(s)}
	if r.HandedTo = s.roster.handedTo(); s.Run.Conversation != "" {
		r.Root = s.Run.Root
	}
	agentBytes, questionBytes := 0, 0
	s.Members(func(m Member) {
		a := AgentSummary{ID: m.ID, Pool: m.NodePool, Node: m.Node, Done: m.Done, Stopping: m.Stopping, Silent: m.Silent}
		r.Tally.count(a)
		if !a.isCounted() {
			return
		}
		if agentBytes += summaryAgentBytes + len(a.ID) + len(a.Pool) + len(a.Node); full || agentBytes <= summaryAgentsBytesMax {
			r.Agents = append(r.Agents, a)
		} else {
			r.AgentsCut = true
		}
		if m.Query == nil {
			return
		}
		q := OpenQuestion{Agent: m.ID, Name: m.Name, Pool: m.NodePool, Query: m.Query.Query, Reason: m.Query.Reason, Call: m.Query.Call, Question: m.Query.Question, Asked: m.asked,
			Digest: m.Query.Digest, Rule: m.Query.Rule, DueMS: m.Query.Due, AskedMS: m.askedMS,
			Approvals: m.Query.Approvals, ApprovedBy: m.Query.ApprovedBy, ApprovedRequest: m.Query.ApprovedRequest}
		if questionBytes += q.size(); full || questionBytes <= summaryQuestionsBytesMax {
			r.Questions = append(r.Questions, q)
			return
		}
		r.QuestionsCut = true
		questionBytes -= bytesInJSON(q.Question)
		if q.Question = ""; questionBytes <= summaryQuestionsBytesMax {
			r.Questions = append(r.Questions, q)
		}
	})
	return r
}

func (q OpenQuestion) size() int {
	return summaryAgentBytes + len(q.Agent) + len(q.Pool) + len(q.Query) + len(q.Reason) + len(q.Call) + len(q.Digest) + len(q.ApprovedRequest) + bytesInJSON(q.Name) + bytesInJSON(q.ApprovedBy) + bytesInJSON(q.Rule) + bytesInJSON(q.Question)
}

// bytesInJSON is how long a text is in JSON, where some characters take six bytes: models choose
// the texts of questions.
func bytesInJSON(text string) (n int) {
	for _, r := range text {
		switch {
		case r == '"', r == '\\':
			n += 2
		case r < ' ', r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029', r == '\uFFFD':
			n += 6
		default:
			n += utf8.RuneLen(r)
		}
	}
	return n
}

// isCounted reports whether the account of a cancel may count the agent.
func (a AgentSummary) isCounted() bool { return !a.Done || a.Stopping || a.Silent }

func (t *Tally) count(a AgentSummary) {
	switch {
	case !a.Done:
		if t.Live == nil {
			t.Live = map[string]int{}
		}
		t.Live[a.Node]++
	case a.Silent:
		t.Silent++
	case a.Stopping:
		t.Stopped++
	}
}

// TallyOf counts the agents that a cancel of one agent includes: the agent and all below it; for
// the root or "", all. ok is false if the Summary leaves out agents that may be among them.
func (r Summary) TallyOf(of spec.ID) (t Tally, ok bool) {
	if of == "" || of == spec.Root {
		return r.Tally, true
	}
	for _, a := range r.Agents {
		if a.ID == of || a.ID.IsBelow(of) {
			t.count(a)
		}
	}
	return t, !r.AgentsCut
}

// LiveAgents is how many agents have not ended.
func (t Tally) LiveAgents() (sum int) {
	for _, n := range t.Live {
		sum += n
	}
	return sum
}

// clipDetail returns as much of a detail as a Summary holds.
func clipDetail(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), summaryDetailBytes)], "")
}
