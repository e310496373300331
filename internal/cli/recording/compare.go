package recording

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/approval"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/mailbox"
)

// Compare makes the command compare.
func (cs *Commands) Compare() *cobra.Command {
	return &cobra.Command{
		Use: "compare RUN|FILE RUN|FILE", Args: command.Exactly("RUN|FILE", "RUN|FILE"),
		Short: "Name the first difference of two runs; compare ends and costs",
		Long: `Compare two runs, such as a run and a fork of it (docs/fork.md). The command shows the first
difference between agents of the same id (a message, a reply, a call, a result or an answer),
and the stop reason, the cost and the answer of both runs. Times are not compared.

The logs are replayed without a model or a tool. The exit code is 0 if the comparison
succeeds, whether or not the runs differ.`,
		Example:     "  troupe compare 01k9z3 last\n  troupe compare ./before.jsonl ./after.jsonl -o json | jq .first_difference",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			var sides [2]comparedRun
			for i, text := range args {
				f, err := cs.Load(text)
				if err == nil {
					err = refuseRedacted(f)
				}
				if err == nil {
					sides[i], err = readCompared(f)
				}
				if err != nil {
					return err
				}
			}
			return cs.printComparison(compareRuns(sides[0], sides[1]))
		},
	}
}

// comparedRun is a run that is compared.
type comparedRun struct {
	Run        string  `json:"run_id"`
	Fork       string  `json:"fork,omitempty"` // the point of another run that it began at
	Model      string  `json:"model"`          // of the run, at its end
	Reason     string  `json:"stop_reason"`    // "": it has not ended
	Tokens     int64   `json:"tokens"`
	CostUSD    float64 `json:"total_cost_usd"`
	IsEstimate bool    `json:"cost_estimated,omitempty"` // of the cost
	Turns      int     `json:"num_turns"`
	Agents     int     `json:"agents"`
	Text       string  `json:"result"`

	steps map[string][]comparedStep // of each agent, in the order in which they are compared
}

// comparedStep is one thing that an agent was told, said, called or got.
type comparedStep struct {
	turn  int
	order int
	call  string
	kind  string
	text  string
	after time.Duration // since the start of the run
}

// compare orders steps within a turn by their kind and call: tools that run side by side end in any order.
func (s comparedStep) compare(o comparedStep) int {
	return cmp.Or(cmp.Compare(s.turn, o.turn), cmp.Compare(s.order, o.order), cmp.Compare(s.call, o.call))
}

// difference is the first difference of two runs.
type difference struct {
	Agent string `json:"agent"`
	Turn  int    `json:"turn"`
	Kind  string `json:"kind"`
	Call  string `json:"call,omitempty"`
	// A and B are what the runs have there; "": nothing.
	A string `json:"a"`
	B string `json:"b"`
}

// comparison is what the command prints.
type comparison struct {
	A     comparedRun `json:"a"`
	B     comparedRun `json:"b"`
	First *difference `json:"first_difference"`
	Text  string      `json:"result_diff,omitempty"`
}

// comparedKinds are the kinds of events that are compared, in the order of a turn.
var comparedKinds = []string{event.KindPolicyApplied, event.KindPermissionsChanged, event.KindBudgetChanged, event.KindAgentStarted, event.KindContextChanged, event.KindBacklogPosted, event.KindBacklogClaimed, event.KindBacklogReturned, event.KindBacklogDone, event.KindBacklogDropped, event.KindMessageUser, event.KindMessageAgent, event.KindMessageAssistant, event.KindToolProposed,
	event.KindQueryAsked, event.KindQueryAnswered, event.KindToolFinished, event.KindStopVetoed, event.KindAgentFinished}

func readCompared(f runfile.File) (c comparedRun, err error) {
	r := replay.Logs(f.Entries, replay.Options{Events: true})
	if r.Super.Phase == "" {
		return c, exit.UsageError("troupe verify "+f.Header.Run+" shows what is wrong", "%s: %v", f.Header.Run, replay.ErrNoLog)
	}
	c = comparedRun{Run: f.Header.Run, Fork: r.Super.Run.Fork, Model: r.Super.Run.Model.Name, Tokens: r.Result.Budget.Used, CostUSD: r.Result.CostUSD, IsEstimate: r.Result.CostEstimated, Turns: r.Result.Turns, Agents: r.Super.Count(),
		Text: r.Result.Text, steps: map[string][]comparedStep{}}
	if r.Ended {
		c.Reason = string(r.Result.Reason)
	}
	began, notes := time.UnixMilli(r.Super.Began), forkNotes(f)
	for _, e := range r.Events {
		order := slices.Index(comparedKinds, e.Kind)
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
		slices.SortStableFunc(list, comparedStep.compare)
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

func newStep(e event.Published, began time.Time) (comparedStep, error) {
	data, err := json.Marshal(e.Data)
	var fields map[string]any
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	if err != nil {
		return comparedStep{}, fmt.Errorf("compare: event %s: %w", e.ID, err)
	}
	for key := range fields {
		if slices.Contains(unstable, key) || strings.HasSuffix(key, "_ms") {
			delete(fields, key)
		}
	}
	call, _ := fields["call"].(string)
	text, err := json.Marshal(fields) // keys in order
	at, failed := time.Parse(time.RFC3339, e.TS)
	query, _ := fields["query"].(string)
	return comparedStep{turn: turnOfQuery(query, e.Turn), call: cmp.Or(call, query), kind: e.Kind, text: string(text), after: at.Sub(began)}, cmp.Or(err, failed)
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

// compareRuns finds the first difference of two runs: of those of all agents, the one that came first.
func compareRuns(a, b comparedRun) comparison {
	c := comparison{A: a, B: b}
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

func agentsOfBoth(a, b comparedRun) (ids []string) {
	for _, side := range []comparedRun{a, b} {
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
func firstStep(a, b []comparedStep) (d difference, at time.Duration, differs bool) {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return difference{Turn: b[i].turn, Kind: b[i].kind, Call: b[i].call, B: b[i].text}, b[i].after, true
		case i >= len(b):
			return difference{Turn: a[i].turn, Kind: a[i].kind, Call: a[i].call, A: a[i].text}, a[i].after, true
		case a[i].compare(b[i]) < 0:
			return difference{Turn: a[i].turn, Kind: a[i].kind, Call: a[i].call, A: a[i].text}, a[i].after, true
		case a[i].compare(b[i]) > 0:
			return difference{Turn: b[i].turn, Kind: b[i].kind, Call: b[i].call, B: b[i].text}, b[i].after, true
		case a[i].text != b[i].text:
			return difference{Turn: a[i].turn, Kind: a[i].kind, Call: a[i].call, A: a[i].text, B: b[i].text}, min(a[i].after, b[i].after), true
		}
	}
	return d, 0, false
}

// comparedTextMax is the most bytes of each side of a difference in a terminal.
const comparedTextMax = 400

func (cs *Commands) printComparison(c comparison) error {
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(c)
	}
	var lines []string
	for _, side := range []comparedRun{c.A, c.B} {
		line := fmt.Sprintf("%s: %s, %s, %s, %d tokens, %s", side.Run, cmp.Or(side.Reason, "not ended"), term.FormatCount(side.Agents, "agent"), term.FormatCount(side.Turns, "turn"), side.Tokens, term.FormatUSD(side.CostUSD, side.IsEstimate))
		if c.A.Model != c.B.Model {
			line += ", model " + side.Model
		}
		if side.Fork != "" {
			line += ", a fork of " + side.Fork
		}
		lines = append(lines, term.CleanLine(line))
	}
	if c.First == nil {
		lines = append(lines, "no difference")
	} else {
		where := fmt.Sprintf("first difference: %s, turn %d, %s", c.First.Agent, c.First.Turn, c.First.Kind)
		if c.First.Call != "" {
			where += " " + c.First.Call
		}
		lines = append(lines, term.CleanLine(where))
		for _, side := range []struct{ mark, text string }{{"- ", c.First.A}, {"+ ", c.First.B}} {
			lines = append(lines, side.mark+term.CleanLine(clip.Text(cmp.Or(side.text, "nothing"), comparedTextMax)))
		}
	}
	if c.Text != "" {
		lines = append(lines, strings.Split(strings.TrimSuffix(c.Text, "\n"), "\n")...)
	}
	return cs.Console.PrintLines(lines)
}
