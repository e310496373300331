// Package top is the terminal screen as a pure model: Update takes keys, events and replies and returns effects. It
// does no I/O and reads no clock.
package top

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/term"
)

// view is what the body of the screen shows.
type view string

const (
	viewRuns       view = "Runs"
	viewInbox      view = "Inbox"
	viewNodes      view = "Nodes"
	viewTree       view = "Tree"
	viewAgent      view = "Agent"
	viewTranscript view = "Transcript"
	viewStop       view = "Why it stopped"
	viewQuestions  view = "Questions"
	viewBudget     view = "Budget"
	viewTimeline   view = "Timeline"
	viewMessages   view = "Messages"
	viewEvents     view = "Events"
	viewLog        view = "Log entries"
	viewEntry      view = "Log entry"
	viewCompare    view = "Compare"
)

// pageViews are about no single run; runViews are the views of one run, in the order of their numbers, and partViews show a
// part of one of those.
var (
	pageViews = []view{viewRuns, viewInbox, viewNodes, viewCompare}
	runViews  = []view{viewTree, viewTranscript, viewStop, viewQuestions, viewBudget, viewTimeline, viewMessages, viewEvents, viewLog}
	partViews = map[view]view{viewAgent: viewTree, viewEntry: viewLog}
)

// Config says how a screen begins.
type Config struct {
	Style term.Style
	Run   string // to open at once; "": the list of runs
	User  string // who answers and changes, for the logs
	// NewID makes the id of a run.
	NewID func() string
	Now   time.Time
}

// Model is the state of a screen. One goroutine uses it.
type Model struct {
	style         term.Style
	user          string
	newID         func() string
	width, height int
	now           time.Time

	view    view
	history []visited // where esc goes back to
	help    bool
	prompt  *prompt
	form    *form
	notice  string // about the last action
	// noticeIsError says that the action failed.
	noticeIsError bool
	deafUntil     time.Time // until when letters are the text for a prompt that was not opened

	filters map[view]string
	lists   map[view]*list
	pages   map[view]*page

	runs      []client.RunInfo
	read      map[view]bool // the rows of a page have been read
	questions []client.Question
	nodes     []client.NodeInfo
	run       *openRun // nil: none
	compared  Compared

	polls  polls
	lost   time.Time // since when no node answers; zero: one does
	reason string    // why
}

// visited is a view that was left, with the agent that it showed.
type visited struct {
	view  view
	agent string
}

// New makes a screen.
func New(c Config) *Model {
	m := &Model{style: c.Style, user: c.User, newID: c.NewID, width: 80, height: 24, now: c.Now, view: viewRuns, filters: map[view]string{}, lists: map[view]*list{},
		pages: map[view]*page{}, read: map[view]bool{}, polls: newPolls()}
	for _, v := range slices.Concat(pageViews, runViews, slices.Collect(maps.Keys(partViews))) {
		m.lists[v], m.pages[v] = &list{}, &page{}
	}
	if c.Run != "" {
		m.history = []visited{{view: viewRuns}}
		m.run, m.view = newOpenRun(c.Run, m.style), viewTree
	}
	m.layout()
	return m
}

// Start returns the first effects to carry out.
func (m *Model) Start() []Effect {
	effects := m.polls.due(m)
	if m.run != nil {
		effects = append(effects, Follow{m.run.id})
	}
	return effects
}

// Update applies an input and returns the effects to carry out.
func (m *Model) Update(in Input) []Effect {
	var effects []Effect
	switch in := in.(type) {
	case Key:
		m.now = in.At
		effects = handleKey(m, in)
	case Pasted:
		handlePaste(m, in.Text)
	case Resized:
		m.width, m.height = in.Width, in.Height
		if m.run != nil {
			m.run.transcript.drawn = false
		}
	case Ticked:
		m.now = in.At
	case EventsRead:
		if m.run != nil && m.run.id == in.Run {
			m.run.addEvents(in.Events)
		}
	case Fetched:
		m.now = in.At
		effects = handleFetched(m, in)
	}
	m.layout()
	return append(effects, m.polls.due(m)...)
}

// handleKey handles a key: that of the prompt, of the help, or of the view.
func handleKey(m *Model, k Key) []Effect {
	switch {
	case m.prompt != nil:
		return handlePromptKey(m, k)
	case m.form != nil:
		return handleFormKey(m, k)
	case m.help && k.Name != "q" && k.Name != "ctrl+c":
		m.help = false
		return nil
	}
	if k.At.Before(m.deafUntil) && k.Text != "" && k.Name != "q" {
		m.deafUntil = k.At.Add(answerGuard)
		return nil
	}
	m.notice, m.noticeIsError = "", false
	dead := ""
	for _, b := range bindings(m.view) {
		switch {
		case !slices.Contains(b.keys, k.Name):
		case b.when == nil || b.when(m):
			return b.do(m, k)
		case dead == "":
			dead = b.help
		}
	}
	if dead != "" { // the words that were meant for its prompt are no keys
		m.notice, m.deafUntil = k.Name+" does nothing now ("+dead+")", k.At.Add(answerGuard)
	}
	return nil
}

// handleFetched applies the answer to an effect. The first answer after a loss restarts all polls and the event stream.
func handleFetched(m *Model, f Fetched) []Effect {
	m.polls.answered(f.Effect, f.At)
	if f.Lost {
		if m.lost.IsZero() {
			m.lost = f.At
		}
		m.reason = f.Problem
		if _, ok := f.Effect.(Follow); ok && m.run != nil {
			m.run.followed = false
		}
		effects, isOfForm := handleFormAnswer(m, f)
		if isAction(f.Effect) && !isOfForm {
			m.notice, m.noticeIsError = "not sent: "+f.Problem, true
			if run := runOf(f.Effect); run != "" {
				m.notice = "run " + run + " may have begun: " + f.Problem
			}
		}
		return effects
	}
	var effects []Effect
	if _, follow := f.Effect.(Follow); !follow && !m.lost.IsZero() {
		m.lost, m.reason = time.Time{}, ""
		m.polls = newPolls()
		if m.run != nil && !m.run.followed && !m.run.ended {
			m.run.followed = true
			effects = append(effects, Follow{m.run.id})
		}
	}
	if begun, ok := handleFormAnswer(m, f); ok {
		return append(effects, begun...)
	}
	if f.Problem != "" {
		m.notice, m.noticeIsError = f.Problem, true
		return effects
	}
	applyFetched(m, f)
	return effects
}

// isAction reports whether a person has asked for an effect.
func isAction(e Effect) bool {
	switch e.(type) {
	case SendAnswer, SendCancel, SendBudget, SendMessage:
		return true
	}
	return runOf(e) != ""
}

// applyFetched applies the data of an answer.
func applyFetched(m *Model, f Fetched) {
	switch e := f.Effect.(type) {
	case FetchRuns:
		m.runs, m.read[viewRuns] = keep[client.RunInfo](f.Data, runsMax), true
	case FetchQuestions:
		m.questions, m.read[viewInbox] = keep[client.Question](f.Data, questionsMax), true
	case FetchNodes:
		m.nodes, m.read[viewNodes] = keep[client.NodeInfo](f.Data, nodesMax), true
	case Follow:
		if m.run != nil && m.run.id == e.Run {
			m.run.ended, m.run.stale = true, true
		}
	case SendAnswer, SendCancel, SendBudget, SendMessage:
		if text, ok := f.Data.(string); ok {
			m.notice = text
		}
		m.polls = newPolls() // what it changed is shown at once
		if m.run != nil {
			m.run.stale, m.run.budgetStale = true, true
		}
	case StartRun, ForkRun: // its form was left
		if b, ok := f.Data.(Begun); ok {
			m.notice = "run " + b.Run + " has begun"
		}
	default:
		if m.run != nil {
			m.run.applyFetched(f)
		}
	}
}

// keep returns the data as a list with at most the given number of rows.
func keep[T any](data any, most int) []T {
	rows, _ := data.([]T)
	return rows[:min(len(rows), most)]
}

// layout updates the rows and texts of the view from the state, and fits their windows to the screen.
func (m *Model) layout() {
	l, p, height := m.lists[m.view], m.pages[m.view], m.bodyHeight()
	if m.run != nil && (m.view == viewAgent || m.view == viewTranscript) {
		m.run.highlight(m.run.selectedAgent())
	}
	switch m.view {
	case viewRuns:
		l.setRows(runRows(m), m.now)
		height--
	case viewNodes:
		l.setRows(nodeRows(m), m.now)
		height--
	case viewInbox, viewQuestions:
		l.setRows(questionRows(m), m.now)
		p.lines = questionText(m)
		p.show(height - questionListHeight(m) - 1)
		height = questionListHeight(m)
	case viewLog:
		l.setRows(entryRows(m), m.now)
		height--
	case viewTree:
		l.setRows(treeRows(m), m.now)
		height -= treeFoot
	case viewTimeline:
		l.setRows(m.run.tree().Agents(), m.now)
		height -= timelineFoot
	default:
		p.lines = pageText(m)
		p.show(height)
	}
	l.show(height)
}

// pageText returns the text of a view that is scrolled.
func pageText(m *Model) []string {
	switch m.view {
	case viewAgent:
		return agentText(m)
	case viewTranscript:
		return transcriptText(m)
	case viewStop:
		return stopText(m)
	case viewBudget:
		return budgetText(m)
	case viewEntry:
		return entryText(m)
	case viewCompare:
		return comparisonText(m)
	case viewMessages:
		return m.run.events.lines(m, isMessage)
	}
	return m.run.events.lines(m, func(eventLine) bool { return true })
}

// matches reports whether a text has all words of the filter of the view.
func (m *Model) matches(text string) bool {
	filter := m.filters[m.view]
	if filter == "" {
		return true
	}
	text = strings.ToLower(text)
	for word := range strings.FieldsSeq(strings.ToLower(filter)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// open shows a view; esc goes back to the one before.
func (m *Model) open(v view) {
	if v == m.view {
		return
	}
	agent := ""
	if m.run != nil {
		agent = m.run.agent
	}
	m.history = append(m.history, visited{m.view, agent})
	m.history = m.history[max(0, len(m.history)-historyMax):]
	m.enter(v)
}

// enter shows a view.
func (m *Model) enter(v view) {
	m.view = v
	if p := m.pages[v]; v != viewInbox && v != viewQuestions {
		p.end = v == viewTranscript || v == viewAgent || v == viewEvents || v == viewMessages
		p.top = 0
	}
	m.polls.askNow()
}

// back shows the view before.
func (m *Model) back() {
	last := m.history[len(m.history)-1]
	m.history = m.history[:len(m.history)-1]
	if m.run != nil && last.agent != m.run.agent {
		m.run.highlight(last.agent)
	}
	m.enter(last.view)
}

// openRun opens a run and follows its events, instead of those of the previous run.
func (m *Model) openRun(id string) []Effect {
	if m.run != nil && m.run.id == id {
		m.open(viewTree)
		return nil
	}
	m.run = newOpenRun(id, m.style)
	for _, v := range slices.Concat(runViews, slices.Collect(maps.Keys(partViews))) {
		m.lists[v], m.pages[v], m.filters[v] = &list{}, &page{}, ""
	}
	// Drop history entries of the previous run.
	m.history = slices.DeleteFunc(m.history, func(v visited) bool { return !slices.Contains(pageViews, v.view) })
	if !slices.Contains(pageViews, m.view) {
		m.view = viewRuns
	}
	m.open(viewTree)
	return []Effect{Follow{id}}
}
