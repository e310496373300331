package term

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/toolname"
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
// gist of its data. estimated says that the costs of its run are estimates.
func EventLine(s Style, e client.Event, estimated bool) string {
	run := e.Run
	switch {
	case strings.HasPrefix(run, "_"): // a name of the server, such as that of its cluster
		run = run[1:]
	case len(run) > runColumns:
		run = run[len(run)-runColumns:]
	}
	line := s.Dim(timeOfDay(e.TS)) + " " + s.Dim(CleanLine(run)) + " " + s.Cyan(Pad(CleanLine(e.Agent), agentColumns)) + " " +
		s.colorKind(e.Kind, Pad(CleanLine(e.Kind), kindColumns))
	text := EventDetail(e)
	if d, ok := decodeData[event.ModelFinished](e); ok && estimated && e.Kind == event.KindModelFinished {
		text = CleanLine(clipText(describeModelCall(d, true)))
	}
	if d := text; d != "" {
		line += " " + Truncate(d, detailColumns)
	}
	return strings.TrimRight(line, " ")
}

// timeOfDay returns the time of day of a stamp, in local time.
func timeOfDay(stamp string) string {
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return "--:--:--"
	}
	return at.Local().Format(time.TimeOnly)
}

func (s Style) colorKind(kind, text string) string {
	switch kind {
	case event.KindRunFinished, event.KindAgentFinished, event.KindStopAllowed:
		return s.Green(text)
	case event.KindErrorRaised, event.KindBudgetOverrun, event.KindBudgetDenied, event.KindToolDenied:
		return s.Red(text)
	case event.KindStopVetoed, event.KindBudgetExhausted, event.KindQueryAsked, event.KindAgentParked, event.KindLimitSoft, event.KindWarningRaised, event.KindModelRetry, event.KindModelFallback, event.KindGatePaused, event.KindToolRetry,
		event.KindLoopDetected, event.KindRecoveryFired, event.KindAgentResumed, event.KindAgentRestarted, event.KindCheckpointResumeUnsafe, event.KindMessageTombstoned:
		return s.Yellow(text)
	case event.KindMessageDelta, event.KindMessageReasoning, event.KindToolProgress, event.KindBudgetReserved, event.KindBudgetSettled:
		return s.Dim(text)
	}
	return text
}

// IsImportant reports whether an event deserves a line if no tree is drawn.
func IsImportant(e client.Event) bool {
	switch e.Kind {
	case event.KindToolStarted:
		d, ok := decodeData[event.ToolCall](e)
		return ok && d.Class != model.Read && d.Class != ""
	case event.KindAgentSpawned, event.KindAgentResumed, event.KindAgentRestarted, event.KindAgentFinished, event.KindDelegationRequested, event.KindAgentHandedOff, event.KindAgentTainted, event.KindMessageAgent, event.KindQueryAsked, event.KindQueryAnswered,
		event.KindStopVetoed, event.KindBudgetExhausted, event.KindBudgetDenied, event.KindBudgetOverrun, event.KindModelRetry, event.KindModelFallback, event.KindToolRetry, event.KindErrorRaised,
		event.KindLimitSoft, event.KindWarningRaised, event.KindLoopDetected, event.KindRecoveryFired, event.KindContextCompacted, event.KindContextChanged, event.KindPermissionsChanged, event.KindCheckpointResumeUnsafe, event.KindToolDenied, event.KindRunFinished,
		event.KindBacklogPosted, event.KindBacklogClaimed, event.KindBacklogReturned, event.KindBacklogDone, event.KindBacklogDropped:
		return true
	}
	return false
}

// EventDetail is the gist of an event's data in one clean line.
func EventDetail(e client.Event) string {
	if text, ok := detail(e); ok {
		return CleanLine(clipText(text))
	}
	if len(e.Data) == 0 || string(e.Data) == "null" {
		return ""
	}
	return CleanLine(clipText(string(e.Data)))
}

// clipText returns the beginning of a text that is drawn in one line: a text of megabytes is neither cleaned nor kept.
func clipText(text string) string {
	if len(text) <= lineBytesMax {
		return text
	}
	return clip.Prefix(text, lineBytesMax) + "…" // a copy
}

// lineBytesMax is more than the widest line of a terminal shows.
const lineBytesMax = 4 << 10

func detail(e client.Event) (string, bool) {
	switch e.Kind {
	case event.KindRunStarted, event.KindRunFinished, event.KindAgentSpawned, event.KindPolicyApplied, event.KindPermissionsChanged:
		return describeRun(e)
	case event.KindShardTaken, event.KindShardReleased:
		return describeShard(e)
	case event.KindBudgetReserved, event.KindBudgetSettled, event.KindBudgetDenied, event.KindBudgetExhausted, event.KindBudgetChanged, event.KindBudgetOverrun:
		d, ok := decodeData[event.BudgetChanged](e)
		text := fmt.Sprintf("%s %s/%s used, %s reserved", d.Agent, formatTokens(d.Used), formatTokens(d.Limit.Tokens), formatTokens(d.Reserved))
		if money := FormatMoney(d.UsedUSD, float64(d.Limit.Nano)/budget.NanoPerUSD, d.ReservedUSD, d.Estimated); money != "" {
			text += "  " + money
		}
		text += " " + string(d.Why)
		switch {
		case d.Short != nil:
			text += ": " + describeShortage(*d.Short)
		case d.Frozen && d.Why != "":
			text += ": a person froze the budget"
		}
		text += describeVerdict(d.Policy)
		if d.Subtree != nil {
			text += " " + FormatSubtree(*d.Subtree)
		}
		return strings.TrimSpace(text), ok
	case event.KindToolProposed, event.KindToolValidated, event.KindToolStarted, event.KindToolFinished, event.KindDelegationRequested, event.KindDelegationFinished, event.KindDelegationBackground:
		d, ok := decodeData[event.ToolCall](e)
		return describeToolCall(d), ok
	case event.KindMessageUser, event.KindMessageAssistant, event.KindMessageTombstoned, event.KindMessageDelta, event.KindMessageReasoning:
		d, ok := decodeData[event.Said](e)
		return describeMessage(d), ok
	case event.KindModelFinished, event.KindModelRetry, event.KindErrorRaised:
		d, ok := decodeData[event.ModelFinished](e)
		return describeModelCall(d, false), ok
	}
	return describeAgent(e)
}

func describeRun(e client.Event) (string, bool) {
	switch e.Kind {
	case event.KindRunStarted:
		d, ok := decodeData[event.RunStarted](e)
		return fmt.Sprintf("%s  %s", ModelName(d.Model), d.Goal), ok
	case event.KindAgentSpawned:
		d, ok := decodeData[event.AgentSpawned](e)
		return fmt.Sprintf("%s %s", d.Agent, d.Name), ok
	case event.KindPolicyApplied:
		d, ok := decodeData[event.PolicyApplied](e)
		return fmt.Sprintf("version %d, %s", d.Version, FormatCount(d.Rules, "rule")), ok
	case event.KindPermissionsChanged:
		d, ok := decodeData[event.PermissionsChanged](e)
		return describeNarrowing(d), ok
	}
	d, ok := decodeData[event.Result](e)
	text := fmt.Sprintf("%s  %s  %s tokens  %s  %s", FormatReason(d.Reason), FormatCount(d.Turns, "turn"), formatTokens(d.Budget.Used),
		FormatCount(len(d.Agents)+d.AgentsLeftOut, "agent"), FormatDuration(time.Duration(d.DurationMS)*time.Millisecond))
	if money := FormatMoney(d.CostUSD, d.Budget.LimitUSD, d.Budget.ReservedUSD, d.CostEstimated); money != "" {
		text += "  " + money
	}
	return text, ok
}

func describeAgent(e client.Event) (string, bool) {
	switch e.Kind {
	case event.KindAgentStarted:
		d, ok := decodeData[event.AgentStarted](e)
		return fmt.Sprintf("%s  %s  %s", d.Name, ModelName(d.Model), d.Goal), ok
	case event.KindMessageAgent:
		d, ok := decodeData[event.AgentSaid](e)
		return fmt.Sprintf("from %s  %s", d.From, d.Text), ok
	case event.KindAgentHandedOff:
		d, ok := decodeData[event.AgentHandedOff](e)
		return fmt.Sprintf("to %s  → %s", d.Name, d.To), ok
	case event.KindAgentTainted:
		d, ok := decodeData[event.AgentTainted](e)
		return permission.DescribeTaint(&d.Taint), ok
	case event.KindAgentWaiting:
		d, ok := decodeData[event.AgentWaiting](e)
		return fmt.Sprintf("for %s", FormatCount(len(d.Children), "agent")), ok
	case event.KindAgentResumed, event.KindAgentRestarted:
		d, ok := decodeData[event.AgentResumed](e)
		return d.Phase, ok
	case event.KindAgentFinished:
		d, ok := decodeData[event.AgentFinished](e)
		return strings.TrimSpace(fmt.Sprintf("%s  %s  %s  %s tokens  %s", FormatReason(d.Reason), FormatCount(d.Turns, "turn"), FormatCount(d.Calls, "tool call"),
			formatTokens(d.Usage.Total()), d.Detail)), ok
	case event.KindQueryAsked, event.KindAgentParked:
		d, ok := decodeData[event.AgentParked](e)
		return strings.TrimSpace(fmt.Sprintf("%s  %s  %s", d.Query, QuestionLine(d.Question), FormatApprovals(d.Approvals, d.ApprovedBy))), ok
	case event.KindQueryAnswered:
		d, ok := decodeData[event.QueryAnswered](e)
		text := d.Query + "  " + string(d.Decision)
		if d.Missing > 0 {
			text += fmt.Sprintf("  by %s, %d more must approve", d.By, d.Missing)
		}
		return text, ok
	case event.KindTurnStarted:
		d, ok := decodeData[event.TurnStarted](e)
		return fmt.Sprintf("turn %d  %s%s", e.Turn, d.Transition, describeVerdict(d.Policy)), ok
	case event.KindTurnFinished:
		d, ok := decodeData[event.TurnFinished](e)
		return fmt.Sprintf("turn %d  %s", e.Turn, d.Transition), ok
	case event.KindModelStarted:
		d, ok := decodeData[event.ModelStarted](e)
		return ModelName(d.Model), ok
	case event.KindStopProposed, event.KindStopAllowed, event.KindStopVetoed:
		d, ok := decodeData[event.Stop](e)
		return strings.TrimSpace(d.Why + describeVerdict(d.Policy)), ok
	case event.KindLoopDetected:
		d, ok := decodeData[event.LoopDetected](e)
		return fmt.Sprintf("%s  %s %d times  level %d", d.Tier, d.Tool, d.Times, d.Level), ok
	case event.KindContextCompacted, event.KindContextChanged, event.KindRecoveryFired, event.KindJournalUpdated:
		return describeContext(e)
	case event.KindBacklogPosted, event.KindBacklogClaimed, event.KindBacklogReturned, event.KindBacklogDone, event.KindBacklogDropped:
		return describeTask(e)
	case event.KindLimitSoft, event.KindWarningRaised:
		return describeWarning(e)
	case event.KindModelFallback:
		d, ok := decodeData[event.Fallback](e)
		return fmt.Sprintf("%s → %s  %s", d.From, d.To, d.Error), ok
	case event.KindGatePaused:
		d, ok := decodeData[event.GatePaused](e)
		return fmt.Sprintf("%s  %s  waits up to %s", ModelName(d.Model), d.Why, FormatDuration(time.Duration(d.LeftMS)*time.Millisecond)), ok
	case event.KindToolRetry:
		d, ok := decodeData[event.ToolRetry](e)
		return fmt.Sprintf("%s %s  %s  again in %s", d.Call, d.Tool, d.Text, FormatDuration(time.Duration(d.WaitMS)*time.Millisecond)), ok
	}
	return describeHook(e)
}

// describeVerdict names the rule that spoke against a stop or a turn, and the version of its policy.
func describeVerdict(by *event.PolicyVerdict) string {
	switch {
	case by == nil:
		return ""
	case by.Rule == "":
		return fmt.Sprintf("  policy %d", by.Version)
	}
	return fmt.Sprintf("  (rule %s, policy %d)", by.Rule, by.Version)
}

func describeContext(e client.Event) (string, bool) {
	switch e.Kind {
	case event.KindContextCompacted:
		d, ok := decodeData[event.Compaction](e)
		return fmt.Sprintf("%s  %s → %s tokens, %d → %s, summarized by %s", d.How, formatTokens(d.BeforeTokens), formatTokens(d.AfterTokens),
			d.BeforeMessages, FormatCount(d.AfterMessages, "message"), d.By), ok
	case event.KindContextChanged:
		d, ok := decodeData[event.ContextChanged](e)
		return describeChange(d), ok
	case event.KindRecoveryFired:
		d, ok := decodeData[event.Recovery](e)
		return fmt.Sprintf("%s  %d of %d  %s tokens", d.Stage, d.Used, d.Most, formatTokens(d.Tokens)), ok
	}
	d, ok := decodeData[event.JournalUpdated](e)
	return fmt.Sprintf("%s  %s", strings.Join(d.Sections, ", "), d.Digest), ok
}

// describeTask says what has happened to a task of the backlog.
func describeTask(e client.Event) (string, bool) {
	d, ok := decodeData[event.BacklogTask](e)
	word := strings.TrimPrefix(e.Kind, "backlog.")
	text := fmt.Sprintf("%s %s: %s", word, d.Task, d.Title)
	if d.Agent != "" && e.Kind != event.KindBacklogPosted {
		text += fmt.Sprintf("  %s  %s", d.Name, d.Agent)
	}
	if d.Why != "" {
		text += "  " + d.Why
	}
	return text, ok
}

// describeChange names the layers and tools that were set (+) and taken away (-).
func describeChange(d event.ContextChanged) string {
	var parts []string
	for _, l := range d.Layers {
		sign := "+"
		if l.Removed {
			sign = "-"
		}
		parts = append(parts, sign+l.Name)
	}
	for _, name := range d.ToolsAdded {
		parts = append(parts, "+tool "+name)
	}
	for _, name := range d.ToolsRemoved {
		parts = append(parts, "-tool "+name)
	}
	text := strings.Join(parts, ", ")
	if d.By != "" {
		text += "  by " + d.By
	}
	return text
}

func describeWarning(e client.Event) (string, bool) {
	var d struct {
		What, Why, By, Agent string
		Live                 int
		Now                  bool
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return "", false
	}
	text := d.What
	if d.Agent != "" {
		text += " of " + d.Agent
	}
	if d.Now {
		text += " now"
	}
	if d.By != "" {
		text += " by user " + d.By // who may be called as an agent is
	}
	if d.Why != "" {
		text += ": " + d.Why
	}
	if d.Live > 0 {
		text += fmt.Sprintf(" (%s live)", FormatCount(d.Live, "agent"))
	}
	return text, true
}

func describeModelCall(d event.ModelFinished, estimated bool) string {
	if d.Error != "" {
		return fmt.Sprintf("%s  %s: %s", ModelName(d.Model), d.Error, d.Detail)
	}
	usage := "usage unknown"
	if d.UsageKnown {
		usage = fmt.Sprintf("%s in, %s out", formatTokens(d.Usage.Prompt()), formatTokens(d.Usage.Output))
	}
	if d.CostUSD > 0 {
		usage += "  " + FormatUSD(d.CostUSD, estimated)
	}
	return fmt.Sprintf("%s  %s  %s  %s", ModelName(d.Model), d.Stop, usage, FormatDuration(time.Duration(d.TookMS)*time.Millisecond))
}

func describeMessage(d event.Said) string {
	text := d.Text
	if text == "" && d.Bytes > 0 {
		text = fmt.Sprintf("%d bytes", d.Bytes)
	}
	if d.Calls > 0 {
		text += "  → " + FormatCount(d.Calls, "call")
	}
	if d.Interrupted {
		text += "  (interrupted)"
	}
	return text
}

func describeToolCall(d event.ToolCall) string {
	text := d.Call + "  " + callLabel(d)
	if d.Child != "" {
		text += "  → " + string(d.Child)
	}
	if d.Text != "" || d.Bytes > 0 {
		if d.TookMS > 0 { // the event of a delegation has none
			text += "  " + FormatDuration(time.Duration(d.TookMS)*time.Millisecond)
		}
		text += fmt.Sprintf("  %d bytes  %s", d.Bytes, d.Text)
	}
	if d.Error {
		text += "  (error)"
	}
	return text
}

// mainArgs are the arguments that best describe a call.
var mainArgs = []string{"path", "pattern", "command", "url", "task", "question", "agent", "name"}

// callLabel is a readable name of a call: the tool and its main argument.
func callLabel(d event.ToolCall) string {
	d.Tool = clipText(d.Tool)
	if d.Args == "" {
		return d.Tool
	}
	var args map[string]any
	if json.Unmarshal([]byte(d.Args), &args) != nil {
		return d.Tool + " " + Truncate(CleanLine(clipText(d.Args)), argColumns)
	}
	for _, name := range mainArgs {
		if v, ok := args[name].(string); ok && v != "" {
			if d.Tool == toolname.Delegate && name == "task" {
				if a, ok := args["agent"].(string); ok {
					v = a + ": " + v
				}
			}
			return d.Tool + " " + Truncate(CleanLine(clipText(v)), argColumns)
		}
	}
	return d.Tool
}
