// Package compare finds the first difference of two runs from their logs.
package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/approval"
	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
)

// Run is a run that is compared.
type Run struct {
	RunID      string  `json:"run_id"`
	Fork       string  `json:"fork,omitempty"` // the point of another run that it began at
	Model      string  `json:"model"`          // of the run, at its end
	Reason     string  `json:"stop_reason"`    // "": it has not ended
	Tokens     int64   `json:"tokens"`
	CostUSD    float64 `json:"total_cost_usd"`
	IsEstimate bool    `json:"cost_estimated,omitempty"` // of the cost
	Turns      int     `json:"num_turns"`
	Agents     int     `json:"agents"`
	Text       string  `json:"result"`

	steps map[string][]step // of each agent, in the order in which they are compared
}

// step is one thing that an agent was told, said, called or got.
type step struct {
	turn  int
	order int
	call  string
	kind  string
	text  string
	after time.Duration // since the start of the run
}

// compare orders steps within a turn by their kind and call: tools that run side by side end in any order.
func (s step) compare(o step) int {
	return cmp.Or(cmp.Compare(s.turn, o.turn), cmp.Compare(s.order, o.order), cmp.Compare(s.call, o.call))
}

// Difference is the first difference of two runs.
type Difference struct {
	Agent string `json:"agent"`
	Turn  int    `json:"turn"`
	Kind  string `json:"kind"`
	Call  string `json:"call,omitempty"`
	// A and B are what the runs have there; "": nothing.
	A string `json:"a"`
	B string `json:"b"`
}

// Comparison is the result of comparing two runs. First is nil if they have no difference.
type Comparison struct {
	A     Run         `json:"a"`
	B     Run         `json:"b"`
	First *Difference `json:"first_difference"`
	Text  string      `json:"result_diff,omitempty"`
}

// kinds are the kinds of events that are compared, in the order of a turn.
var kinds = []string{event.KindPolicyApplied, event.KindPermissionsChanged, event.KindBudgetChanged, event.KindAgentStarted, event.KindContextChanged, event.KindBacklogPosted, event.KindBacklogClaimed, event.KindBacklogReturned, event.KindBacklogDone, event.KindBacklogDropped, event.KindMessageUser, event.KindMessageAgent, event.KindMessageAssistant, event.KindToolProposed,
	event.KindQueryAsked, event.KindQueryAnswered, event.KindToolFinished, event.KindStopVetoed, event.KindAgentFinished}

// ReadRun replays the logs of a run, without a model or a tool. The file has content: it is not redacted.
func ReadRun(f runfile.File) (c Run, err error) {
	r := replay.Logs(f.Entries, replay.Options{Events: true})
	if r.Super.Phase == "" {
		return c, fmt.Errorf("%s: %w", f.Header.Run, replay.ErrNoLog)
	}
	c = Run{RunID: f.Header.Run, Fork: r.Super.Run.Fork, Model: r.Super.Run.Model.Name, Tokens: r.Result.Budget.Used, CostUSD: r.Result.CostUSD, IsEstimate: r.Result.CostEstimated, Turns: r.Result.Turns, Agents: r.Super.Count(),
		Text: r.Result.Text, steps: map[string][]step{}}
	if r.Ended {
		c.Reason = string(r.Result.Reason)
	}
	began, notes := time.UnixMilli(r.Super.Began), forkNotes(f)
	for _, e := range r.Events {
		order := slices.Index(kinds, e.Kind)
		if said, isText := e.Data.(event.Said); order < 0 || isText && e.Kind == event.KindMessageUser && slices.Contains(notes, said.Text) {
			continue
		}
		step, err := newStep(e, began)
		if err != nil {
			return c, err
		}
		step.order = order
		c.steps[e.Agent] = append(c.steps[e.Agent], step)
	}
	for _, list := range c.steps {
		slices.SortStableFunc(list, step.compare)
	}
	return c, nil
}

// forkNotes are what a fork tells its agents of itself.
func forkNotes(f runfile.File) (notes []string) {
	runfile.EachFact(f.Entries, func(_ mailbox.Message, fact agent.Fact, _ bool) {
		if mark, ok := fact.(agent.Forked); ok {
			notes = append(notes, mark.Note)
		}
	})
	return notes
}

// unstable are the keys of events that differ between two runs that do the same.
var unstable = []string{"node", "activation", "workspace", "usage", "tokens", "tokens_used", "cost_usd", "digest", "by", "prompt_tokens", "age"}

func newStep(e event.Published, began time.Time) (step, error) {
	data, err := json.Marshal(e.Data)
	var fields map[string]any
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	if err != nil {
		return step{}, fmt.Errorf("compare: event %s: %w", e.ID, err)
	}
	for key := range fields {
		if slices.Contains(unstable, key) || strings.HasSuffix(key, "_ms") {
			delete(fields, key)
		}
	}
	call, _ := fields["call"].(string)
	text, err := marshalPlain(fields)
	at, failed := time.Parse(time.RFC3339, e.TS)
	query, _ := fields["query"].(string)
	return step{turn: turnOfQuery(query, e.Turn), call: cmp.Or(call, query), kind: e.Kind, text: text, after: at.Sub(began)}, cmp.Or(err, failed)
}

// marshalPlain returns JSON with its keys in order, and with markup as it is, because people read it.
func marshalPlain(fields map[string]any) (string, error) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(fields)
	return strings.TrimSuffix(text.String(), "\n"), err
}

// turnOfQuery returns the turn in which a question was asked: its answer may be read in a later one.
func turnOfQuery(query string, turn int) int {
	text, _, _ := strings.Cut(strings.TrimPrefix(query, "turn-"), "-")
	text, _, _ = strings.Cut(text, ".")
	if asked, err := strconv.Atoi(text); err == nil {
		return asked
	}
	return turn
}

// Runs finds the first difference of two runs: of those of all agents, the one that came first.
func Runs(a, b Run) Comparison {
	c := Comparison{A: a, B: b}
	var earliest time.Duration
	for _, id := range agentsOfBoth(a, b) {
		d, at, differs := firstStep(a.steps[id], b.steps[id])
		if !differs || c.First != nil && at >= earliest {
			continue
		}
		d.Agent = id
		c.First, earliest = &d, at
	}
	if a.Text != b.Text {
		c.Text = approval.Difference("result", &a.Text, &b.Text)
	}
	return c
}

func agentsOfBoth(a, b Run) (ids []string) {
	for _, side := range []Run{a, b} {
		for id := range side.steps {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// firstStep finds the first step that differs, and when it came.
func firstStep(a, b []step) (d Difference, at time.Duration, differs bool) {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return Difference{Turn: b[i].turn, Kind: b[i].kind, Call: b[i].call, B: b[i].text}, b[i].after, true
		case i >= len(b):
			return Difference{Turn: a[i].turn, Kind: a[i].kind, Call: a[i].call, A: a[i].text}, a[i].after, true
		case a[i].compare(b[i]) < 0:
			return Difference{Turn: a[i].turn, Kind: a[i].kind, Call: a[i].call, A: a[i].text}, a[i].after, true
		case a[i].compare(b[i]) > 0:
			return Difference{Turn: b[i].turn, Kind: b[i].kind, Call: b[i].call, B: b[i].text}, b[i].after, true
		case a[i].text != b[i].text:
			return Difference{Turn: a[i].turn, Kind: a[i].kind, Call: a[i].call, A: a[i].text, B: b[i].text}, min(a[i].after, b[i].after), true
		}
	}
	return d, 0, false
}

// Pair is what two runs have at one step of an agent; "": nothing.
type Pair struct {
	Turn int    `json:"turn"`
	Kind string `json:"kind"`
	Call string `json:"call,omitempty"`
	A    string `json:"a"`
	B    string `json:"b"`
	// Differs: it is the first difference, or comes after it and differs.
	Differs bool `json:"differs"`
}

// Around returns the steps of the agent that has the first difference: at most before of them, then the difference, then at most
// after. Both runs have the same steps before it; a step that only one of them has stands alone.
func (c Comparison) Around(before, after int) []Pair {
	if c.First == nil {
		return nil
	}
	a, b := c.A.steps[c.First.Agent], c.B.steps[c.First.Agent]
	var pairs []Pair
	first := -1
	for len(a)+len(b) > 0 && (first < 0 || len(pairs) <= first+after) {
		var p Pair
		order := 0
		switch {
		case len(b) == 0:
			order = -1
		case len(a) == 0:
			order = 1
		default:
			order = a[0].compare(b[0])
		}
		if order <= 0 {
			p, a = Pair{Turn: a[0].turn, Kind: a[0].kind, Call: a[0].call, A: a[0].text}, a[1:]
		}
		if order >= 0 {
			p.Turn, p.Kind, p.Call, p.B = b[0].turn, b[0].kind, b[0].call, b[0].text
			b = b[1:]
		}
		if p.Differs = p.A != p.B; p.Differs && first < 0 {
			first = len(pairs)
		}
		pairs = append(pairs, p)
	}
	return pairs[max(0, first-before):]
}
