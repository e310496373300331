package audit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/model"
)

// builder makes an audit of events, which come in order within each agent.
type builder struct {
	audit   Audit
	names   map[string]string // of agents
	calls   map[callKey]*callRecord
	order   []*callRecord
	answers map[callKey]event.QueryAnswered // about calls, until the decision that they lead to
	queries map[callKey]string              // calls of open questions, by agent and question
}

type callKey struct{ agent, id string }

// callRecord is a call that may become an entry.
type callRecord struct {
	entry Entry
	call  Call
}

// newBuilder begins an audit.
func newBuilder(run string) *builder {
	return &builder{audit: Audit{Run: run, Entries: []*Entry{}}, names: map[string]string{}, calls: map[callKey]*callRecord{},
		answers: map[callKey]event.QueryAnswered{}, queries: map[callKey]string{}}
}

// Add adds an event. Kinds that an audit has no use for change nothing.
func (b *builder) add(e client.Event) {
	switch e.Kind {
	case event.KindAgentSpawned:
		d := client.DataOf[event.AgentSpawned](e)
		b.names[string(d.Agent)] = d.Name
	case event.KindToolProposed, event.KindToolValidated, event.KindToolStarted, event.KindToolFinished,
		event.KindDelegationRequested, event.KindDelegationBackground, event.KindDelegationFinished:
		b.addCall(e, client.DataOf[event.ToolCall](e))
	case event.KindToolRetry:
		d := client.DataOf[event.ToolRetry](e)
		b.call(e, d.Call, d.Tool).call.Error = showText(d.Text)
	case event.KindToolApproved, event.KindToolDenied:
		b.addDecision(e, client.DataOf[event.ToolDecided](e))
	case event.KindCheckpointResumeUnsafe:
		if d := client.DataOf[event.ResumeUnsafe](e); d.Call != "" {
			c := &b.call(e, d.Call, "").call
			c.Outcome, c.Lost = Unknown, c.Lost+1
		}
	case event.KindQueryAsked:
		b.addQuestion(e, client.DataOf[event.AgentParked](e))
	case event.KindQueryAnswered:
		b.addAnswer(e, client.DataOf[event.QueryAnswered](e))
	default:
		b.addChange(e)
	}
}

func showText(text string) string { return permission.VisibleLine(clip.Text(text, textBytesMax)) }

func showArguments(args string) string {
	return permission.VisibleLine(clip.Ends(args, argumentBytesMax))
}

func (b *builder) call(e client.Event, id, tool string) *callRecord {
	key := callKey{e.Agent, id}
	c := b.calls[key]
	if c == nil {
		c = &callRecord{entry: Entry{At: e.TS, Kind: KindCall, Agent: e.Agent, Turn: e.Turn}, call: Call{ID: id, Decisions: []Decision{}, Outcome: NotBegun}}
		b.calls[key], b.order = c, append(b.order, c)
	}
	c.call.Tool = cmp.Or(c.call.Tool, permission.VisibleLine(tool))
	return c
}

func (b *builder) addCall(e client.Event, d event.ToolCall) {
	r := b.call(e, d.Call, d.Tool)
	c := &r.call
	c.Class = cmp.Or(d.Class, c.Class)
	if d.Args != "" {
		c.Arguments = showArguments(d.Args)
		sum := sha256.Sum256([]byte(permission.Canonical(d.Args)))
		c.ArgumentDigest = hex.EncodeToString(sum[:])
	}
	switch e.Kind {
	case event.KindToolStarted, event.KindDelegationRequested:
		c.Begun, c.Attempts, c.Outcome, c.Ended = e.TS, max(c.Attempts+1, d.Attempt), Running, ""
	case event.KindToolFinished, event.KindDelegationFinished:
		r.endCall(e, d)
	}
}

// endCall records the result of a call. If a person had to say how an attempt of unknown outcome goes on, and the
// call did not begin again, its outcome stays unknown.
func (r *callRecord) endCall(e client.Event, d event.ToolCall) {
	c := &r.call
	c.Ended, c.ResultBytes, c.Error = e.TS, max(int64(d.Bytes), d.Size), ""
	wasAnswered := c.Question == nil || !c.Question.Open
	if c.Question != nil {
		c.Question.Open = false // nobody can answer it any more
	}
	if d.Error {
		c.Error = cmp.Or(showText(d.Text), "failed")
	}
	switch {
	case c.Attempts == 0:
		c.Outcome = NotBegun
	case c.Outcome == Unknown && wasAnswered:
	case d.Error:
		c.Outcome = Failed
	default:
		c.Outcome = Succeeded
	}
}

// permissionAuthors are the authors of decisions of the permissions, by the words of their events.
var permissionAuthors = map[string]string{permission.ByRule: ByRule, permission.ByMode: ByMode, permission.ByYes: ByYes,
	permission.ByGrants: ByTool, permission.ByDefault: ByTool, permission.ByNobody: ByTool, permission.ByTaint: ByTool}

func (b *builder) addDecision(e client.Event, d event.ToolDecided) {
	c := &b.call(e, d.Call, d.Tool).call
	out := Decision{At: e.TS, Author: ByHook, Decision: d.Decision, Rule: permission.VisibleLine(d.Rule), From: permission.VisibleLine(d.From), Why: showText(d.Why), Digest: d.Digest}
	for _, by := range d.By {
		out.By = append(out.By, showText(by))
	}
	if d.Args != "" {
		out.Arguments = showArguments(d.Args)
	}
	key := callKey{e.Agent, d.Call}
	answer, answered := b.answers[key]
	delete(b.answers, key)
	switch {
	case answered:
		out.Author, out.Query, out.Always = ByPerson, answer.Query, answer.Always
		if answer.By == event.ByClock {
			out.Author = ByClock
		}
	case len(d.By) == 1 && permissionAuthors[d.By[0]] != "":
		out.Author = permissionAuthors[d.By[0]]
	}
	out.Advance = d.Decision == spec.HookAllow && (out.Author == ByRule || out.Author == ByMode || out.Author == ByYes)
	c.Digest = cmp.Or(c.Digest, d.Digest)
	c.Decisions = append(c.Decisions, out)
	if out.Always != "" && d.Rule != "" {
		b.addEntry(e, Entry{Kind: KindRule, Text: fmt.Sprintf("calls that %s matches need no approval until the run ends (--always %s, in the answer to %s)", out.Rule, out.Always, permission.VisibleLine(out.Query)), By: strings.Join(out.By, ", ")})
	}
}

func (b *builder) addQuestion(e client.Event, d event.AgentParked) {
	if d.Call == "" {
		return
	}
	c := &b.call(e, d.Call, "").call
	asked := e.TS
	// the question was asked again for the second approval
	if d.ApprovedBy != "" && c.Question != nil && c.Question.Query == d.Query {
		asked = c.Question.At
	}
	c.Question = &Question{Query: d.Query, At: asked, Reason: d.Reason, Digest: d.Digest, Open: true, Approvals: d.Approvals}
	if d.DueMS > 0 {
		c.Question.Expires = event.FormatStamp(d.DueMS)
	}
	c.Digest = cmp.Or(c.Digest, d.Digest)
	if c.Outcome == NotBegun {
		c.Outcome = Waiting
	}
	b.queries[callKey{e.Agent, d.Query}] = d.Call
}

// addAnswer records an answer. The decision about a call follows in the same step; that about an attempt of unknown
// outcome has no event of its own.
func (b *builder) addAnswer(e client.Event, d event.QueryAnswered) {
	id, about := b.queries[callKey{e.Agent, d.Query}]
	if !about {
		b.addEntry(e, Entry{Kind: KindAgent, Text: "question " + permission.VisibleLine(d.Query) + " answered: " + showText(string(d.Decision)), By: showText(d.By)})
		return
	}
	c := &b.call(e, id, "").call
	if d.Missing > 0 { // another person has to approve, too
		c.Decisions = append(c.Decisions, newAnswer(e, d))
		return
	}
	delete(b.queries, callKey{e.Agent, d.Query})
	if q := c.Question; q != nil {
		q.Open = false
	}
	if c.Outcome == Waiting {
		c.Outcome = NotBegun
	}
	if c.Lost == 0 || c.Outcome != Unknown {
		b.answers[callKey{e.Agent, id}] = d
		return
	}
	c.Decisions = append(c.Decisions, newAnswer(e, d))
}

// newAnswer is an answer that no decision of the loop follows.
func newAnswer(e client.Event, d event.QueryAnswered) Decision {
	out := Decision{At: e.TS, Author: ByPerson, Decision: spec.HookDecision(d.Decision), Why: showText(d.Why), Digest: d.Digest, Query: d.Query, Always: d.Always}
	if d.By == event.ByClock {
		out.Author = ByClock
	} else if d.By != "" {
		out.By = []string{showText(d.By)}
	}
	return out
}

func (b *builder) addEntry(e client.Event, n Entry) {
	n.At, n.Turn = e.TS, e.Turn
	if n.Agent = e.Agent; e.Agent == "super" {
		n.Agent = ""
	}
	b.audit.Entries = append(b.audit.Entries, &n)
}

// addChange adds a change of what the run may do.
func (b *builder) addChange(e client.Event) {
	switch e.Kind {
	case event.KindRunStarted:
		d := client.DataOf[event.RunStarted](e)
		text := "began with " + limitText(d.Limits)
		if d.Policy > 0 {
			text += fmt.Sprintf(", and policy version %d", d.Policy)
		}
		b.addEntry(e, Entry{Kind: KindRun, Text: text, By: showText(d.Caller)})
	case event.KindRunFinished:
		d := client.DataOf[event.Result](e)
		b.audit.Ended = true
		b.addEntry(e, Entry{Kind: KindRun, Text: "ended: " + showText(string(d.Reason))})
	case event.KindWarningRaised:
		b.addCancel(e, client.DataOf[event.Warning](e))
	case event.KindAgentTainted:
		d := client.DataOf[event.AgentTainted](e)
		b.addEntry(e, Entry{Kind: KindTaint, Text: showText(permission.DescribeTaint(&d.Taint))})
	case event.KindGuardrailTriggered:
		b.addFinding(e, client.DataOf[event.GuardrailFired](e))
	case event.KindPolicyApplied:
		d := client.DataOf[event.PolicyApplied](e)
		b.addEntry(e, Entry{Kind: KindPolicy, Text: fmt.Sprintf("version %d in force, rules: %d", d.Version, d.Rules), By: showText(d.By)})
	case event.KindPermissionsChanged:
		d := client.DataOf[event.PermissionsChanged](e)
		b.addEntry(e, Entry{Kind: KindPermissions, Text: permissionsText(d), By: showText(d.By)})
	case event.KindContextChanged:
		d := client.DataOf[event.ContextChanged](e)
		b.addEntry(e, Entry{Kind: KindContext, Text: contextText(d), By: showText(d.By)})
	case event.KindBudgetChanged:
		d := client.DataOf[event.BudgetChanged](e)
		text := limitText(spec.RunLimits{Tokens: d.Limit.Tokens, Nano: d.Limit.Nano, Calls: d.Limit.Calls})
		if d.Frozen {
			text = "frozen: only closing turns, " + text
		}
		if t := d.Subtree; t != nil {
			text = limitText(spec.RunLimits{Tokens: t.Limit.Tokens, Nano: t.Limit.Nano, Calls: t.Limit.Calls})
			if t.Frozen {
				text = "frozen: its agents wait, " + text
			}
			text = "of " + showText(string(d.Agent)) + " and the agents below it: " + text
		}
		b.addEntry(e, Entry{Kind: KindLimits, Text: text, By: showText(d.By)})
	}
}

// addCancel adds a cancel of the run, or of an agent, with its reason if there is more to it than who has canceled.
func (b *builder) addCancel(e client.Event, d event.Warning) {
	if d.What != event.WarningOfCancel {
		return
	}
	text := "canceled"
	if d.Agent != "" {
		text += " " + showText(d.Agent) + " and the agents below it"
	}
	if d.Now {
		text += " (now)"
	}
	if d.Why != "" && d.Why != event.CanceledByPerson {
		text += fmt.Sprintf(", because of %q,", showText(d.Why))
	}
	b.addEntry(e, Entry{Kind: KindCancel, Text: text, By: showText(d.By)})
}

// permissionsText says what was taken from an agent and those below it.
func permissionsText(d event.PermissionsChanged) string {
	parts := []string{"of " + showText(string(d.Agent)) + " and the agents below it"}
	if d.Mode != "" {
		parts = append(parts, "mode "+showText(string(d.Mode)))
	}
	for _, rule := range d.Deny {
		parts = append(parts, "deny "+showText(rule))
	}
	for _, rule := range d.Ask {
		parts = append(parts, "ask "+showText(rule))
	}
	return strings.Join(parts, ", ")
}

// contextText says which layers and tools of an agent were changed.
func contextText(d event.ContextChanged) string {
	var parts []string
	for _, l := range d.Layers {
		what := "layer "
		if l.Removed {
			what = "without layer "
		}
		parts = append(parts, what+showText(l.Name))
	}
	for _, name := range d.ToolsAdded {
		parts = append(parts, "tool "+showText(name))
	}
	for _, name := range d.ToolsRemoved {
		parts = append(parts, "without tool "+showText(name))
	}
	return strings.Join(parts, ", ")
}

// addFinding records what a guardrail found.
func (b *builder) addFinding(e client.Event, d event.GuardrailFired) {
	text := fmt.Sprintf("%s %s at %s", d.Severity, d.Decision, d.Point)
	if d.Report {
		text += " (only reported)"
	}
	if d.Call != "" {
		text += " " + d.Call + " " + d.Tool
	}
	b.addEntry(e, Entry{Kind: KindGuardrail, Text: permission.VisibleLine(text) + ": " + showText(d.Why), By: showText(strings.Join(d.Guardrails, ", ")), Severity: d.Severity})
}

func limitText(l spec.RunLimits) string {
	var parts []string
	if l.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", l.Tokens))
	}
	if l.Nano > 0 {
		parts = append(parts, "$"+strings.TrimSuffix(fmt.Sprintf("%.4f", float64(l.Nano)/budget.NanoPerUSD), "00"))
	}
	if l.Calls > 0 {
		parts = append(parts, fmt.Sprintf("%d tool calls", l.Calls))
	}
	if len(parts) == 0 {
		return "no limits"
	}
	return "limits: " + strings.Join(parts, ", ")
}

// Audit returns the entries so far: calls without a side effect only if something decided about them.
func (b *builder) finish() Audit {
	a := b.audit
	a.Entries = slices.Clone(b.audit.Entries)
	for _, r := range b.order {
		effect := r.call.Class != "" && r.call.Class != model.Read
		if !effect && len(r.call.Decisions) == 0 && r.call.Question == nil {
			continue
		}
		entry, call := r.entry, r.call
		if a.Ended && (call.Outcome == Running || call.Outcome == Waiting && call.Attempts > 0) {
			call.Outcome = Unknown
		}
		if q := call.Question; a.Ended && q != nil && q.Open {
			closed := *q
			closed.Open = false
			call.Question = &closed
		}
		entry.Call = &call
		a.Entries = append(a.Entries, &entry)
	}
	for _, e := range a.Entries {
		if e.Agent != "" {
			e.Name = permission.VisibleLine(b.names[e.Agent])
		}
	}
	slices.SortStableFunc(a.Entries, func(x, y *Entry) int { return cmp.Compare(x.At, y.At) })
	return a
}
