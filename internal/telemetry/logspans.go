package telemetry

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/metrics"
)

// logSpans makes the spans of one agent from the events of its log, in their order. It is a pure function of the
// events: each node that follows the log makes the same spans.
type logSpans struct {
	run, agent string
	texts      func(string) string // makes a text fit for a span; nil: spans have no texts

	entry      uint64 // the newest event that was read, and its number within the entry
	number     int
	name       string
	parent     spec.ID
	model      string
	goal       string
	startedMS  int64
	ended      bool
	transition spec.Transition
	chat       *openChat
	answered   *span // a chat whose answer is in a later event; only with texts
	calls      map[string]*openCall
	denied     map[string]bool
	done       []span
}

// openChat is a model call under way.
type openChat struct {
	event.ModelStarted
	turn    int
	beganMS int64
}

// openCall is a tool call under way.
type openCall struct {
	event.ToolCall
	turn      int
	beganMS   int64
	attemptMS int64 // when the last attempt began
	// background: the call is answered, and its child still works.
	background bool
}

func newLogSpans(run, agent string, texts func(string) string) *logSpans {
	return &logSpans{run: run, agent: agent, texts: texts, calls: map[string]*openCall{}, denied: map[string]bool{}}
}

// isFollowed reports whether events of a kind change the spans of an agent.
func isFollowed(kind event.Kind) bool {
	switch kind {
	case event.KindAgentStarted, event.KindAgentFinished, event.KindTurnStarted, event.KindModelStarted, event.KindModelFinished, event.KindModelRetry,
		event.KindErrorRaised, event.KindGatePaused, event.KindMessageAssistant, event.KindToolStarted, event.KindToolFinished, event.KindToolRetry,
		event.KindToolDenied, event.KindDelegationRequested, event.KindDelegationBackground, event.KindDelegationFinished:
		return true
	}
	return false
}

// isNew reports whether the event comes after those that were read: a new activation publishes the last ones again.
func (l *logSpans) isNew(e event.Published) bool {
	i := numberOf(e)
	return e.Seq > l.entry || e.Seq == l.entry && i > l.number
}

// numberOf returns the number of an event within its entry, which ends its id.
func numberOf(e event.Published) int {
	i, err := strconv.Atoi(e.ID[strings.LastIndexByte(e.ID, '.')+1:])
	if err != nil {
		return 0 // activation.EventsOf makes no such id
	}
	return i
}

// read reads the next event, and returns the spans that it ends.
func (l *logSpans) read(e event.Published) []span {
	if l.answered != nil && (e.Seq > l.entry || e.Kind == event.KindAgentFinished) {
		l.releaseAnswered()
	}
	l.entry, l.number = e.Seq, numberOf(e)
	at := stampOf(e)
	switch d := e.Data.(type) {
	case event.AgentStarted:
		l.name, l.parent, l.model, l.goal, l.startedMS = d.Name, d.Parent, d.Model, l.text(d.Goal), at
	case event.AgentFinished:
		l.endAgent(d, at)
	case event.TurnStarted:
		l.transition = d.Transition
	case event.ModelStarted:
		if l.chat != nil && l.chat.Reservation != d.Reservation {
			l.endChat(event.ModelFinished{Model: l.chat.Model}, at, errorLost)
		}
		if l.chat == nil {
			l.chat = &openChat{d, e.Turn, at}
		}
	case event.ModelFinished:
		l.endChat(d, at, string(d.Error))
	case event.GatePaused:
		l.endChat(event.ModelFinished{Model: d.Model, Detail: d.Why}, at, errorThrottled)
	case event.Said:
		l.addAnswer(e.Kind, d)
	case event.ToolDecided:
		if e.Kind == event.KindToolDenied {
			l.denied[d.Call] = true
		}
	case event.ToolRetry:
		if c := l.calls[d.Call]; c != nil {
			l.endAttempt(c, at, d.TookMS, errorTool)
		}
	case event.ToolCall:
		l.readCall(e, d, at)
	}
	done := l.done
	l.done = nil
	return done
}

// text returns a text as spans hold it; "" without content.
func (l *logSpans) text(s string) string {
	if l.texts == nil {
		return ""
	}
	return l.texts(s)
}

// newSpan makes a span of the agent.
func (l *logSpans) newSpan(id, parent spanID, name string, kind tracepb.Span_SpanKind, startMS, endMS int64) span {
	s := span{run: l.run, id: id, parent: parent, name: name, kind: kind, startMS: startMS, endMS: max(startMS, endMS)}
	s.set(keyAgentName, l.name)
	s.set(keyAgentID, l.agent)
	return s
}

// endAgent ends the span of the agent, and the spans of its open calls.
func (l *logSpans) endAgent(d event.AgentFinished, at int64) {
	if l.ended {
		return
	}
	l.ended = true
	if l.chat != nil {
		l.endChat(event.ModelFinished{Model: l.chat.Model}, at, errorLost)
	}
	l.releaseAnswered()
	for _, call := range sortedKeys(l.calls) {
		c := l.calls[call]
		l.endCall(c, event.ToolCall{Call: call, Tool: c.Tool, Child: c.Child}, at, errorUnended)
	}
	parent := runSpanID(l.run)
	if l.parent != "" {
		parent = delegationSpanID(l.run, l.agent)
	}
	s := l.newSpan(agentSpanID(l.run, l.agent), parent, "invoke_agent "+cmp.Or(d.Name, l.name), tracepb.Span_SPAN_KIND_INTERNAL, l.startedMS, at)
	s.set(keyOperation, "invoke_agent")
	s.setModel(l.model)
	s.setUsage(d.Usage)
	s.set(keyStopReason, string(d.Reason))
	s.set(keyPartial, d.Partial)
	s.set(keyTurns, int64(d.Turns))
	s.set(keyCalls, int64(d.Calls))
	s.addText(keyInputText, messageJSON("user", l.goal))
	s.addText(keyOutputText, messageJSON("assistant", l.text(d.Text)))
	if event.Subtype(d.Reason) != "success" {
		s.setError(string(d.Reason), l.text(d.Detail))
	}
	l.done = append(l.done, s)
}

// endChat ends the model call under way, if there is one.
func (l *logSpans) endChat(d event.ModelFinished, at int64, failure string) {
	c := l.chat
	if c == nil {
		return
	}
	l.chat = nil
	l.releaseAnswered()
	began := c.beganMS
	if d.TookMS > 0 { // without the time in which the call waited for its turn
		began = max(began, at-d.TookMS)
	}
	provider, name := metrics.ConventionNames(c.Model)
	kind := tracepb.Span_SPAN_KIND_CLIENT
	if strings.HasPrefix(provider, metrics.OwnProviders) {
		kind = tracepb.Span_SPAN_KIND_INTERNAL // the model is in this process
	}
	s := l.newSpan(chatSpanID(l.run, l.agent, c.Reservation), agentSpanID(l.run, l.agent), "chat "+name, kind, began, at)
	s.set(keyOperation, "chat")
	s.setModel(c.Model)
	if d.Stop != "" {
		s.set(keyFinish, []string{string(d.Stop)})
	}
	if d.UsageKnown {
		s.setUsage(d.Usage)
		s.set(keyCost, d.CostUSD)
	}
	if c.turn > 0 {
		s.set(keyTurn, int64(c.turn))
	}
	if c.Purpose != "" {
		s.set(keyPurpose, c.Purpose)
	} else if l.transition != "" {
		s.set(keyTransition, string(l.transition))
	}
	s.setError(failure, l.text(d.Detail))
	if l.texts != nil && failure == "" {
		l.answered = &s
		return
	}
	l.done = append(l.done, s)
}

// addAnswer adds the answer of the model to its call.
func (l *logSpans) addAnswer(kind event.Kind, d event.Said) {
	if l.answered == nil || kind != event.KindMessageAssistant {
		return
	}
	l.answered.addText(keyOutputText, messageJSON("assistant", l.text(d.Text)))
	l.releaseAnswered()
}

func (l *logSpans) releaseAnswered() {
	if l.answered != nil {
		l.done, l.answered = append(l.done, *l.answered), nil
	}
}

// readCall reads an event about a tool call.
func (l *logSpans) readCall(e event.Published, d event.ToolCall, at int64) {
	c := l.calls[d.Call]
	d.Tool = checkedToolName(d.Tool)
	switch e.Kind {
	case event.KindToolStarted, event.KindDelegationRequested:
		if c != nil {
			l.endAttempt(c, at, 0, errorLost)
			c.Attempt, c.attemptMS = d.Attempt, at
			return
		}
		d.Args, d.Text, d.Metrics = l.text(d.Args), "", nil
		l.calls[d.Call] = &openCall{ToolCall: d, turn: e.Turn, beganMS: at, attemptMS: at}
	case event.KindDelegationBackground:
		if c != nil {
			c.background = true
		}
	case event.KindToolFinished, event.KindDelegationFinished:
		if c == nil { // it did not run
			c = &openCall{ToolCall: event.ToolCall{Call: d.Call, Tool: d.Tool, Child: d.Child}, turn: e.Turn, beganMS: at}
		}
		failure := ""
		switch {
		case l.denied[d.Call]:
			failure = errorDenied
		case d.Error:
			failure = errorTool
		}
		l.endCall(c, d, at, failure)
	}
}

// endCall ends a tool call.
func (l *logSpans) endCall(c *openCall, d event.ToolCall, at int64, failure string) {
	delete(l.calls, d.Call)
	delete(l.denied, d.Call)
	l.endAttempt(c, at, d.TookMS, failure)
	s := l.newSpan(l.callSpanID(c), agentSpanID(l.run, l.agent), "execute_tool "+c.Tool, tracepb.Span_SPAN_KIND_INTERNAL, c.beganMS, at)
	s.set(keyOperation, "execute_tool")
	s.set(keyToolName, c.Tool)
	s.set(keyToolType, "function")
	s.set(keyCallID, c.Call)
	if c.turn > 0 {
		s.set(keyTurn, int64(c.turn))
	}
	if c.Class != "" {
		s.set(keyClass, string(c.Class))
	}
	if c.Attempt > 1 {
		s.set(keyAttempts, int64(c.Attempt))
	}
	if c.Child != "" {
		s.set(keyChild, string(c.Child))
	}
	if c.background {
		s.set(keyBackground, true)
	}
	s.addText(keyArguments, c.Args)
	s.addText(keyToolResult, l.text(d.Text))
	s.setError(failure, "")
	l.done = append(l.done, s)
}

func (l *logSpans) callSpanID(c *openCall) spanID {
	if c.Child != "" {
		return delegationSpanID(l.run, string(c.Child))
	}
	return toolSpanID(l.run, l.agent, c.Call)
}

// endAttempt ends an attempt of a call of an MCP server.
func (l *logSpans) endAttempt(c *openCall, at, tookMS int64, failure string) {
	server, tool, ok := mcpTool(c.Tool)
	if !ok || c.attemptMS == 0 {
		return
	}
	began := c.attemptMS
	if tookMS > 0 {
		began = max(began, at-tookMS)
	}
	c.attemptMS = 0
	s := l.newSpan(mcpSpanID(l.run, l.agent, c.Call, c.Attempt), l.callSpanID(c), "tools/call "+tool, tracepb.Span_SPAN_KIND_CLIENT, began, at)
	s.set(keyMCPMethod, "tools/call")
	s.set(keyOperation, "execute_tool")
	s.set(keyToolName, tool)
	s.set(keyMCPServer, server)
	s.setError(failure, "")
	l.done = append(l.done, s)
}

func sortedKeys(calls map[string]*openCall) []string {
	var keys []string
	for k := range calls {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// messageJSON is one message in the form of the semantic conventions; "" without text.
func messageJSON(role, text string) string {
	if text == "" {
		return ""
	}
	type part struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	type message struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}
	raw, err := json.Marshal([]message{{role, []part{{"text", text}}}})
	if err != nil {
		return "" // these types always encode
	}
	return string(raw)
}
