package top

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/amount"
	"github.com/troupe-run/troupe/internal/term"
)

// targetRun returns the run that an action of the view is for; "" if there is none that has not ended.
func targetRun(m *Model) string {
	if m.view == viewRuns {
		r, ok := m.findRun(m.lists[viewRuns].selected())
		if !ok || r.State == client.RunFinished {
			return ""
		}
		return r.RunID
	}
	if m.run == nil || m.run.isFinished() {
		return ""
	}
	return m.run.id
}

// targetAgent returns the agent that an action of the view is for; "" for the first one.
func targetAgent(m *Model) string {
	switch m.view {
	case viewTree, viewTimeline:
		return m.lists[m.view].selected()
	case viewAgent, viewTranscript:
		return m.run.agent
	}
	return ""
}

func hasEnded(m *Model, agent string) bool {
	reason, _ := m.run.tree().EndOf(agent)
	return reason != ""
}

// askCancel asks whether the run is to be canceled, or only the selected agent and those below it.
func askCancel(m *Model) []Effect {
	run, agent := targetRun(m), targetAgent(m)
	send := func(agent string, now bool) func(m *Model) []Effect {
		return func(m *Model) []Effect {
			m.notice = "sending the cancel"
			return []Effect{SendCancel{client.CancelRequest{RunID: run, Agent: agent, Now: now, Why: event.CanceledByPerson, By: m.user, WaitMS: -1}}}
		}
	}
	p := &prompt{label: "cancel run " + run + "?", choices: []choice{{"y", "yes, after running calls end", send("", false)}, {"!", "now, abort running calls", send("", true)}}}
	if agent != "" && m.run.tree().ParentOf(agent) != "" && !hasEnded(m, agent) {
		p.choices = append(p.choices, choice{"a", "only " + cleanLine(m.run.tree().AgentName(agent)), send(agent, false)})
	}
	m.prompt = p
	return nil
}

// askBudget asks for a new limit of the run, and then for a confirmation.
func askBudget(m *Model) []Effect {
	askLimit(m, targetRun(m), "", "new limit (200k tokens, $2, 30 calls, or freeze):")
	return nil
}

// askLimit asks for a new limit of a run. text is what was typed before, which is no limit: it stays to be corrected.
func askLimit(m *Model, run, text, label string) {
	m.prompt = &prompt{label: label, text: text, done: func(m *Model, text string) []Effect {
		r, what, err := parseLimit(text)
		if err != nil {
			askLimit(m, run, text, "not a limit (200k tokens, $2, 30 calls, or freeze):")
			return nil
		}
		r.RunID, r.By = run, m.user
		label := fmt.Sprintf("set the limit of run %s to %s%s?", run, what, currentLimit(m, run, r))
		if r.Freeze {
			label = fmt.Sprintf("freeze run %s? Agents get only their closing turns", run)
		}
		m.prompt = &prompt{label: label, choices: []choice{{"y", "yes", func(m *Model) []Effect {
			m.notice = "sending the limit"
			return []Effect{SendBudget{r}}
		}}}}
		return nil
	}}
}

// currentLimit returns the limit that a request would replace, as " (now 200k)"; "" if the screen does not know it.
func currentLimit(m *Model, run string, r client.BudgetRequest) string {
	tokens, nano := int64(-1), int64(-1)
	if m.run != nil && m.run.id == run && !m.run.tree().Began.IsZero() {
		tokens, nano = m.run.tree().Budget.Limit.Tokens, m.run.tree().Budget.Limit.Nano
	} else if info, ok := m.findRun(run); ok && info.Result != nil {
		tokens, nano = info.Result.Budget.Limit, int64(info.Result.Budget.LimitUSD*budget.NanoPerUSD)
	}
	switch {
	case r.Limits.Tokens > 0 && tokens >= 0:
		return " (now " + limitText(tokens, term.FormatTokens) + ")"
	case r.Limits.Nano > 0 && nano >= 0:
		return " (now " + limitText(nano, moneyText) + ")"
	}
	return ""
}

// limitError is a text that is no limit.
type limitError struct{ text string }

func (e limitError) Error() string {
	return fmt.Sprintf("%q is not a limit (use 200k for tokens, $2 for dollars, 30 calls, or freeze)", e.text)
}

// parseLimit reads a new limit. what names it.
func parseLimit(text string) (r client.BudgetRequest, what string, err error) {
	word := strings.ToLower(strings.TrimSpace(text))
	if word == "freeze" {
		return client.BudgetRequest{Freeze: true}, "", nil
	}
	bad := limitError{cleanLine(term.Truncate(text, agentRoom))}
	if dollars, ok := strings.CutPrefix(word, "$"); ok {
		v, err := amount.ParseUSD(strings.TrimSpace(dollars))
		if err != nil || v <= 0 {
			return r, "", bad
		}
		nano := int64(math.Round(v * budget.NanoPerUSD))
		return client.BudgetRequest{Patch: true, Limits: spec.RunLimits{Nano: nano}}, moneyText(nano), nil
	}
	if calls, ok := strings.CutSuffix(word, "calls"); ok {
		n, err := strconv.ParseInt(strings.TrimSpace(calls), 10, 64)
		if err != nil || n <= 0 {
			return r, "", bad
		}
		return client.BudgetRequest{Patch: true, Limits: spec.RunLimits{Calls: n}}, term.FormatCount(int(n), "tool call"), nil
	}
	n, err := amount.ParseTokens(strings.TrimSpace(strings.TrimSuffix(word, "tokens")))
	if err != nil || n < 1 {
		return r, "", bad
	}
	return client.BudgetRequest{Patch: true, Limits: spec.RunLimits{Tokens: n}}, term.FormatTokens(n) + " tokens", nil
}

// askMessage asks for a message to the agent of the view.
func askMessage(m *Model) []Effect {
	run, agent := targetRun(m), targetAgent(m)
	name := "the root agent"
	if agent != "" {
		name = m.run.tree().AgentName(agent)
	}
	m.prompt = &prompt{label: "message to " + cleanLine(name) + ":", done: func(m *Model, text string) []Effect {
		if text == "" {
			m.notice, m.noticeIsError = "no message was sent: it was empty", true
			return nil
		}
		m.notice = "sending the message"
		return []Effect{SendMessage{client.SteerRequest{RunID: run, Agent: agent, Text: text}}}
	}}
	return nil
}

// askFilter asks for the words that the rows of the view must have, and filters while the person types.
func askFilter(m *Model) []Effect {
	before, v := m.filters[m.view], m.view
	set := func(m *Model, text string) { m.filters[v] = text }
	m.prompt = &prompt{label: "/", text: before, typed: set, done: func(m *Model, text string) []Effect {
		set(m, text)
		return nil
	}, left: func(m *Model) { set(m, before) }}
	return nil
}
