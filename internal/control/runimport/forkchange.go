package runimport

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/permission/person"
	"github.com/troupe-run/troupe/internal/policy"
	"github.com/troupe-run/troupe/internal/refuse"
	recorded "github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/internal/suggest"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// forkChanges is what is changed at the point of a fork.
type forkChanges struct {
	request  client.RunRequest
	point    forkPoint
	original *recorded.Run
	policy   *supervisor.Policy
	model    *agent.ModelSet
	nano     int64 // limit in money that the model needs; 0: the one that the run has
	atMS     int64
}

// ModelChooser returns the model with which a fork of a run goes on, and the limit in money that it
// needs; nil and 0: those of the run.
type ModelChooser func(o supervisor.Opened, named client.RunRequest) (set *agent.ModelSet, nano int64, err error)

func newForkChanges(r client.RunRequest, p forkPoint, original *recorded.Run, at int64, choose ModelChooser) (forkChanges, error) {
	what := forkChanges{request: r, point: p, original: original, atMS: at}
	if r.Policy != nil {
		compiled, err := policy.Compile(*r.Policy)
		if err != nil {
			return what, &client.Error{Code: client.CodeBad, Text: err.Error(), Hint: refuse.PolicyHint}
		}
		what.policy = &compiled
	}
	if err := what.checkIsRead(); err != nil {
		return what, err
	}
	if choose != nil {
		var err error
		if what.model, what.nano, err = choose(original.Super.Run, r); err != nil {
			return what, err
		}
	}
	if r.MaxBudgetUSD > 0 && what.model == nil && !original.Super.Summary(true).Priced {
		return what, &client.Error{Code: client.CodeBad, Text: "the price of " + original.Super.Run.Model.Name + " is unknown, so a limit in money cannot be kept", Hint: "limit the tokens"}
	}
	return what, nil
}

// checkIsRead refuses a prompt for an agent that has handed off its conversation: it makes no request
// that would hold the prompt.
func (w forkChanges) checkIsRead() error {
	caller, _ := w.original.Super.Member(spec.ID(w.point.agent))
	holder := supervisor.HolderOf(w.original.Super, caller)
	if s := w.original.Agents[caller.ID]; len(w.request.Layers) > 0 && s.Phase == agent.Done {
		return badFile("fork it at an earlier turn",
			"%s: %s has ended and makes no request that would hold the layers", w.point, caller.ID)
	}
	if w.request.Prompt == "" && len(w.request.Layers) == 0 || holder.ID == caller.ID {
		return nil
	}
	return badFile(fmt.Sprintf("fork the agent that has it: %s@%s:TURN; or %s before its handoff", w.point.run, holder.ID, caller.ID),
		"%s: %s has handed off the conversation to %s (%s) and reads no prompt", w.point, caller.ID, holder.ID, holder.Name)
}

// change puts the prompt before the last entry of the agent, which is the point, and changes what that entry says.
func (w forkChanges) change(cut []mailbox.Message) ([]mailbox.Message, error) {
	at := mailbox.At(w.point.run, w.point.agent)
	last := -1
	for i, m := range cut {
		if m.To.Bare() == at {
			last = i
		}
	}
	entry, err := w.changeEntry(cut[last])
	if err != nil {
		return nil, err
	}
	changed := slices.Clone(cut[:last])
	insert := func(key string, fact interface{ Kind() string }) {
		m, failed := w.command(cut[last].To, key, fact)
		m.At, m.Nanos = cut[last].At, cut[last].Nanos
		changed, err = append(changed, m), errors.Join(err, failed)
	}
	s := w.original.Agents[spec.ID(w.point.agent)]
	// before the mark: a reply that follows is of the model before
	if set := w.modelOf(s.Task); set != nil && s.Phase != agent.Done {
		insert("model", *set)
	}
	if len(w.request.Layers) > 0 && s.Phase != agent.Done {
		insert("context", agent.ContextSet{Layers: w.layers(), By: byFork})
	}
	if s.Phase != agent.Done { // before the last entry, so that the next request to its model holds the note
		mark := w.mark(s)
		mark.First = w.point.point == "0"
		insert("mark", mark)
	}
	if w.request.Prompt != "" {
		insert("prompt", agent.Steered{Text: w.request.Prompt})
	}
	return append(append(changed, entry...), cut[last+1:]...), err
}

// layers are the layers of the request, as the agent of the point has them.
func (w forkChanges) layers() []spec.Layer {
	layers := slices.Clone(w.request.Layers)
	for i := range layers {
		layers[i].Agent, layers[i].Owner = spec.ID(w.point.agent), byFork
	}
	return layers
}

// command makes the entry of a request that the fork makes. Its id names the fork, because a
// fork of a fork has it, too.
func (w forkChanges) command(to mailbox.Address, key string, fact interface{ Kind() string }) (mailbox.Message, error) {
	return command(to, "fork-"+key+"-"+w.request.RunID, fact, w.atMS)
}

// command makes the entry of a request with an id.
func command(to mailbox.Address, id string, fact interface{ Kind() string }, atMS int64) (mailbox.Message, error) {
	body, err := mailbox.Marshal(fact)
	if err != nil {
		return mailbox.Message{}, err
	}
	data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: id, Kind: fact.Kind(), Body: body}}})
	return mailbox.Message{To: to, At: atMS, Data: data}, err
}

var errNothingToChange = errors.New("there is nothing to change")

// changeEntry returns the entries that take the place of the entry at the point: with Instead it says something else.
func (w forkChanges) changeEntry(m mailbox.Message) ([]mailbox.Message, error) {
	if w.request.Instead == "" {
		return []mailbox.Message{m}, nil
	}
	e, err := mailbox.Decode(m.Data)
	if err != nil {
		return nil, err
	}
	if err := w.checkQuorum(); err != nil {
		return nil, err
	}
	items, found := slices.Clone(e.Items), false
	for i, item := range items {
		body, changed, err := w.changeFact(item)
		if err != nil {
			return nil, err
		}
		if changed && item.Kind == (agent.Returned{}).Kind() && e.From.Agent() == mailbox.Super {
			return nil, w.refuseInstead()
		}
		if changed {
			items[i].Body, found = body, true
		}
	}
	if !found {
		return w.answerOpen(m)
	}
	e.Items = items
	m.Data, err = mailbox.Encode(e)
	return []mailbox.Message{m}, err
}

// checkQuorum refuses to approve a call that two people must approve: who starts the fork may be one of them already.
// The permissions say so of a question that is answered at the point, which the agent has no longer.
func (w forkChanges) checkQuorum() error {
	s := w.original.Agents[spec.ID(w.point.agent)]
	q := s.Suspended.Question
	need := 1
	for _, p := range s.Task.Permissions {
		need = max(need, p.Approvals)
	}
	if s.Phase == agent.Waiting && q.Query == w.point.point {
		need = q.Approvals
	}
	decision, _ := parseInstead(w.request.Instead)
	if isCall := !strings.Contains(w.point.point, "."); decision != spec.Approve || need < 2 || isCall {
		return nil
	}
	return badFile("write deny, skip or a text; or fork while the question is open, without an answer, and two people approve it in the fork",
		"%s: the call needs the approval of %d different people, and a fork is none of them", w.point, need)
}

// refuseInstead refuses another result of a call that the supervisor has answered: its log says what it has answered.
func (w forkChanges) refuseInstead() error {
	child := w.point.agent + "-" + w.point.point
	if _, begun := w.original.Super.Member(spec.ID(child)); begun {
		return badFile("fork the child: "+w.point.run+"@"+child+":TURN",
			"%s: the result of a delegation cannot be replaced", w.point)
	}
	return badFile("fork at a turn before the call, with a prompt",
		"%s: the answer of the supervisor cannot be replaced", w.point)
}

// changeFact changes the result of the call, or the answer to the question, that the point names.
func (w forkChanges) changeFact(item mailbox.Item) (body []byte, changed bool, err error) {
	switch item.Kind {
	case agent.Returned{}.Kind():
		body, err = runfile.ChangeBody(item.Body, func(f *agent.Returned) {
			if changed = f.Call == w.point.point; changed {
				text, fails := strings.CutPrefix(w.request.Instead, insteadError)
				*f = agent.Returned{Call: f.Call, Attempt: f.Attempt, Text: text, Error: fails, TookMS: f.TookMS, WorkedMS: f.WorkedMS}
			}
		})
	case agent.Answered{}.Kind():
		body, err = runfile.ChangeBody(item.Body, func(f *agent.Answered) {
			if changed = f.Query == w.point.point; changed {
				f.Decision, f.Text = parseInstead(w.request.Instead)
				f.By, f.Always = byFork, ""
			}
		})
	}
	return body, changed, err
}

const byFork = person.ByFork

// insteadError begins an Instead with which the call of the point fails.
const insteadError = "error: "

// answerOpen answers the question that is open at the point.
func (w forkChanges) answerOpen(m mailbox.Message) ([]mailbox.Message, error) {
	s := w.original.Agents[spec.ID(w.point.agent)]
	q := s.Suspended.Question
	if s.Phase != agent.Waiting || q.Query != w.point.point {
		return nil, fmt.Errorf("%w: it is neither a result of a call nor a question; at a turn, the prompt of the fork says something else", errNothingToChange)
	}
	decision, text := parseInstead(w.request.Instead)
	answer, err := w.command(m.To, "answer", agent.Answered{Query: q.Query, Decision: decision, Text: text, Digest: q.Digest, By: byFork})
	answer.At, answer.Nanos = m.At, m.Nanos
	return []mailbox.Message{m, answer}, err
}

// parseInstead reads an answer: a decision, or a text.
func parseInstead(text string) (spec.Decision, string) {
	if d := spec.Decision(text); d != spec.TextOnly && slices.Contains(bounds.Decisions, d) {
		return d, ""
	}
	return spec.TextOnly, text
}

// checkInstead refuses a word that is almost a decision: as a text it would be the result of the
// call that is asked about.
func checkInstead(text string) error {
	for _, d := range bounds.Decisions {
		if d != spec.TextOnly && text != string(d) && suggest.Misspells(text, string(d)) {
			return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("instead %.40q is almost the decision %s", text, d), Hint: "write " + string(d) + ", or a longer text"}
		}
	}
	return nil
}

// mark tells an agent that what it has under way is its original's.
func (w forkChanges) mark(s agent.State) agent.Forked {
	f := agent.Forked{Of: w.point.String()}
	if s.Task.Workspace != "" {
		f.Note = fmt.Sprintf("This run is a copy of an earlier one. Your tools now work in the directory %s, a copy of %s, and nowhere else.", w.request.Dir, s.Task.Workspace)
	}
	return f
}

// marks makes the entries that end the copied logs.
func (w forkChanges) marks(logs *forkedLogs) (entries []mailbox.Message, err error) {
	add := func(to mailbox.Address, key string, fact interface{ Kind() string }) {
		m, failed := w.command(to, key, fact)
		entries, err = append(entries, m), errors.Join(err, failed)
	}
	super := mailbox.At(logs.to, mailbox.Super)
	if w.policy != nil {
		add(super, "policy", supervisor.PolicySet{Policy: *w.policy, By: byFork})
	}
	r := w.request
	if limits := (spec.RunLimits{Tokens: r.MaxTokens, Nano: cmp.Or(int64(r.MaxBudgetUSD*budget.NanoPerUSD), w.nano), Calls: r.MaxToolCalls}); limits != (spec.RunLimits{}) {
		add(super, "limits", supervisor.LimitSet{Limits: limits, Patch: true, By: byFork})
	}
	if w.model != nil {
		add(super, "model", *w.model)
	}
	below := slices.DeleteFunc(w.layers(), func(l spec.Layer) bool { return !l.Below })
	if len(below) > 0 { // the agents below get them from the supervisor
		add(super, "context", supervisor.ContextSet{Agent: spec.ID(w.point.agent), Layers: below, By: byFork})
	}
	w.original.Super.Members(func(m supervisor.Member) {
		s, known := w.original.Agents[m.ID]
		to, isPoint := mailbox.At(logs.to, string(m.ID)).In(m.NodePool), string(m.ID) == w.point.agent
		if known && s.Phase != "" && s.Phase != agent.Done && !isPoint {
			add(to, "mark", w.mark(s))
		}
		task := s.Task
		if !known || s.Phase == "" { // its task is on the way
			task.Name = m.Name
		}
		if set := w.modelOf(task); set != nil && !m.Done && s.Phase != agent.Done && !isPoint {
			add(to, "model", *set)
		}
	})
	return entries, err
}

// modelOf returns the other model for an agent; nil: it keeps its own. An agent whose definition names a model keeps
// it, and so does one that has another model for its summaries.
func (w forkChanges) modelOf(t spec.Task) *agent.ModelSet {
	o := w.original.Super.Run
	if i := slices.IndexFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == t.Name }); w.model == nil || i >= 0 && o.Definitions[i].Model != nil {
		return nil
	}
	set := *w.model
	if own, run := t.LoopOptions.Context.Model, o.LoopOptions.Context.Model; own != nil && (run == nil || own.Name != run.Name) {
		set.Summaries = own
	}
	return &set
}

// modelNotes says which agents of a fork keep a model of their own although the request names one.
func modelNotes(o supervisor.Opened, named string) (notes []string) {
	for _, d := range o.Definitions {
		if named != "" && d.Model != nil && len(notes) < modelNotesMax {
			notes = append(notes, fmt.Sprintf("agent %s keeps the model of its definition: %s", d.Name, d.Model.Name))
		}
	}
	return notes
}

// modelNotesMax is the most agents that are named.
const modelNotesMax = 8
