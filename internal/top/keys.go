package top

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// binding is what keys do in a view.
type binding struct {
	keys []string
	show string // how the bottom line names the keys
	word string // what the bottom line says of them; "": they are in the help only
	// isSpare leaves them to the help where the bottom line is full.
	isSpare bool
	place   string // the keys of this and of others like it, which have one line of the help; "": it has one of its own
	help    string
	when    func(*Model) bool // nil: always
	do      func(*Model, Key) []Effect
}

// names returns the keys as the help names them.
func (b binding) names() []string {
	names := make([]string, len(b.keys))
	for i, k := range b.keys {
		names[i] = k
		if sign, ok := keySigns[k]; ok {
			names[i] = sign
		}
	}
	return names
}

var keySigns = map[string]string{"up": "↑", "down": "↓", "left": "←", "right": "→", "enter": "⏎"}

// act makes a binding of an action that needs no key.
func act(do func(*Model) []Effect) func(*Model, Key) []Effect {
	return func(m *Model, _ Key) []Effect { return do(m) }
}

// bindings returns what the keys of a view do, in the order of the bottom line. The first binding with the key wins.
func bindings(v view) []binding {
	list := slices.Concat(moveBindings(v), openBindings(v))
	switch v {
	case viewInbox, viewQuestions:
		list = append(list, questionBindings()...)
	case viewRuns:
		list = append(list, binding{keys: []string{"n"}, show: "n", word: "new", help: "start a run", do: act(askStart)})
	case viewLog:
		list = append(list, entryBindings()...)
	case viewTranscript:
		list = append(list, binding{keys: []string{"f"}, show: "f", word: "fork", help: "fork the run after the turn that the line below names", when: canFork, do: act(askFork)}, binding{keys: []string{"e"}, show: "e", word: "unfold", help: "show calls and results whole, or folded", do: func(m *Model, _ Key) []Effect {
			t := &m.run.transcript
			t.unfold, t.drawn = !t.unfold, false
			return nil
		}})
	}
	if isFiltered(v) {
		list = append(list, binding{keys: []string{"/"}, show: "/", word: shortWord(v, "filter"), help: "show only the rows with these words", do: act(askFilter)})
	}
	if v == viewRuns || v != viewInbox && v != viewNodes && v != viewCompare && v != viewQuestions {
		list = append(list, binding{keys: []string{"v"}, show: "v", word: "compare", isSpare: v != viewRuns, help: "compare the run with another one, or with the one that it is a fork of",
			when: func(m *Model) bool { return comparedRun(m) != "" }, do: act(askCompare)})
	}
	running := func(m *Model) bool { return targetRun(m) != "" }
	if isRunView(v) {
		list = append(list, binding{keys: []string{"s"}, show: "s", word: shortWord(v, "steer"), isSpare: v == viewLog, help: "send a message to the agent, which it reads at its next turn", when: running, do: act(askMessage)})
	}
	if v == viewRuns || isRunView(v) {
		list = append(list, binding{keys: []string{"c"}, show: "c", word: shortWord(v, "cancel"), isSpare: v == viewLog, help: "cancel the run, or the selected agent; asks first", when: running, do: act(askCancel)},
			binding{keys: []string{"b"}, show: "b", word: shortWord(v, "budget"), isSpare: v == viewLog, help: "change a limit of the run, or freeze it; asks first", when: running, do: act(askBudget)})
	}
	return append(list, placeBindings(v)...)
}

// shortWord leaves a word to the help in views whose bottom line is full.
func shortWord(v view, word string) string {
	if v == viewQuestions || v == viewInbox {
		return ""
	}
	return word
}

// isRunView reports whether a view is about the open run.
func isRunView(v view) bool { return slices.Contains(runViews, v) || partViews[v] != "" }

// isFiltered reports whether a view has rows that a filter can select.
func isFiltered(v view) bool {
	return !slices.Contains([]view{viewTranscript, viewStop, viewBudget, viewTimeline, viewEntry, viewCompare}, v)
}

// isList reports whether a row of a view can be selected.
func isList(v view) bool {
	return slices.Contains([]view{viewRuns, viewInbox, viewNodes, viewTree, viewQuestions, viewTimeline, viewLog}, v)
}

// moveBindings select rows, or scroll text.
func moveBindings(v view) []binding {
	move := func(rows func(m *Model) int) func(*Model, Key) []Effect {
		return func(m *Model, _ Key) []Effect {
			if isList(m.view) {
				before := m.lists[m.view].at
				m.lists[m.view].move(rows(m))
				if m.lists[m.view].at != before && m.pages[m.view] != nil {
					m.pages[m.view].top = 0 // of the text of another question
				}
			} else {
				m.pages[m.view].scroll(rows(m), m.bodyHeight())
			}
			return nil
		}
	}
	word := "scroll"
	if isList(v) {
		word = "move"
	}
	const all = 1 << 30
	list := []binding{
		{keys: []string{"up", "k", "down", "j"}, show: "↑↓", word: word, help: word + " by a row", do: func(m *Model, k Key) []Effect {
			return move(func(*Model) int {
				if k.Name == "up" || k.Name == "k" {
					return -1
				}
				return 1
			})(m, k)
		}},
	}
	ends := []binding{{keys: []string{"home", "g"}, help: "to the first row", do: move(func(*Model) int { return -all })},
		{keys: []string{"end", "G"}, help: "to the last row", do: move(func(*Model) int { return all })}}
	if v == viewInbox || v == viewQuestions {
		scroll := func(sign int) func(*Model, Key) []Effect {
			return func(m *Model, _ Key) []Effect {
				room := m.bodyHeight() - questionListHeight(m) - 1
				m.pages[m.view].scroll(sign*max(1, room-1), room)
				return nil
			}
		}
		list = append(list, binding{keys: []string{"space", "pgdown"}, help: "scroll the question", do: scroll(1)}, binding{keys: []string{"pgup"}, help: "scroll the question back", do: scroll(-1)})
		return append(list, ends...)
	}
	list = append(list,
		binding{keys: []string{"pgdown", "space", "ctrl+d"}, help: "down by a page", do: move(func(m *Model) int { return max(1, m.bodyHeight()-2) })},
		binding{keys: []string{"pgup", "ctrl+u"}, help: "up by a page", do: move(func(m *Model) int { return -max(1, m.bodyHeight()-2) })})
	return append(list, ends...)
}

// openBindings open what is selected.
func openBindings(v view) []binding {
	selected := func(m *Model) bool { return m.lists[m.view].selected() != "" }
	open := binding{keys: []string{"enter", "l", "right"}, show: "⏎", word: "open", when: selected}
	switch v {
	case viewRuns:
		open.help, open.do = "open the run", func(m *Model, _ Key) []Effect { return m.openRun(m.lists[viewRuns].selected()) }
	case viewInbox:
		open.word, open.help, open.do = "run", "open the run that asks", func(m *Model, _ Key) []Effect {
			q, _ := selectedQuestion(m)
			return m.openRun(q.RunID)
		}
	case viewTree, viewTimeline:
		open.help, open.do = "open the agent", func(m *Model, _ Key) []Effect {
			agent := m.lists[m.view].selected()
			m.open(viewAgent)
			m.run.highlight(agent)
			return nil
		}
	case viewLog:
		open.help, open.do = "read the entry, decoded and as bytes", func(m *Model, _ Key) []Effect {
			m.open(viewEntry)
			return nil
		}
	case viewAgent:
		open.word, open.when, open.help, open.do = "transcript", func(m *Model) bool { return m.run.agent != "" }, "read its transcript", func(m *Model, _ Key) []Effect {
			m.open(viewTranscript)
			return nil
		}
	default:
		return nil
	}
	return []binding{open}
}

// questionBindings answer the selected question, with the keys that `troupe run` has at its questions.
func questionBindings() []binding {
	selected := func(is func(q client.Question) bool) func(m *Model) bool {
		return func(m *Model) bool { q, ok := selectedQuestion(m); return ok && is(q) }
	}
	hasRule := func(q client.Question) bool { return needsDecision(q) && q.Rule != "" }
	answer := func(d spec.Decision, always string) func(*Model, Key) []Effect {
		return func(m *Model, k Key) []Effect { return decide(m, k, d, always) }
	}
	return []binding{
		{keys: []string{"y"}, show: "y", word: "once", help: "approve the call once; without a call: the agent goes on", when: selected(needsDecision), do: answer(spec.Approve, "")},
		{keys: []string{"a"}, show: "a", word: "this run", help: "approve calls like this one until the run ends", when: selected(hasRule), do: answer(spec.Approve, "run")},
		{keys: []string{"p"}, show: "p", word: "this dir", help: "approve calls like this one until the run ends, and in your later runs in its directory", when: selected(func(q client.Question) bool { return hasRule(q) && q.Approvals < 2 }),
			do: answer(spec.Approve, "project")},
		{keys: []string{"w"}, show: "w", word: "answer", help: "answer the question", when: selected(func(q client.Question) bool { return !needsDecision(q) }), do: askAnswer},
		{keys: []string{"n"}, show: "n", word: "no", help: "deny it; where that may end the agent, it asks for a reason first", when: selected(func(client.Question) bool { return true }), do: deny},
		{keys: []string{"r"}, show: "r", word: "no, why", help: "deny it, with a reason that the agent reads", when: selected(func(client.Question) bool { return true }), do: askDenial},
	}
}

// entryBindings choose the page of entries, and the log.
func entryBindings() []binding {
	turn := func(forward bool) func(*Model, Key) []Effect {
		return func(m *Model, _ Key) []Effect {
			m.run.entries.turnPage(forward)
			return nil
		}
	}
	return []binding{
		{keys: []string{"o"}, show: "o", word: "other log", help: "show the log of the next agent, or of the supervisor", when: func(m *Model) bool { return len(m.run.entries.logs) > 1 }, do: func(m *Model, _ Key) []Effect {
			m.run.entries.nextLog()
			return nil
		}},
		{keys: []string{"]"}, show: "]", word: "later", help: "the entries after these", when: func(m *Model) bool { return m.run.entries.more }, do: turn(true)},
		{keys: []string{"["}, show: "[", word: "earlier", help: "the entries before these", when: func(m *Model) bool { return len(m.run.entries.starts) > 1 }, do: turn(false)},
	}
}

// pageKeys show the pages; the first line names them.
var pageKeys = map[view]string{viewRuns: "R", viewInbox: "I", viewNodes: "N"}

// letters show the views of a run, in the order of their numbers: most are initials, S is what was said, D the durations.
const letters = "TSWQBDMEL"

// placeBindings go to other views.
func placeBindings(v view) []binding {
	var list []binding
	for _, other := range pageViews {
		if v != other && pageKeys[other] != "" {
			list = append(list, binding{keys: []string{pageKeys[other]}, place: "R I N", help: "the pages that the first line names", do: func(m *Model, _ Key) []Effect {
				m.open(other)
				return nil
			}})
		}
	}
	if isRunView(v) {
		for i, other := range runViews {
			list = append(list, binding{keys: []string{strconv.Itoa(i + 1), letters[i : i+1]}, place: "1 … 9", help: "the views that the third line names; so do " + letters, do: func(m *Model, _ Key) []Effect {
				agent := cmp.Or(targetAgent(m), m.run.agent, m.lists[viewTree].selected())
				m.open(other)
				switch other {
				case viewTranscript:
					m.run.highlight(agent)
				case viewLog:
					m.run.entries.showAgent(cmp.Or(agent, superLog))
				}
				return nil
			}})
		}
	}
	return append(list,
		binding{keys: []string{"esc", "h", "left"}, show: "esc", word: "back", help: "back to the view before", when: func(m *Model) bool { return len(m.history) > 0 }, do: func(m *Model, _ Key) []Effect {
			m.back()
			return nil
		}},
		binding{keys: []string{"?"}, show: "?", word: "help", help: "all keys of the view", do: func(m *Model, _ Key) []Effect {
			m.help = true
			return nil
		}},
		binding{keys: []string{"q", "ctrl+c"}, show: "q", word: "quit", help: "leave; the runs continue", do: func(*Model, Key) []Effect { return []Effect{Quit{}} }})
}
