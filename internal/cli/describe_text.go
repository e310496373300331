package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/supervisor"
)

// describeText draws a described run for people.
func (a *runsCommands) describeText(d described) []string {
	p := a.console.page()
	if d.Description == nil {
		p.pairs([2]string{"run", d.RunID}, [2]string{"state", state(d)}, [2]string{"title", d.Title}, [2]string{"model", d.Model},
			[2]string{"log", "gone, or not yet there"})
		return p.lines
	}
	opened(p, d)
	p.head("Behaviour")
	p.pairs(manners(d.Description.LoopOptions)...)
	for _, def := range d.Description.Definitions {
		if own := ownManners(def.LoopOptions); len(own) > 0 {
			p.head("Behaviour of " + term.Line(def.Name) + ", over that")
			p.pairs(own...)
		}
	}
	p.head("Agents it may have")
	p.table(left("NAME", "MODEL", "TOOLS", "DELEGATES TO"), kindsOf(d.Description))
	p.head("Tools")
	p.table(left("NAME", "CLASS", "DESCRIPTION"), toolRows(d.Description.Tools))
	p.head("Report")
	reportRows(p, d)
	if len(d.Questions) > 0 {
		p.head("Open questions")
		for _, q := range d.Questions {
			p.pairs([2]string{term.Line(q.Agent), q.Question + "\ntroupe answer " + d.RunID + " " + q.Query + " approve|deny|skip|TEXT"})
		}
	}
	warnings(p, d)
	if failed(d) && len(d.Description.Journal) > 0 {
		p.head("Journal")
		p.pairs(journal(d.Description.Journal)...)
	}
	return p.lines
}

// failed reports whether the run failed: then a user wants to know how far it came.
func failed(d described) bool { return d.Result != nil && d.Result.IsError }

func state(d described) string {
	text := stateOf(d.RunInfo)
	if r := d.Result; r != nil && r.Reason != "" {
		text += ": " + string(r.Reason)
		if r.Partial {
			text += ", partial"
		}
		if r.Detail != "" {
			text += " (" + term.Line(r.Detail) + ")"
		}
	}
	if d.Started != "" {
		text += fmt.Sprintf(", started %s ago", age(d.Started))
	}
	return text
}

// opened renders the configuration that the run was opened with.
func opened(p *page, d described) {
	o := d.Description
	m := o.Model.Name
	if o.Model.Why != "" {
		m += " (" + o.Model.Why + ")"
	}
	conversation := ""
	if d.Result != nil {
		conversation = d.Result.Conversation
	}
	p.pairs([2]string{"run", d.RunID}, [2]string{"state", state(d)}, [2]string{"goal", o.Goal}, [2]string{"caller", o.Caller}, [2]string{"conversation", conversation}, [2]string{"trace", o.Trace},
		[2]string{"constraints", strings.Join(o.Constraints, "\n")}, [2]string{"criteria", strings.Join(o.Criteria, "\n")},
		[2]string{"directory", o.Workspace}, [2]string{"may write", strings.Join(o.Writable, ", ")},
		[2]string{"model", m}, [2]string{"price", priceText(o.Model.Price)}, [2]string{"billing", o.Model.Bound}, [2]string{"window", windowText(o.Model.Window)},
		[2]string{"first agent", fmt.Sprintf("%s, at most %d turns", o.Root, o.RootTurns)},
		[2]string{"limits", limitsText(o.Limits, o.AgentLimits)},
		[2]string{"policy", policyText(o.Policy)})
}

func windowText(tokens int64) string {
	if tokens == 0 {
		return "unknown"
	}
	return term.Tokens(tokens) + " tokens"
}

// priceText is a price in dollars per million tokens.
func priceText(p budget.Price) string {
	switch {
	case p.Allowed:
		return "unknown, and allowed: the limit in money does not hold for it"
	case !p.Known:
		return "unknown"
	case p == (budget.Price{Known: true}):
		return "free"
	}
	text := fmt.Sprintf("$%s in, $%s out, $%s cache read, $%s cache write a million tokens", cents(p.Input), cents(p.Output),
		cents(p.CacheRead), cents(p.CacheWrite))
	if p.Long.Above > 0 {
		text += fmt.Sprintf("; $%s in, $%s out where a prompt has more than %s", cents(p.Long.Input), cents(p.Long.Output), term.Tokens(p.Long.Above))
	}
	return text
}

// cents turns billionths of a dollar a token into dollars a million, with two
// decimals at least.
func cents(nano int64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.3f", float64(nano)/1e3), "0")
}

func limitsText(l spec.RunLimits, each spec.Limits) string {
	parts := []string{"no limit of tokens"}
	if l.Tokens > 0 {
		parts[0] = term.Tokens(l.Tokens) + " tokens"
	}
	if l.Nano > 0 {
		parts = append(parts, usd(l.Nano))
	}
	return strings.Join(append(parts, fmt.Sprintf("%d tool calls", l.Calls), fmt.Sprintf("%d deep", l.Depth), fmt.Sprintf("%d children each", l.Children),
		fmt.Sprintf("%d agents", l.Agents), fmt.Sprintf("%d output tokens a call", each.Output), took(each.SoftMS)+" soft and "+took(each.HardMS)+" hard"), ", ")
}

func policyText(p supervisor.Policy) string {
	if len(p.Rules) == 0 {
		return fmt.Sprintf("version %d, no rules", p.Version)
	}
	names := make([]string, len(p.Rules))
	for i, r := range p.Rules {
		names[i] = r.Name + " (on " + r.On + ")"
	}
	return fmt.Sprintf("version %d: %s", p.Version, strings.Join(names, ", "))
}

func usd(nano int64) string { return fmt.Sprintf("$%.4f", float64(nano)/1e9) }

func took(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return term.Took(time.Duration(ms) * time.Millisecond)
}

// kindsOf are the definitions of a run as rows.
func kindsOf(o *client.Description) [][]string {
	var rows [][]string
	for _, d := range o.Definitions {
		rows = append(rows, []string{term.Line(d.Name), term.Line(cmp.Or(d.Model, "the run's")), wordsOr(d.Tools, "all of its parent's"),
			wordsOr(d.Delegates, "any")})
	}
	return rows
}

// wordsOr returns the words, or the meaning of a missing list.
func wordsOr(list []string, without string) string {
	switch {
	case list == nil:
		return without
	case len(list) == 0:
		return "none"
	}
	return term.Line(strings.Join(list, " "))
}

func toolRows(tools []client.ToolInfo) [][]string {
	var rows [][]string
	for _, t := range tools {
		text := t.Description
		if t.Command != "" {
			text = "`" + t.Command + "`: " + text
		}
		rows = append(rows, []string{term.Line(t.Name), term.Line(string(t.Class)), term.Line(text)})
	}
	return rows
}

// reportRows is the run report: each agent, and the tree.
func reportRows(p *page, d described) {
	r := d.Result
	known := d.Description.Model.Price.Known
	var rows [][]string
	calls := 0
	for _, m := range r.Agents {
		calls += m.Calls
		end := string(m.Reason)
		if m.Phase != "done" {
			end = m.Phase
		}
		rows = append(rows, []string{term.Line(string(m.ID)), term.Line(m.Name), fmt.Sprint(m.Turns), fmt.Sprint(m.Calls), term.Tokens(m.Tokens),
			cost(m.CostUSD, known), took(m.ModelMS), took(m.ToolMS), term.Line(end)})
	}
	rows = append(rows, []string{"tree", countOf(len(r.Agents), "agent"), fmt.Sprint(r.Turns), fmt.Sprint(calls), term.Tokens(r.Budget.Used),
		cost(r.CostUSD, known), took(r.ModelMS), took(r.ToolMS), term.Line(string(r.Reason))})
	p.table(slices.Concat(left("ID", "AGENT"), right("TURNS", "CALLS", "TOKENS", "COST", "MODEL", "TOOLS"), left("END")), rows)
	p.line(fmt.Sprintf("%s in all; tokens: %s in, %s out, %s read from a cache, %s written to one", took(r.DurationMS), term.Tokens(r.Usage.Input),
		term.Tokens(r.Usage.Output), term.Tokens(r.Usage.CacheRead), term.Tokens(r.Usage.CacheCreation)))
}

// warningsShown is how many lines a description has for them.
const warningsShown = 12

func warnings(p *page, d described) {
	if len(d.events) == 0 {
		return
	}
	p.head("Warnings")
	list := d.events
	if n := len(list) - warningsShown; n > 0 {
		list = list[n:]
		p.line(p.style.Dim(fmt.Sprintf("… %d before: troupe events %s --kind %s", n, d.RunID, d.events[0].Kind)))
	}
	for _, e := range list {
		p.line(term.PlainLine(p.style, e, e.Agent))
	}
}

// journal is a run journal as names and what they say.
func journal(raw json.RawMessage) [][2]string {
	var j agent.Journal
	if json.Unmarshal(raw, &j) != nil {
		return [][2]string{{"journal", string(raw)}}
	}
	lines := func(list []string) string { return strings.Join(list, "\n") }
	return [][2]string{{"objective", j.Objective}, {"state", j.CurrentState}, {"findings", lines(j.Findings)}, {"decisions", lines(j.Decisions)},
		{"artifacts", lines(j.Artifacts)}, {"open questions", lines(j.OpenQuestions)}, {"blockers", lines(j.Blockers)}, {"next", j.NextAction}}
}
