package term

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
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

// PlainLine formats one event for the log of one run: the event and the agent.
func PlainLine(s Style, e client.Event, name string) string {
	who := Line(name)
	if who == "" || e.Agent == "super" {
		who = "run"
	}
	return strings.TrimRight(s.Dim(hour(e.TS))+" "+s.Cyan(who)+"  "+s.kind(e.Kind, Line(e.Kind))+"  "+Cut(Detail(e), detailColumns), " ")
}

// hour returns the time of day of a stamp, in local time.
func hour(stamp string) string {
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return "--:--:--"
	}
	return at.Local().Format(time.TimeOnly)
}

func (s Style) kind(kind, text string) string {
	switch kind {
	case event.KindRunFinished, event.KindAgentFinished, event.KindStopAllowed:
		return s.Green(text)
	case event.KindErrorRaised, event.KindBudgetOverrun, event.KindBudgetDenied, event.KindToolDenied:
		return s.Red(text)
	case event.KindStopVetoed, event.KindBudgetExhausted, event.KindQueryAsked, event.KindAgentParked, event.KindLimitSoft, event.KindWarningRaised, event.KindModelRetry, event.KindModelFallback, event.KindGatePaused, event.KindToolRetry,
		event.KindLoopDetected, event.KindRecoveryFired, event.KindAgentResumed, event.KindCheckpointResumeUnsafe, event.KindMessageTombstoned:
		return s.Yellow(text)
	case event.KindMessageDelta, event.KindMessageReasoning, event.KindToolProgress, event.KindBudgetReserved, event.KindBudgetSettled:
		return s.Dim(text)
	}
	return text
}

// Important reports whether an event deserves a line if no tree is drawn.
func Important(e client.Event) bool {
	switch e.Kind {
	case event.KindToolStarted:
		d, ok := decode[event.ToolCall](e)
		return ok && d.Class != model.Read && d.Class != ""
	case event.KindAgentSpawned, event.KindAgentResumed, event.KindAgentFinished, event.KindDelegationRequested, event.KindMessageAgent, event.KindQueryAsked, event.KindQueryAnswered,
		event.KindStopVetoed, event.KindBudgetExhausted, event.KindBudgetDenied, event.KindBudgetOverrun, event.KindModelRetry, event.KindModelFallback, event.KindToolRetry, event.KindErrorRaised,
		event.KindLimitSoft, event.KindWarningRaised, event.KindLoopDetected, event.KindRecoveryFired, event.KindContextCompacted, event.KindCheckpointResumeUnsafe, event.KindToolDenied, event.KindRunFinished:
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
	case event.KindRunStarted, event.KindRunFinished, event.KindAgentSpawned, event.KindPolicyApplied:
		return ofRun(e)
	case event.KindBudgetReserved, event.KindBudgetSettled, event.KindBudgetDenied, event.KindBudgetExhausted, event.KindBudgetChanged, event.KindBudgetOverrun:
		d, ok := decode[event.BudgetChanged](e)
		return strings.TrimSpace(fmt.Sprintf("%s %s/%s used, %s reserved %s", d.Agent, tokens(d.Used), tokens(d.Limit.Tokens),
			tokens(d.Reserved), d.Why)), ok
	case event.KindToolProposed, event.KindToolValidated, event.KindToolStarted, event.KindToolFinished, event.KindDelegationRequested, event.KindDelegationFinished, event.KindDelegationBackground:
		d, ok := decode[event.ToolCall](e)
		return ofTool(d), ok
	case event.KindMessageUser, event.KindMessageAssistant, event.KindMessageTombstoned, event.KindMessageDelta, event.KindMessageReasoning:
		d, ok := decode[event.Said](e)
		return said(d), ok
	case event.KindModelFinished, event.KindModelRetry, event.KindErrorRaised:
		d, ok := decode[event.ModelFinished](e)
		return ofModel(d), ok
	}
	return ofAgent(e)
}

func ofRun(e client.Event) (string, bool) {
	switch e.Kind {
	case event.KindRunStarted:
		d, ok := decode[event.RunStarted](e)
		return fmt.Sprintf("%s  %s", d.Model, d.Goal), ok
	case event.KindAgentSpawned:
		d, ok := decode[event.AgentSpawned](e)
		return fmt.Sprintf("%s %s", d.Agent, d.Name), ok
	case event.KindPolicyApplied:
		d, ok := decode[event.PolicyApplied](e)
		return fmt.Sprintf("version %d, %s", d.Version, count(d.Rules, "rule")), ok
	}
	d, ok := decode[event.Result](e)
	return fmt.Sprintf("%s  %s  %s tokens  %s  %s", d.Reason, count(d.Turns, "turn"), tokens(d.Budget.Used),
		count(len(d.Agents), "agent"), Took(time.Duration(d.DurationMS)*time.Millisecond)), ok
}

func ofAgent(e client.Event) (string, bool) {
	switch e.Kind {
	case event.KindAgentStarted:
		d, ok := decode[event.AgentStarted](e)
		return fmt.Sprintf("%s  %s  %s", d.Name, d.Model, d.Goal), ok
	case event.KindMessageAgent:
		d, ok := decode[event.AgentSaid](e)
		return fmt.Sprintf("from %s  %s", d.From, d.Text), ok
	case event.KindAgentWaiting:
		d, ok := decode[event.AgentWaiting](e)
		return fmt.Sprintf("for %s", count(len(d.Children), "agent")), ok
	case event.KindAgentResumed:
		d, ok := decode[event.AgentResumed](e)
		return d.Phase, ok
	case event.KindAgentFinished:
		d, ok := decode[event.AgentFinished](e)
		return strings.TrimSpace(fmt.Sprintf("%s  %s  %s  %s tokens  %s", d.Reason, count(d.Turns, "turn"), count(d.Calls, "tool call"),
			tokens(d.Usage.Total()), d.Detail)), ok
	case event.KindQueryAsked, event.KindAgentParked:
		d, ok := decode[event.AgentParked](e)
		return fmt.Sprintf("%s  %s", d.Query, d.Question), ok
	case event.KindQueryAnswered:
		d, ok := decode[event.QueryAnswered](e)
		return d.Query + "  " + d.Decision, ok
	case event.KindTurnStarted:
		d, ok := decode[event.TurnStarted](e)
		return fmt.Sprintf("turn %d  %s", e.Turn, d.Transition), ok
	case event.KindTurnFinished:
		d, ok := decode[event.TurnFinished](e)
		return fmt.Sprintf("turn %d  %s", e.Turn, d.Transition), ok
	case event.KindModelStarted:
		d, ok := decode[event.ModelStarted](e)
		return d.Model, ok
	case event.KindStopProposed, event.KindStopAllowed, event.KindStopVetoed:
		d, ok := decode[event.Stop](e)
		return d.Why, ok
	case event.KindLoopDetected:
		d, ok := decode[event.LoopDetected](e)
		return fmt.Sprintf("%s  %s %d times  level %d", d.Tier, d.Tool, d.Times, d.Level), ok
	case event.KindContextCompacted, event.KindRecoveryFired, event.KindJournalUpdated:
		return ofContext(e)
	case event.KindLimitSoft, event.KindWarningRaised:
		return ofWarning(e)
	case event.KindModelFallback:
		d, ok := decode[event.Fallback](e)
		return fmt.Sprintf("%s → %s  %s", d.From, d.To, d.Error), ok
	case event.KindGatePaused:
		d, ok := decode[event.GatePaused](e)
		return fmt.Sprintf("%s  %s  patience for %s", d.Model, d.Why, Took(time.Duration(d.LeftMS)*time.Millisecond)), ok
	case event.KindToolRetry:
		d, ok := decode[event.ToolRetry](e)
		return fmt.Sprintf("%s %s  %s  again in %s", d.Call, d.Tool, d.Text, Took(time.Duration(d.WaitMS)*time.Millisecond)), ok
	}
	return ofHook(e)
}

func ofContext(e client.Event) (string, bool) {
	switch e.Kind {
	case event.KindContextCompacted:
		d, ok := decode[event.Compaction](e)
		return fmt.Sprintf("%s  %s → %s tokens, %d → %s, summarized by %s", d.How, tokens(d.BeforeTokens), tokens(d.AfterTokens),
			d.BeforeMessages, count(d.AfterMessages, "message"), d.By), ok
	case event.KindRecoveryFired:
		d, ok := decode[event.Recovery](e)
		return fmt.Sprintf("%s  %d of %d  %s tokens", d.Stage, d.Used, d.Most, tokens(d.Tokens)), ok
	}
	d, ok := decode[event.JournalUpdated](e)
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

func ofModel(d event.ModelFinished) string {
	if d.Error != "" {
		return fmt.Sprintf("%s  %s: %s", d.Model, d.Error, d.Detail)
	}
	usage := "usage unknown"
	if d.UsageKnown {
		usage = fmt.Sprintf("%s in, %s out", tokens(d.Usage.Prompt()), tokens(d.Usage.Output))
	}
	return fmt.Sprintf("%s  %s  %s  %s", d.Model, d.Stop, usage, Took(time.Duration(d.TookMS)*time.Millisecond))
}

func said(d event.Said) string {
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

func ofTool(d event.ToolCall) string {
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

// gist are the arguments that best describe a call.
var gist = []string{"path", "pattern", "command", "url", "task", "question", "agent", "name"}

// label is a readable name of a call: the tool and its main argument.
func label(d event.ToolCall) string {
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
