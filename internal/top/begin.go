package top

import (
	"fmt"
	"strconv"
)

// Begun is the answer to StartRun and ForkRun: the new run, and what the command start would have said.
type Begun struct {
	Run, Notes string
}

const taskRows = 6 // of a text that is typed in a form

// limitFields are the limits that the form of a run offers.
func limitFields(hint string) []field {
	return []field{{label: "Limit in tokens", hint: hint}, {label: "Limit in dollars", hint: hint}}
}

// askStart asks for a new run.
func askStart(m *Model) []Effect {
	id := m.newID()
	fields := append([]field{
		{label: "Task", isRequired: true, rows: taskRows, hint: "what to do"},
		{label: "Agent", hint: "empty: the default one"},
		{label: "Agent files", hint: "directory of agent files; empty: those of the node"},
		{label: "Directory", hint: "empty: none, the agents work without files"},
		{label: "Model", hint: "PROVIDER/MODEL; empty: by the keys of the node"},
	}, limitFields("empty: that of your settings")...)
	return m.openForm(&form{title: "Start a run", word: "start", fields: append(fields, field{label: "Turns of the root", hint: "empty: that of your settings"}, field{label: "Tool calls", hint: "empty: that of your settings"}),
		done: func(_ *Model, v []string) []Effect {
			return []Effect{StartRun{ID: id, Prompt: v[0], Agent: v[1], Agents: v[2], Dir: v[3], Model: v[4], MaxTokens: v[5], MaxUSD: v[6], MaxTurns: v[7], MaxCalls: v[8]}}
		}})
}

// askFork asks for a fork of the run after a turn of the agent of the transcript.
func askFork(m *Model) []Effect {
	id, run, agent := m.newID(), m.run.id, m.run.agent
	turn, newest := turnToFork(m), completedTurns(m)
	fields := append([]field{
		{label: "After turn", isRequired: true, text: strconv.Itoa(turn), hint: fmt.Sprintf("0 to %d", newest)},
		{label: "Message", rows: taskRows, hint: "for the next turn; empty: none"},
		{label: "Directory", hint: "empty: a copy beside that of this run, if it has one"},
		{label: "Agent files", hint: "directory of agent files, if this run has one"},
		{label: "Model", hint: "PROVIDER/MODEL; empty: that of this run"},
	}, limitFields("empty: that of this run")...)
	return m.openForm(&form{title: "Fork run " + run + " after a turn of " + m.run.tree().AgentName(agent) + " (" + agent + ")", word: "fork", at: 1, fields: fields,
		notes: []string{"A new run begins as this one was at that point, with all its agents. This run goes on unchanged."},
		done: func(m *Model, v []string) []Effect {
			at, err := strconv.Atoi(v[0])
			if err != nil || at < 0 || at > newest {
				m.form.at, m.form.problem = 0, fmt.Sprintf("After turn is a number from 0 to %d: the turns that the agent has completed", newest)
				return nil
			}
			return []Effect{ForkRun{ID: id, Run: run, Agent: agent, Turn: at, Prompt: v[1], Dir: v[2], Agents: v[3], Model: v[4], MaxTokens: v[5], MaxUSD: v[6]}}
		}})
}

// canFork reports whether the agent of the transcript has completed a turn.
func canFork(m *Model) bool { return completedTurns(m) > 0 }

// completedTurns returns the last turn of the transcript that the agent has completed; the reply of the one after it may be
// there, too.
func completedTurns(m *Model) int {
	return min(m.run.transcript.newestTurn(), m.run.tree().FinishedTurn(m.run.agent))
}

// turnToFork returns the turn that the last line on the screen belongs to, or the last one that is complete.
func turnToFork(m *Model) int { return min(m.run.transcript.turnAt(m.lastLine()), completedTurns(m)) }

// comparedRun returns the run of the view, which another one is compared with; "": there is none.
func comparedRun(m *Model) string {
	if m.view == viewRuns {
		return m.lists[viewRuns].selected()
	}
	if m.run == nil {
		return ""
	}
	return m.run.id
}

// askCompare asks for the run to compare the one of the view with.
func askCompare(m *Model) []Effect {
	run := comparedRun(m)
	return m.openForm(&form{title: "Compare run " + run + " with another one", word: "compare", fields: []field{{label: "Run", hint: "id, its beginning, or last; empty: what it is a fork of"}},
		done: func(m *Model, v []string) []Effect { return []Effect{FetchComparison{A: v[0], B: run}} }})
}

// handleFormAnswer applies the answer to the request of the open form, and reports whether it was one.
func handleFormAnswer(m *Model, f Fetched) (effects []Effect, ok bool) {
	if m.form == nil || m.form.sent == nil || m.form.sent != f.Effect {
		return nil, false
	}
	m.form.sent = nil
	if f.Problem != "" {
		m.form.problem = f.Problem
		if f.Lost {
			m.form.problem += "; ⏎ sends it again"
			if runOf(f.Effect) != "" {
				m.form.problem += ": it begins one run at most"
			}
		}
		return nil, true
	}
	m.form = nil
	switch data := f.Data.(type) {
	case Begun:
		effects = m.openRun(data.Run)
		m.notice = data.Notes
	case Compared:
		m.compared = data
		m.open(viewCompare)
	}
	return effects, true
}

// runOf returns the id of the run that an effect begins; "": it begins none.
func runOf(e Effect) string {
	switch e := e.(type) {
	case StartRun:
		return e.ID
	case ForkRun:
		return e.ID
	}
	return ""
}
