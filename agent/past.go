package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// PastForm is the form of an exported history.
const PastForm = 1

// Past is the history of an agent outside of its log, with everything that its
// own loop knows of it: an export, and what a fork or an import begins with.
type Past struct {
	Form  int    `json:"form"`
	Run   string `json:"run,omitempty"`
	Agent ID     `json:"agent,omitempty"`
	Name  string `json:"name,omitempty"`
	Goal  string `json:"goal,omitempty"`
	// System and Model are those that the history was made with. Whoever recalls
	// it has its own.
	System   string          `json:"system,omitempty"`
	Model    string          `json:"model,omitempty"`
	Turn     int             `json:"turn"`
	Usage    model.Usage     `json:"usage"`
	Messages []model.Message `json:"messages"`
	Fold     *PastFold       `json:"fold,omitempty"`
	// Journal is the run journal, for people: whoever recalls the history has it
	// from the calls that edited it.
	Journal string `json:"journal,omitempty"`
}

// PastFold is what stands for the first Upto messages of a Past in prompts.
type PastFold struct {
	Upto int    `msgpack:"u" json:"upto"`
	Text string `msgpack:"t" json:"text"`
	Deep bool   `msgpack:"d,omitempty" json:"deep,omitempty"`
}

// Recall is what an agent was given of an earlier history, before its task.
type Recall struct {
	Past     string // of which
	Parts    int    // that have come
	Messages []model.Message
	Fold     *PastFold
}

// recalled takes a part of an earlier history, before the task. A part 0 begins
// anew: the one who sent the parts before may have died between them.
func recalled(s State, f Recalled) (State, []Effect) {
	switch {
	case s.Phase != "":
		return s, nil
	case f.Part == 0:
		s.Recall = Recall{Past: f.Past}
	case f.Past != s.Recall.Past || f.Part != s.Recall.Parts:
		return s, nil
	}
	if len(s.Recall.Messages)+len(f.Messages) > PastMessagesMax {
		return s, nil
	}
	s.Recall.Parts++
	s.Recall.Messages = slices.Concat(s.Recall.Messages, f.Messages)
	if f.Fold != nil {
		s.Recall.Fold = f.Fold
	}
	return s, nil
}

// adopt makes what was recalled the beginning of the transcript. Its calls get
// ids that no call of this agent can have, and whatever a provider would refuse
// is mended: what was recalled may come from anywhere.
func (s State) adopt() State {
	if len(s.Recall.Messages) == 0 {
		return s
	}
	m, fold := mender{}, s.Recall.Fold
	if fold != nil && strings.TrimSpace(fold.Text) == "" {
		fold = nil // it would stand for messages and say nothing
	}
	for i, said := range s.Recall.Messages {
		if fold != nil && i == fold.Upto && m.open == nil {
			s.Fold = Fold{Upto: len(m.out), Text: fold.Text, Deep: fold.Deep}
		}
		m.take(said)
	}
	if m.flush(); fold != nil && fold.Upto == len(s.Recall.Messages) {
		s.Fold = Fold{Upto: len(m.out), Text: fold.Text, Deep: fold.Deep}
	}
	s.History, s.tape = m.out, nil
	s.Recalled, s.Recall, s.Task = len(m.out), Recall{}, s.Task.knows(m.out)
	return s
}

// mender writes a history as a provider takes it.
type mender struct {
	out   []model.Message
	live  model.Role // of the last message that is sent
	calls int        // of all
	open  []model.ToolCall
	was   []string // the ids that the open calls had
	have  []*model.ToolResult
	// tokens is the estimate of the results that have come.
	tokens int64
}

// What stands where a history says nothing.
const (
	gapText      = "(no message is recorded here)"
	noResultText = "no result is known: the recalled history ends before this call returned"
)

func (m *mender) take(said model.Message) {
	if !said.Tombstone {
		said = unshown(said)
	}
	said.Calls, said.Results = slices.Clone(said.Calls), slices.Clone(said.Results)
	blank := strings.TrimSpace(said.Text) == ""
	switch {
	case said.Tombstone:
	case said.Role == model.ToolRole && m.open != nil:
		m.tokens += max(said.Tokens, 0)
		m.answer(said.Results)
		return
	case said.Role == model.User && !blank:
		m.flush()
	case said.Role == model.Assistant && (!blank || len(said.Calls) > 0):
		if m.flush(); m.live == "" || m.live == model.Assistant {
			m.put(model.Message{Role: model.User, Text: gapText})
		}
	default:
		said.Tombstone = true // it stays in the record, and nobody is sent it
	}
	if !said.Tombstone {
		said.Results = nil
		if said.Role != model.Assistant {
			said.Calls = nil
		}
	}
	said.Tokens = believed(said)
	was := make([]string, len(said.Calls))
	for i := range said.Calls {
		was[i] = said.Calls[i].ID
		said.Calls[i].ID = fmt.Sprintf("%s%d", pastCall, m.calls)
		m.calls++
	}
	if said.Tombstone {
		m.out = append(m.out, said)
		return
	}
	if m.put(said); len(said.Calls) > 0 {
		m.open, m.was, m.have = said.Calls, was, make([]*model.ToolResult, len(said.Calls))
	}
}

// unshown names the media of a message instead of showing them: their bytes are
// blobs of one run, and a history goes into others.
func unshown(said model.Message) model.Message {
	if len(said.Media) == 0 {
		return said
	}
	for _, d := range said.Media {
		if said.Role == model.User {
			said.Text += fmt.Sprintf("\n[%s %s was shown here, %d bytes; this history does not have it]", clip(d.Type, nameShown), clip(cmp.Or(d.Name, "without a name"), nameShown), d.Size)
		}
	}
	said.Media, said.Tokens = nil, 0
	return said
}

// allUnshown are messages that leave the agent.
func allUnshown(list []model.Message) []model.Message {
	list = slices.Clone(list)
	for i, m := range list {
		list[i] = unshown(m)
	}
	return list
}

// believed is the estimate of a message, if it can be one.
func believed(m model.Message) int64 {
	if m.Tokens < 0 || m.Tokens > budget.Message(m) {
		return 0
	}
	return m.Tokens
}

// pastCall begins the ids of recalled calls. Those of an agent's own calls
// begin with a digit, and every recall numbers anew.
const pastCall = "past-"

func (m *mender) put(said model.Message) {
	m.out, m.live = append(m.out, said), said.Role
}

// answer matches results to the open calls. A message of results may have come
// in pieces.
func (m *mender) answer(results []model.ToolResult) {
	for _, r := range results {
		for i, id := range m.was {
			if id == r.Call && m.have[i] == nil {
				r.Call = m.open[i].ID
				m.have[i] = &r
				break
			}
		}
	}
	if !slices.Contains(m.have, nil) {
		m.flush()
	}
}

// flush answers every open call: with its result, or with the truth.
func (m *mender) flush() {
	if m.open == nil {
		return
	}
	results := make([]model.ToolResult, len(m.open))
	for i, c := range m.open {
		results[i] = model.ToolResult{Call: c.ID, Text: noResultText, Error: true}
		if m.have[i] != nil {
			results[i] = *m.have[i]
		}
	}
	answers := model.Message{Role: model.ToolRole, Results: results, Tokens: m.tokens}
	answers.Tokens = believed(answers)
	m.put(answers)
	m.open, m.was, m.have, m.tokens = nil, nil, nil, 0
}

// Past is the agent's history as it stands. Calls that are still open are
// answered with what is known of them now.
func (s State) Past() Past {
	p := Past{Form: PastForm, Run: s.Task.Run, Agent: s.Task.ID, Name: s.Task.Name, Goal: s.Task.Goal, System: s.Task.System,
		Model: s.route().Name, Turn: s.Turn, Usage: s.Usage, Messages: allUnshown(s.History), Journal: s.Journal.whole()}
	if len(s.Calls) > 0 {
		results := make([]model.ToolResult, len(s.Calls))
		for i, c := range s.Calls {
			results[i] = c.sofar()
		}
		p.Messages = append(p.Messages, model.Message{Role: model.ToolRole, Results: results})
	}
	if s.Fold.Upto > 0 {
		p.Fold = &PastFold{Upto: s.Fold.Upto, Text: s.Fold.Text, Deep: s.Fold.Deep}
	}
	return p
}

// Bound is an upper bound of the tokens of what is sent of it.
func (p Past) Bound() int64 {
	s := State{Recall: Recall{Messages: p.Messages, Fold: p.Fold}}.adopt()
	var n int64
	for _, m := range s.Prompt() {
		n += budget.Message(m)
	}
	return n
}

// sofar is the result of a call as far as it is known.
func (c Call) sofar() model.ToolResult {
	r := model.ToolResult{Call: c.ID, Error: true, Text: "no result yet: the call was under way when this history was taken"}
	switch c.Stage {
	case Ended:
		return c.Result
	case Pending, Starting:
		r.Text = "not run: the call had not begun when this history was taken"
	}
	return r
}

// Turned reports whether the turn n is complete in this State: its reply is in
// the transcript, and so is the result of each of its calls.
func (s State) Turned(n int) bool {
	if s.Phase == "" || s.Turn != n || len(s.Calls) > 0 {
		return false
	}
	for _, m := range slices.Backward(s.History) {
		if !m.Tombstone {
			return len(m.Calls) == 0
		}
	}
	return true
}

// handed is what a child begins with that is given its parent's history: what
// the model had read when it asked for the child.
func (s State) handed() []model.Message {
	s.History = s.History[:s.asked()]
	return allUnshown(s.Prompt())
}

// delegation asks for the child of a call, or says why it cannot.
func (s State) delegation(c Call) (e Delegate, why string) {
	var args delegateArgs
	decode(c.Args, &args)
	e = Delegate{Call: c.ID, Child: c.Child, Name: args.Agent, Goal: args.Task}
	e.SoftMS, e.HardMS = s.left()
	if s.Task.Manners.Kin {
		e.Background, e.Schema = args.Background, args.schemaText()
	}
	if !args.Fork {
		return e, ""
	}
	e.Past = s.handed()
	if w := weigh(e.Past...); !w.fits() {
		why = fmt.Sprintf("the history is %d messages of %d bytes, at most %d bytes can be handed on; it was not delegated. "+
			"Delegate without fork, and put what matters into the task", len(e.Past), w.bytes, PastPartBytes)
	}
	return e, why
}

// asked is how many messages there were before the calls that are open.
func (s State) asked() int {
	if len(s.Calls) == 0 {
		return len(s.History)
	}
	for i := len(s.History) - 1; i > 0; i-- {
		if m := s.History[i]; m.Role == model.Assistant && !m.Tombstone {
			return i
		}
	}
	return len(s.History)
}
