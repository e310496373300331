package runs

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
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/supervisor"
)

// drawDescription draws a described run for people.
func (cs *Commands) drawDescription(d description) []string {
	p := cs.Console.NewPage()
	if d.Description == nil {
		p.AddPairs([2]string{"run", d.RunID}, [2]string{"state", describedState(d)}, [2]string{"title", d.Title}, [2]string{"model", term.ModelName(d.Model)},
			[2]string{"log", "missing, or not written yet"})
		return p.Lines
	}
	conversation := ""
	if d.Result != nil {
		conversation = d.Result.Conversation
	}
	addConfiguration(p, d.Description, [][2]string{{"run", d.RunID}, {"state", describedState(d)}}, d.Owner, conversation)
	p.AddHeading("Report")
	addReport(p, d)
	if n := d.Description.Backlog; n != nil {
		p.AddLine(fmt.Sprintf("backlog: %d open, %d claimed, %d done, %d dropped: troupe backlog %s", n["open"], n["claimed"], n["done"], n["dropped"], d.RunID))
	}
	if len(d.Questions) > 0 {
		p.AddHeading("Open questions")
		for _, q := range d.Questions {
			p.AddPairs([2]string{term.CleanLine(q.Agent), q.Question + "\ntroupe answer " + d.RunID + " " + term.CleanLine(q.Query) + " approve|deny|skip|TEXT --agent " + term.CleanLine(q.Agent)})
		}
	}
	addWarnings(p, d)
	if hasFailed(d) && len(d.Description.Journal) > 0 {
		p.AddHeading("Journal")
		p.AddPairs(journalPairs(d.Description.Journal)...)
	}
	return p.Lines
}

// hasFailed reports whether the run failed: then a user wants to know how far it came.
func hasFailed(d description) bool { return d.Result != nil && d.Result.IsError }

func describedState(d description) string {
	text := stateText(d.RunInfo)
	if r := d.Result; r != nil && r.Reason != "" {
		text += ": " + term.FormatReason(r.Reason)
		if r.Partial {
			text += ", partial"
		}
		if r.Detail != "" {
			text += " (" + term.QuestionGist(r.Ending()) + ")"
		}
	}
	if d.Started != "" {
		text += fmt.Sprintf(", started %s ago", console.Age(d.Started))
	}
	return text
}

// DrawPreview draws what a run would be opened with.
func DrawPreview(c *console.Console, a client.RunAccepted) []string {
	p, state := c.NewPage(), "not begun: this was a dry run"
	if a.Preview.StopReason != "" {
		state += "; the run would end before its first call: " + term.FormatReason(a.Preview.StopReason)
		if a.Preview.Detail != "" {
			state += " (" + term.CleanLine(a.Preview.Detail) + ")"
		}
	}
	addConfiguration(p, &a.Preview.Description, [][2]string{{"state", state}}, "", a.Conversation)
	return p.Lines
}

// addConfiguration renders the configuration of a run as fixed at its start, after the pairs of head.
func addConfiguration(p *console.Page, o *client.Description, head [][2]string, owner, conversation string) {
	m := term.ModelName(o.Model.Name)
	if o.Model.Why != "" {
		m += " (" + o.Model.Why + ")"
	}
	p.AddPairs(append(head, [2]string{"goal", o.Goal}, [2]string{"owner", owner}, [2]string{"caller", o.Caller}, [2]string{"priority", o.Priority}, [2]string{"conversation", conversation}, [2]string{"trace", o.TraceID},
		[2]string{"constraints", strings.Join(o.Constraints, "\n")}, [2]string{"criteria", strings.Join(o.Criteria, "\n")}, [2]string{"fails if", strings.Join(o.FailIf, "\n")},
		[2]string{"directory", o.Workspace}, [2]string{"may write", writableText(*o)},
		[2]string{"model", m}, [2]string{"price", priceText(o.Model.Price)}, [2]string{"cost bound", boundText(o.Model)}, [2]string{"window", windowText(o.Model.Window)},
		[2]string{"root agent", fmt.Sprintf("%s, at most %d turns", o.Root, o.RootTurns)},
		[2]string{"limits", limitsText(o.Limits, o.AgentLimits, o.ParkMS)},
		[2]string{"policy", policyText(o.Policy)})...)
	p.AddHeading("Loop options")
	p.AddPairs(loopOptionPairs(o.LoopOptions)...)
	for _, def := range o.Definitions {
		if own := ownLoopOptionPairs(def.LoopOptions); len(own) > 0 {
			p.AddHeading("Loop options of " + term.CleanLine(def.Name) + " (override those above)")
			p.AddPairs(own...)
		}
	}
	p.AddHeading("Agents")
	p.AddTable(console.Left("NAME", "MODEL", "TOOLS", "DELEGATES TO", "HANDS OFF TO"), definitionRows(o))
	p.AddHeading("Tools")
	p.AddTable(console.Left("NAME", "CLASS", "DESCRIPTION"), toolRows(offeredTools(o)))
}

// writableText names the files that agents may write without approval: in the directory, so that without one they may
// write none.
func writableText(o client.Description) string {
	if o.Workspace == "" || len(o.Writable) == 0 {
		return ""
	}
	return strings.Join(o.Writable, ", ") + " without asking"
}

// boundText says whether a model call can cost more than is reserved for it.
func boundText(m client.ModelInfo) string {
	switch {
	case m.Why == provider.DefinedByProgram:
		return "" // the program that defines the model knows it
	case m.Bound == string(provider.Exact):
		return "exact: a call costs at most what is reserved for it"
	case m.Bound == string(provider.Documented):
		return "documented: by the provider's rules, a call costs at most what is reserved for it"
	case m.Bound == string(provider.None):
		return "none: no maximum is published, so a call may cost more than is reserved for it"
	}
	return m.Bound
}

func windowText(tokens int64) string {
	if tokens == 0 {
		return "unknown"
	}
	return term.FormatTokens(tokens) + " tokens"
}

// priceText is a price in dollars per million tokens.
func priceText(p budget.Price) string {
	switch {
	case p.Allowed:
		return "unknown, and allowed: the money limit does not cover it"
	case !p.Known:
		return "unknown"
	case p == (budget.Price{Known: true}):
		return "free"
	}
	text := fmt.Sprintf("$%s in, $%s out, $%s cache read, $%s cache write per million tokens", console.DollarsPerMillion(p.Input), console.DollarsPerMillion(p.Output),
		console.DollarsPerMillion(p.CacheRead), console.DollarsPerMillion(p.CacheWrite))
	if p.Long.Above > 0 {
		text += fmt.Sprintf("; $%s in, $%s out for prompts above %s", console.DollarsPerMillion(p.Long.Input), console.DollarsPerMillion(p.Long.Output), term.FormatTokens(p.Long.Above))
	}
	return text
}

func limitsText(l spec.RunLimits, each spec.Limits, parkMS int64) string {
	parts := []string{"no token limit"}
	if l.Tokens > 0 {
		parts[0] = term.FormatTokens(l.Tokens) + " tokens"
	}
	if l.Nano > 0 {
		parts = append(parts, term.FormatUSD(float64(l.Nano)/budget.NanoPerUSD, false))
	}
	parts = append(parts, fmt.Sprintf("%d tool calls", l.Calls), fmt.Sprintf("depth %d", l.Depth), fmt.Sprintf("%d children per agent", l.Children),
		fmt.Sprintf("%d agents", l.Agents), fmt.Sprintf("%d output tokens per call", each.Output), console.Took(each.SoftMS)+" soft and "+console.Took(each.HardMS)+" hard")
	if parkMS > 0 {
		parts = append(parts, console.Took(parkMS)+" parked")
	}
	return strings.Join(parts, ", ")
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

// definitionRows are the definitions of a run as rows.
func definitionRows(o *client.Description) [][]string {
	var rows [][]string
	for _, d := range o.Definitions {
		tools := console.WordsOr(d.Tools, "all of its parent's")
		switch offered, began := offeredTo(o, d.Name); {
		case began:
			tools = console.WordsOr(offered, "none")
		case len(o.Agents) > 0:
			tools = "not begun; by its definition: " + tools
		}
		rows = append(rows, []string{term.CleanLine(d.Name), cmp.Or(term.ModelName(d.Model), "the run's"), tools,
			console.WordsOr(d.Delegates, "any"), console.WordsOr(d.Handoffs, "none")})
	}
	return rows
}

// offeredTo returns the tools that agents of a definition were offered; began is false if there is no such agent
// yet.
func offeredTo(o *client.Description, name string) (tools []string, began bool) {
	tools = []string{}
	for _, a := range o.Agents {
		if a.Name != name {
			continue
		}
		began = true
		for _, t := range a.Tools {
			if !slices.Contains(tools, t) {
				tools = append(tools, t)
			}
		}
	}
	return tools, began
}

// offeredTools returns the tools that agents of the run were offered; before there is an agent, and if some are left out,
// all tools of the run.
func offeredTools(o *client.Description) []client.ToolInfo {
	if len(o.Agents) == 0 || o.AgentsLeftOut > 0 {
		return o.Tools
	}
	return slices.DeleteFunc(slices.Clone(o.Tools), func(t client.ToolInfo) bool {
		return !slices.ContainsFunc(o.Agents, func(a client.AgentInfo) bool { return slices.Contains(a.Tools, t.Name) })
	})
}

func toolRows(tools []client.ToolInfo) [][]string {
	var rows [][]string
	for _, t := range tools {
		text := t.Description
		if t.Command != "" {
			text = "`" + t.Command + "`: " + text
		}
		rows = append(rows, []string{term.CleanLine(t.Name), term.CleanLine(string(t.Class)), term.CleanLine(text)})
	}
	return rows
}

// addReport is the run report: each agent, and the tree.
func addReport(p *console.Page, d description) {
	r := d.Result
	known := d.Description.Model.Price.Known
	var rows [][]string
	calls := 0
	for _, m := range r.Agents {
		calls += m.Calls
		end := term.FormatReason(m.Reason)
		if m.Phase != "done" {
			end = m.Phase
		}
		rows = append(rows, []string{term.CleanLine(string(m.ID)), term.CleanLine(m.Name), fmt.Sprint(m.Turns), fmt.Sprint(m.Calls), term.FormatTokens(m.Tokens),
			console.CostText(m.CostUSD, known, r.CostEstimated), console.Took(m.ModelMS), console.Took(m.ToolMS), term.CleanLine(end)})
	}
	allCalls := fmt.Sprint(calls)
	if r.AgentsLeftOut > 0 {
		allCalls += " and more"
		rows = append(rows, []string{"…", "and " + console.CountOf(r.AgentsLeftOut, "agent") + ": `troupe tree " + r.Run + "`"})
	}
	rows = append(rows, []string{"tree", console.CountOf(len(r.Agents)+r.AgentsLeftOut, "agent"), fmt.Sprint(r.Turns), allCalls, term.FormatTokens(r.Budget.Used),
		console.CostText(r.CostUSD, known, r.CostEstimated), console.Took(r.ModelMS), console.Took(r.ToolMS), term.FormatReason(r.Reason)})
	p.AddTable(slices.Concat(console.Left("ID", "AGENT"), console.Right("TURNS", "CALLS", "TOKENS", "COST", "MODEL", "TOOLS"), console.Left("END")), rows)
	line := fmt.Sprintf("%s; tokens: %s in, %s out, %s cache reads, %s cache writes", describeDuration(d, time.Now()), term.FormatTokens(r.Usage.Input),
		term.FormatTokens(r.Usage.Output), term.FormatTokens(r.Usage.CacheRead), term.FormatTokens(r.Usage.CacheCreation))
	if r.Budget.Unknown > 0 {
		line += fmt.Sprintf(", and %s charged for calls of unknown usage", term.FormatTokens(r.Budget.Unknown))
	}
	p.AddLine(line)
}

// describeDuration says how long a run took, its waits for people included. The result of one that has not ended counts
// until its supervisor last worked.
func describeDuration(d description, now time.Time) string {
	began, err := time.Parse(time.RFC3339, d.Started)
	if d.State == client.RunFinished || err != nil {
		return console.Took(d.Result.DurationMS) + " in total"
	}
	return "began " + term.FormatAge(now.Sub(began)) + " ago, last step after " + console.Took(d.Result.DurationMS)
}

// warningsShown is how many lines a description has for them.
const warningsShown = 12

func addWarnings(p *console.Page, d description) {
	if len(d.events) == 0 {
		return
	}
	p.AddHeading("Warnings")
	list := d.events
	if n := len(list) - warningsShown; n > 0 {
		list = list[n:]
		p.AddLine(p.Style.Dim(fmt.Sprintf("… %d earlier: troupe events %s --kind %s", n, d.RunID, d.events[0].Kind)))
	}
	for _, e := range list {
		p.AddLine(term.PlainLine(p.Style, e, e.Agent))
	}
}

// journalPairs is a run journal as names and what they say.
func journalPairs(raw json.RawMessage) [][2]string {
	var j agent.Journal
	if json.Unmarshal(raw, &j) != nil {
		return [][2]string{{"journal", string(raw)}}
	}
	lines := func(list []string) string { return strings.Join(list, "\n") }
	return [][2]string{{"objective", j.Objective}, {"state", j.CurrentState}, {"findings", lines(j.Findings)}, {"decisions", lines(j.Decisions)},
		{"artifacts", lines(j.Artifacts)}, {"open questions", lines(j.OpenQuestions)}, {"blockers", lines(j.Blockers)}, {"next", j.NextAction}}
}
