package supervisor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
)

const sendTool = "send_message"

// handleSend delivers a message from one agent to another, and reports the outcome to
// the sender. The supervisor delivers it because only the supervisor knows which
// members are live: a message never wakes a log that has ended.
func handleSend(s State, from spec.ID, f agent.Send) (State, []Effect) {
	m, ok := s.Member(from)
	if !ok || m.Done {
		return s, nil
	}
	answer := func(fail bool, format string, args ...any) []Effect {
		return []Effect{Tell{To: from, Fact: agent.Returned{Call: f.Call, Error: fail, Text: fmt.Sprintf(format, args...)}}}
	}
	switch limit := s.Run.Limits.Messages; {
	case s.Cancel != nil || s.Phase != Live || m.Stopping: //mutant:message-after-the-cancel
		return s, answer(true, "not sent: %s", whyEnding(s, m))
	case !slices.Contains(m.Rights, sendTool):
		return s, answer(true, "not sent: this agent may not send messages")
	case len(f.Text) > agent.MessageBytesMax:
		return s, answer(true, "not sent: a message may have %d bytes", agent.MessageBytesMax)
	case s.Messages >= limit: //mutant:messages-unlimited
		return s, answer(true, "not sent: the agents of a run may send %d messages", limit)
	}
	to, why := s.roster.findRecipient(m, f.To)
	switch to = s.roster.holder(to); {
	case why == "" && to.ID == from:
		why = "that is yourself"
	case why == "" && to.Done: //mutant:message-to-a-dead-holder
		why = fmt.Sprintf("%s (%s), which had the conversation, has finished: %s", to.ID, to.Name, to.Outcome.Reason)
	}
	if why != "" {
		return s, answer(true, "not sent: %s", why) //mutant:message-not-answered
	}
	s.Messages++
	return s, append([]Effect{Tell{To: to.ID, Fact: agent.Messaged{From: from, Name: m.Name, Text: f.Text, Tainted: f.Tainted}}},
		answer(false, "sent to %s (%s), which reads it before its next turn", to.ID, to.Name)...)
}

func joinIDs(list []Member) string {
	names := make([]string, len(list))
	for i, m := range list {
		names[i] = string(m.ID)
	}
	return strings.Join(names, ", ")
}

// backgroundAnswer answers a delegation whose child works in the background.
func backgroundAnswer(m Member) agent.Returned {
	return agent.Returned{Call: m.Call, Live: true,
		Text: fmt.Sprintf("%s (%s) works in the background; its answer comes to you as a message", m.ID, m.Name)}
}

// childReport returns the fact that informs a parent of a child's end.
func childReport(m Member) agent.Fact {
	r := childAnswer(m)
	if !m.Background {
		return r
	}
	return agent.Messaged{From: m.ID, Name: m.Name, Call: m.Call, Text: r.Text, Error: r.Error, WorkedMS: r.WorkedMS, Tainted: r.Tainted}
}

// childAnswer is a child's result as its parent reads it. A partial result says so.
func childAnswer(m Member) agent.Returned {
	r := agent.Returned{Call: m.Call, Text: m.Outcome.Text, WorkedMS: m.WorkedMS, Tainted: m.Outcome.Tainted}
	if m.Handoffs > 0 {
		r.Outcome = &m.Outcome
	}
	if m.Outcome.Partial {
		r.Text = fmt.Sprintf("[stopped early: %s — this result is partial]", m.Outcome.Reason)
		for _, text := range []string{m.Outcome.Detail, m.Outcome.Text} {
			if text != "" {
				r.Text += "\n" + text
			}
		}
		r.Error = m.Outcome.Text == ""
		switch m.Outcome.Reason {
		case spec.MaxTurns, spec.MaxToolCalls, spec.TokenBudget, spec.CostBudget, spec.Timeout, spec.Vetoed,
			spec.MaxOutputTokens, spec.DiminishingReturns:
		default:
			r.Error = true
		}
	}
	return r
}
