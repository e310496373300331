package eval

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// caseRecord is everything by which a trial is judged.
type caseRecord struct {
	result          event.Result
	parked          bool
	events          []event.Published
	runsByTool      map[string]int
	overcalledTools []string
	runs            int
	prompts         []string // requests to models
	replay          error
	verification    error
	unfired         []Point // of interventions that did not happen
}

// listDifferences returns the deviations from the expectation, one line each.
func (x Expected) listDifferences(r caseRecord) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if r.result.Reason != x.StopReason {
		detail := ""
		if r.result.Detail != "" {
			detail = " (" + r.result.Detail + ")"
		}
		add("stop_reason is %s%s, expected %s", r.result.Reason, detail, x.StopReason)
	}
	x.checkCounts(r, add)
	x.checkTexts(r, add)
	x.checkTrace(r, add)
	x.checkChildren(r, add)
	for _, name := range r.overcalledTools {
		add("%s ran %d times; the case has fewer answers", name, r.runsByTool[name])
	}
	for _, d := range r.unfired {
		add("during: there was no %s %s number %d", d.After, d.Of, d.Nth)
	}
	if r.replay != nil {
		add("replay differs: %v", r.replay)
	}
	if r.verification != nil {
		add("the logs break a rule: %v", r.verification)
	}
	return list
}

type reportFunc = func(format string, args ...any)

// checkCounts checks the counters.
func (x Expected) checkCounts(r caseRecord, add reportFunc) {
	if x.MaxToolCalls != nil && r.runs > *x.MaxToolCalls {
		add("tools ran %d times, expected at most %d", r.runs, *x.MaxToolCalls)
	}
	for _, name := range x.Forbidden {
		if n := r.runsByTool[name]; n > 0 {
			add("the forbidden tool %s ran %d times", name, n)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.ToolRuns)) {
		if n := r.runsByTool[name]; n != x.ToolRuns[name] {
			add("%s ran %d times, expected %d", name, n, x.ToolRuns[name])
		}
	}
	if x.Turns != nil && r.result.Turns != *x.Turns {
		add("there were %d turns, expected %d", r.result.Turns, *x.Turns)
	}
	if x.MaxTurns != nil && r.result.Turns > *x.MaxTurns {
		add("there were %d turns, expected at most %d", r.result.Turns, *x.MaxTurns)
	}
	if x.MaxTokens != nil && r.result.Budget.Used > *x.MaxTokens {
		add("%d tokens were used, expected at most %d", r.result.Budget.Used, *x.MaxTokens)
	}
	if x.Partial != nil && r.result.Partial != *x.Partial {
		add("partial is %t, expected %t", r.result.Partial, *x.Partial)
	}
	if x.Parked != nil && r.parked != *x.Parked {
		add("parked is %t, expected %t", r.parked, *x.Parked)
	}
}

// checkTexts checks the texts of the answer and of the requests to the model.
func (x Expected) checkTexts(r caseRecord, add reportFunc) {
	for _, text := range x.Answer {
		if !strings.Contains(r.result.Text, text) {
			add("the answer lacks %q: %s", text, clipText([]byte(r.result.Text)))
		}
	}
	for _, text := range x.NotAnswer {
		if strings.Contains(r.result.Text, text) {
			add("the answer contains %q: %s", text, clipText([]byte(r.result.Text)))
		}
	}
	if !strings.Contains(r.result.Detail, x.Detail) {
		add("the detail lacks %q: %s", x.Detail, clipText([]byte(r.result.Detail)))
	}
	if x.Question != "" {
		var asked []string
		for _, a := range r.result.Agents {
			if a.Query != nil {
				asked = append(asked, a.Query.Question)
			}
		}
		if !strings.Contains(strings.Join(asked, "\n"), x.Question) {
			add("the question lacks %q: asked was %q", x.Question, asked)
		}
	}
	hears := func(text string) bool {
		return slices.ContainsFunc(r.prompts, func(request string) bool { return strings.Contains(request, text) })
	}
	for _, text := range x.Told {
		if !hears(text) {
			add("no model was told %q", text)
		}
	}
	for _, text := range x.NotTold {
		if hears(text) {
			add("a model was told %q", text)
		}
	}
}

// checkTrace checks the events.
func (x Expected) checkTrace(r caseRecord, add reportFunc) {
	happened := map[string]bool{}
	for _, e := range r.events {
		happened[e.Kind] = true
	}
	has := func(word string) bool {
		if kinds, ok := eventAliases[word]; ok {
			return slices.ContainsFunc(kinds, func(k string) bool { return happened[k] })
		}
		return happened[word]
	}
	for _, word := range x.Events {
		if !has(word) {
			add("the trace has no %s", word)
		}
	}
	for _, word := range x.NoEvents {
		if has(word) {
			add("the trace has %s", word)
		}
	}
	if x.Transitions != nil {
		if why := rootTransitions(r.events); !slices.Equal(why, x.Transitions) {
			add("the transitions are %v, expected %v", why, x.Transitions)
		}
	}
	if x.Calls != nil {
		got := proposedCalls(r.events)
		for _, agent := range sortedKeysOfBoth(got, x.Calls) {
			if !slices.Equal(got[agent], x.Calls[agent]) {
				add("the calls of %s are %v, expected %v", agent, got[agent], x.Calls[agent])
			}
		}
	}
	if x.FirstTools != nil {
		if first := firstTools(r.events); !slices.Equal(first, x.FirstTools) {
			add("the first tools are %v, expected %v", first, x.FirstTools)
		}
	}
}

// proposedCalls are the tools that the agents proposed, in order, by the id of the agent.
func proposedCalls(events []event.Published) map[string][]string {
	all := map[string][]string{}
	for _, e := range events {
		if d, ok := e.Data.(event.ToolCall); ok && e.Kind == event.KindToolProposed {
			all[e.Agent] = append(all[e.Agent], d.Tool)
		}
	}
	return all
}

// rootTransitions returns the reasons why the turns of the root followed each other.
func rootTransitions(events []event.Published) []spec.Transition {
	why := []spec.Transition{}
	for _, e := range events {
		if d, ok := e.Data.(event.TurnStarted); ok && e.Agent == string(spec.Root) && d.Transition != "" {
			why = append(why, d.Transition)
		}
	}
	return why
}

// firstTools are those of the root's first turn that proposed any.
func firstTools(events []event.Published) []string {
	first, turn := []string{}, 0
	for _, e := range events {
		d, ok := e.Data.(event.ToolCall)
		if !ok || e.Kind != event.KindToolProposed || e.Agent != string(spec.Root) || turn != 0 && e.Turn != turn {
			continue
		}
		first, turn = append(first, d.Tool), e.Turn
	}
	return first
}

func sortedKeysOfBoth[T any](a, b map[string]T) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func (x Expected) checkChildren(r caseRecord, add reportFunc) {
	if x.Children == nil {
		return
	}
	if got := r.endedChildren(); !slices.Equal(got, x.Children) {
		add("the children are %v, expected %v", got, x.Children)
	}
}

func (r caseRecord) endedChildren() []Child {
	list := []Child{}
	for _, a := range r.result.Agents {
		if a.Parent != nil {
			list = append(list, Child{a.Name, a.Reason})
		}
	}
	return list
}
