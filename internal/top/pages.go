package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/term"
)

// agentText shows the selected agent: its row, its state, and its events.
func agentText(m *Model) []string {
	r, s := m.run, m.style
	t := r.tree()
	if r.agent == "" {
		return []string{s.Dim("no agent has started yet")}
	}
	pairs := [][2]string{{"id", cleanLine(r.agent)}}
	if parent := t.ParentOf(r.agent); parent != "" {
		pairs = append(pairs, [2]string{"parent", cleanLine(t.AgentName(parent)) + " (" + cleanLine(parent) + ")"})
	}
	if reason, detail := t.EndOf(r.agent); reason != "" {
		pairs = append(pairs, [2]string{"stopped", cleanLine(string(reason)) + " " + cleanLine(detail)})
	}
	for _, q := range m.questions {
		if q.RunID == r.id && q.Agent == r.agent {
			pairs = append(pairs, [2]string{"asks", term.QuestionGist(clip.Prefix(q.Question, eventColumnsMax)) + " (4 shows it)"})
		}
	}
	lines := append([]string{t.Row(s, r.agent, m.width, m.now)}, term.FormatPairs(s, pairs, m.width)...)
	lines = append(lines, "", s.Bold("Events"))
	return append(lines, r.events.lines(m, func(e eventLine) bool { return e.agent == r.agent })...)
}

// stopText shows why the run has stopped, or what it waits for.
func stopText(m *Model) []string {
	r, s := m.run, m.style
	result := r.tree().Result
	if result == nil && r.known && r.info.State == client.RunFinished {
		result = r.info.Result
	}
	pairs := [][2]string{{"state", cleanLine(r.state())}}
	var answer []string
	if result == nil {
		pairs = append(pairs, [2]string{"next", nextStep(m)})
	} else {
		used, cost := spendTexts(spendOf(client.RunInfo{Result: result}))
		pairs = append(pairs, [2]string{"reason", term.FormatReason(result.Reason)}, [2]string{"detail", cleanLine(result.Detail)},
			[2]string{"turns", fmt.Sprint(result.Turns)}, [2]string{"tokens", used}, [2]string{"cost", cost})
		answer = append([]string{"", s.Bold("Result")}, s.Markdown(term.CleanText(clip.Prefix(result.Text, textBytesMax)), m.width)...)
	}
	lines := term.FormatPairs(s, pairs, m.width)
	decisions := r.events.lines(m, isDecision)
	lines = append(lines, "", s.Bold("The last decisions"))
	lines = append(lines, decisions[max(0, len(decisions)-decisionsMax):]...)
	return append(lines, answer...)
}

// nextStep says what a run that has not ended waits for.
func nextStep(m *Model) string {
	switch asks := m.run.tree().CountAsking(); {
	case m.run.known && m.run.info.State == client.RunInterrupted:
		return "no node is there to continue it: troupe run --resume " + cleanLine(m.run.id)
	case asks > 0:
		return term.FormatCount(asks, "agent") + verb(asks, " waits", " wait") + " for a person: 4 shows the questions"
	case m.run.known && m.run.info.State == client.RunQueued:
		return "it waits until fewer runs are live"
	}
	return "working"
}

// isDecision reports whether an event explains why an agent or a run stops or goes on.
func isDecision(e eventLine) bool {
	switch e.kind {
	case event.KindStopAllowed, event.KindStopVetoed, event.KindBudgetExhausted, event.KindBudgetDenied, event.KindBudgetOverrun, event.KindLimitSoft, event.KindLimitNear,
		event.KindLoopDetected, event.KindWarningRaised, event.KindErrorRaised, event.KindToolDenied, event.KindGuardrailTriggered, event.KindGuardrailEscalated, event.KindAgentFinished,
		event.KindRunFinished, event.KindModelFallback, event.KindPolicyApplied, event.KindPermissionsChanged, event.KindBudgetChanged:
		return true
	}
	return false
}

const (
	amountColumns = 16
	agentRoom     = 24
)

// budgetText shows the pool of the run, and what each agent has used of it.
func budgetText(m *Model) []string {
	b, s := m.run.budget, m.style
	if b.Run == "" {
		return []string{s.Dim("reading …")}
	}
	pool := b.Budget
	lines := []string{m.run.tree().Summary(s, m.now), "", s.Dim(amountRow("", "TOKENS", "MONEY", "TOOL CALLS"))}
	rows := []struct {
		name string
		of   budget.Amount
		is   bool
	}{{"used", pool.Used, true}, {"reserved", pool.Reserved, true}, {"for closing turns", pool.Kept, true}, {"reserved shares", pool.Carved, !pool.Carved.Zero()},
		{"in full (cost unknown)", pool.Unknown, !pool.Unknown.Zero()}, {"overrun", pool.Overrun, !pool.Overrun.Zero()}}
	lines = append(lines, amountRow("limit", limitText(pool.Limit.Tokens, term.FormatTokens), limitText(pool.Limit.Nano, moneyText), limitText(pool.Limit.Calls, countText)))
	for _, row := range rows {
		if row.is {
			lines = append(lines, amountRow(row.name, term.FormatTokens(row.of.Tokens), moneyText(row.of.Nano), countText(row.of.Calls)))
		}
	}
	if pool.Frozen {
		lines = append(lines, s.Yellow("frozen: only closing turns are granted; set a limit with b to lift the freeze"))
	}
	if pool.Waiting > 0 {
		lines = append(lines, s.Yellow(term.FormatCount(pool.Waiting, "reservation")+verb(pool.Waiting, " waits", " wait")+" until others settle"))
	}
	lines = append(lines, "", s.Dim(amountRow("AGENT", "USED", "RESERVED", "LIMIT")))
	for _, a := range b.Agents {
		limit := "the run's"
		if a.Limit.Tokens > 0 {
			limit = term.FormatTokens(a.Limit.Tokens)
		}
		lines = append(lines, amountRow(cleanLine(a.Name)+" "+cleanLine(string(a.ID)), term.FormatTokens(a.Used.Tokens), term.FormatTokens(a.Reserved.Tokens), limit))
	}
	if b.AgentsLeftOut > 0 {
		lines = append(lines, s.Dim(fmt.Sprintf("of the agents nearest to the root; %d more are not listed", b.AgentsLeftOut)))
	}
	if len(b.Agents) == budgetAgentsMax {
		lines = append(lines, s.Dim(fmt.Sprintf("the %d agents that used most; troupe budget %s lists all", budgetAgentsMax, cleanLine(m.run.id))))
	}
	return lines
}

func amountRow(name string, cells ...string) string {
	row := term.Pad(name, agentRoom)
	for _, c := range cells {
		row += fmt.Sprintf("%*s", amountColumns, c)
	}
	return row
}

func limitText(v int64, format func(int64) string) string {
	if v == 0 {
		return "none"
	}
	return format(v)
}

func moneyText(nano int64) string { return term.FormatUSD(float64(nano)/budget.NanoPerUSD, false) }

func countText(n int64) string { return fmt.Sprint(n) }

// helpText lists the keys of the view.
func helpText(m *Model) []string {
	lines := []string{m.style.Bold("Keys of " + string(m.view)), ""}
	place := ""
	for _, b := range bindings(m.view) {
		if b.place != "" { // many lines would say the same
			if b.place != place {
				lines, place = append(lines, term.Pad(b.place, helpColumns)+" show "+b.help), b.place
			}
			continue
		}
		text := term.Pad(strings.Join(slices.Compact(slices.Clone(b.names())), " "), helpColumns) + " " + b.help
		if b.when != nil && !b.when(m) {
			text = m.style.Dim(text + " (not now)")
		}
		lines = append(lines, text)
	}
	return append(lines, "", m.style.Dim("any key closes this help; q quits"))
}

const helpColumns = 22
