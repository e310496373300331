package term

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	detailColumns = 160
	argColumns    = 60
	runColumns    = 6 // of a run's id: the end of a ULID differs
	agentColumns  = 12
	kindColumns   = 20
)

// EventLine is one event as one line: when, which run and agent, what, and the
// gist of its data.
func EventLine(s Style, e client.Event) string {
	run := e.Run
	if len(run) > runColumns {
		run = run[len(run)-runColumns:]
	}
	line := s.Dim(hour(e.TS)) + " " + s.Dim(Line(run)) + " " + s.Cyan(Pad(Line(e.Agent), agentColumns)) + " " +
		s.kind(e.Kind, Pad(Line(e.Kind), kindColumns))
	if d := Detail(e); d != "" {
		line += " " + Cut(d, detailColumns)
	}
	return strings.TrimRight(line, " ")
}

// PlainLine is one event for a log of one run: what, by whom.
func PlainLine(s Style, e client.Event, name string) string {
	who := Line(name)
	if who == "" || e.Agent == "super" {
		who = "run"
	}
	return strings.TrimRight(s.Dim(hour(e.TS))+" "+s.Cyan(who)+"  "+s.kind(e.Kind, Line(e.Kind))+"  "+Cut(Detail(e), detailColumns), " ")
}

// hour is the time of day of a stamp, here.
func hour(stamp string) string {
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return "--:--:--"
	}
	return at.Local().Format(time.TimeOnly)
}

func (s Style) kind(kind, text string) string {
	switch kind {
	case "run.finished", "agent.finished", "stop.allowed":
		return s.Green(text)
	case "error.raised", "budget.overrun", "budget.denied", "tool.denied":
		return s.Red(text)
	case "stop.vetoed", "budget.exhausted", "query.asked", "agent.parked", "limit.soft", "warning.raised", "model.retry", "model.fallback", "gate.paused", "tool.retry",
		"loop.detected", "recovery.fired", "agent.resumed", "checkpoint.resume_unsafe", "message.tombstoned":
		return s.Yellow(text)
	case "message.delta", "message.reasoning", "tool.progress", "budget.reserved", "budget.settled":
		return s.Dim(text)
	}
	return text
}

// Important reports whether an event is worth a line where no tree is drawn.
func Important(e client.Event) bool {
	switch e.Kind {
	case "tool.started":
		d, ok := decode[agent.ToolNote](e)
		return ok && d.Class != model.Read && d.Class != ""
	case "agent.spawned", "agent.resumed", "agent.finished", "delegation.requested", "message.agent", "query.asked", "query.answered",
		"stop.vetoed", "budget.exhausted", "budget.denied", "budget.overrun", "model.retry", "model.fallback", "tool.retry", "error.raised",
		"limit.soft", "warning.raised", "loop.detected", "recovery.fired", "context.compacted", "checkpoint.resume_unsafe", "tool.denied", "run.finished":
		return true
	}
	return false
}

// Detail is the gist of an event's data in one clean line.
func Detail(e client.Event) string {
	if text, ok := detail(e); ok {
		return Line(text)
	}
	if len(e.Data) == 0 || string(e.Data) == "null" {
		return ""
	}
	return Line(string(e.Data))
}

func detail(e client.Event) (string, bool) {
	switch e.Kind {
	case "run.started", "run.finished", "agent.spawned", "policy.applied":
		return ofRun(e)
	case "budget.reserved", "budget.settled", "budget.denied", "budget.exhausted", "budget.changed", "budget.overrun":
		d, ok := decode[supervisor.BudgetNote](e)
		return strings.TrimSpace(fmt.Sprintf("%s %s/%s used, %s reserved %s", d.Agent, tokens(d.Used), tokens(d.Limit.Tokens),
			tokens(d.Reserved), d.Why)), ok
	case "tool.proposed", "tool.validated", "tool.started", "tool.finished", "delegation.requested", "delegation.finished", "delegation.background":
		d, ok := decode[agent.ToolNote](e)
		return ofTool(d), ok
	case "message.user", "message.assistant", "message.tombstoned", "message.delta", "message.reasoning":
		d, ok := decode[agent.Said](e)
		return said(d), ok
	case "model.finished", "model.retry", "error.raised":
		d, ok := decode[agent.ModelFinished](e)
		return ofModel(d), ok
	}
	return ofAgent(e)
}

func ofRun(e client.Event) (string, bool) {
	switch e.Kind {
	case "run.started":
		d, ok := decode[supervisor.RunStarted](e)
		return fmt.Sprintf("%s  %s", d.Model, d.Goal), ok
	case "agent.spawned":
		d, ok := decode[supervisor.AgentSpawned](e)
		return fmt.Sprintf("%s %s", d.Agent, d.Name), ok
	case "policy.applied":
		d, ok := decode[supervisor.PolicyApplied](e)
		return fmt.Sprintf("version %d, %s", d.Version, count(d.Rules, "rule")), ok
	}
	d, ok := decode[supervisor.Result](e)
	return fmt.Sprintf("%s  %s  %s tokens  %s  %s", d.Reason, count(d.Turns, "turn"), tokens(d.Budget.Used),
		count(len(d.Agents), "agent"), Took(time.Duration(d.DurationMS)*time.Millisecond)), ok
}

func ofAgent(e client.Event) (string, bool) {
	switch e.Kind {
	case "agent.started":
		d, ok := decode[agent.AgentStarted](e)
		return fmt.Sprintf("%s  %s  %s", d.Name, d.Model, d.Goal), ok
	case "message.agent":
		d, ok := decode[agent.AgentSaid](e)
		return fmt.Sprintf("from %s  %s", d.From, d.Text), ok
	case "agent.waiting":
		d, ok := decode[agent.AgentWaiting](e)
		return fmt.Sprintf("for %s", count(len(d.Children), "agent")), ok
	case "agent.resumed":
		d, ok := decode[agent.AgentResumed](e)
		return string(d.Phase), ok
	case "agent.finished":
		d, ok := decode[agent.AgentFinished](e)
		return strings.TrimSpace(fmt.Sprintf("%s  %s  %s  %s tokens  %s", d.Reason, count(d.Turns, "turn"), count(d.Calls, "tool call"),
			tokens(d.Usage.Total()), d.Detail)), ok
	case "query.asked", "agent.parked":
		d, ok := decode[agent.AgentParked](e)
		return fmt.Sprintf("%s  %s", d.Query, d.Question), ok
	case "query.answered":
		d, ok := decode[agent.QueryAnswered](e)
		return d.Query + "  " + d.Decision, ok
	case "turn.started":
		d, ok := decode[agent.TurnStarted](e)
		return fmt.Sprintf("turn %d  %s", e.Turn, d.Transition), ok
	case "turn.finished":
		d, ok := decode[agent.TurnFinished](e)
		return fmt.Sprintf("turn %d  %s", e.Turn, d.Transition), ok
	case "model.started":
		d, ok := decode[agent.ModelStarted](e)
		return d.Model, ok
	case "stop.proposed", "stop.allowed", "stop.vetoed":
		d, ok := decode[agent.StopNote](e)
		return d.Why, ok
	case "loop.detected":
		d, ok := decode[agent.LoopDetected](e)
		return fmt.Sprintf("%s  %s %d times  level %d", d.Tier, d.Tool, d.Times, d.Level), ok
	case "context.compacted", "recovery.fired", "journal.updated":
		return ofContext(e)
	case "limit.soft", "warning.raised":
		return ofWarning(e)
	case "model.fallback":
		d, ok := decode[agent.Fallback](e)
		return fmt.Sprintf("%s → %s  %s", d.From, d.To, d.Error), ok
	case "gate.paused":
		d, ok := decode[agent.GatePaused](e)
		return fmt.Sprintf("%s  %s  patience for %s", d.Model, d.Why, Took(time.Duration(d.LeftMS)*time.Millisecond)), ok
	case "tool.retry":
		d, ok := decode[agent.ToolRetry](e)
		return fmt.Sprintf("%s %s  %s  again in %s", d.Call, d.Tool, d.Text, Took(time.Duration(d.WaitMS)*time.Millisecond)), ok
	}
	return ofHook(e)
}

func ofContext(e client.Event) (string, bool) {
	switch e.Kind {
	case "context.compacted":
		d, ok := decode[agent.Compaction](e)
		return fmt.Sprintf("%s  %s → %s tokens, %d → %s, summarized by %s", d.How, tokens(d.BeforeTokens), tokens(d.AfterTokens),
			d.BeforeMessages, count(d.AfterMessages, "message"), d.By), ok
	case "recovery.fired":
		d, ok := decode[agent.Recovery](e)
		return fmt.Sprintf("%s  %d of %d  %s tokens", d.Stage, d.Used, d.Most, tokens(d.Tokens)), ok
	}
	d, ok := decode[agent.JournalUpdated](e)
	return fmt.Sprintf("%s  %s", strings.Join(d.Sections, ", "), d.Digest), ok
}

func ofWarning(e client.Event) (string, bool) {
	var d struct {
		What, Why string
		Live      int
		Now       bool
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return "", false
	}
	text := d.What
	if d.Now {
		text += " now"
	}
	if d.Why != "" {
		text += ": " + d.Why
	}
	if d.Live > 0 {
		text += fmt.Sprintf(" (%s live)", count(d.Live, "agent"))
	}
	return text, true
}

func ofModel(d agent.ModelFinished) string {
	if d.Error != "" {
		return fmt.Sprintf("%s  %s: %s", d.Model, d.Error, d.Detail)
	}
	usage := "usage unknown"
	if d.UsageKnown {
		usage = fmt.Sprintf("%s in, %s out", tokens(d.Usage.Prompt()), tokens(d.Usage.Output))
	}
	return fmt.Sprintf("%s  %s  %s  %s", d.Model, d.Stop, usage, Took(time.Duration(d.TookMS)*time.Millisecond))
}

func said(d agent.Said) string {
	text := d.Text
	if text == "" && d.Bytes > 0 {
		text = fmt.Sprintf("%d bytes", d.Bytes)
	}
	if d.Calls > 0 {
		text += "  → " + count(d.Calls, "call")
	}
	if d.Interrupted {
		text += "  (interrupted)"
	}
	return text
}

func ofTool(d agent.ToolNote) string {
	text := d.Call + "  " + label(d)
	if d.Child != "" {
		text += "  → " + string(d.Child)
	}
	if d.Text != "" || d.Bytes > 0 {
		text += fmt.Sprintf("  %s  %d bytes  %s", Took(time.Duration(d.TookMS)*time.Millisecond), d.Bytes, d.Text)
	}
	if d.Error {
		text += "  (error)"
	}
	return text
}

// gist are the arguments that say best what a call is about.
var gist = []string{"path", "pattern", "command", "url", "task", "question", "agent", "name"}

// label is a call as a person names it: the tool and its main argument.
func label(d agent.ToolNote) string {
	if d.Args == "" {
		return d.Tool
	}
	var args map[string]any
	if json.Unmarshal([]byte(d.Args), &args) != nil {
		return d.Tool + " " + Cut(Line(d.Args), argColumns)
	}
	for _, name := range gist {
		if v, ok := args[name].(string); ok && v != "" {
			if d.Tool == "delegate" && name == "task" {
				if a, ok := args["agent"].(string); ok {
					v = a + ": " + v
				}
			}
			return d.Tool + " " + Cut(Line(v), argColumns)
		}
	}
	return d.Tool
}
