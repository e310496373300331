package follow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/interrupt"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// terminalUser is the user at the terminal, to whom the command can put questions.
type terminalUser struct {
	console *console.Console
	open    *openQuestion   // on the screen; nil: none
	settled map[string]bool // queries that were answered here
	shown   map[string]bool // queries whose text is on the screen
	away    bool            // the input has ended
	waits   error           // why a question waits, as the user was told; nil: none does
	mode    atomic.Pointer[terminalMode]
}

// openQuestion is a question on the screen.
type openQuestion struct {
	question client.Question
	name     string     // of the agent that asks
	keys     *keyPrompt // nil: the answer is a line
	lineFor  byte       // the key that a line completes; 0: none
	reader   keyReader
	typed    chan typedInput
	done     chan struct{} // closed when the question leaves the screen
}

func newTerminalUser(c *console.Console) *terminalUser {
	return &terminalUser{console: c, settled: map[string]bool{}, shown: map[string]bool{}}
}

// hasShown reports whether the text of a question was put on this screen.
func (p *terminalUser) hasShown(agent, query string) bool {
	return p != nil && p.shown[agent+" "+query]
}

func (p *terminalUser) isAsking() bool { return p != nil && p.open != nil }

// input returns what is typed at the question on the screen.
func (p *terminalUser) input() <-chan typedInput {
	if !p.isAsking() {
		return nil
	}
	return p.open.typed
}

// restoreTerminal puts the terminal back as it was. Any goroutine may call it.
func (p *terminalUser) restoreTerminal() {
	if m := p.mode.Load(); m != nil {
		m.restore()
	}
}

// askNext puts the first open question of the run, unless one is on the screen.
func (p *terminalUser) askNext(s *session.Session, f *Follower) error {
	if p.open != nil {
		return nil
	}
	list, err := s.Questions(s.Context)
	if err != nil {
		return err
	}
	for _, q := range list {
		if q.RunID == f.run && !p.settled[q.Agent+" "+q.Query] {
			return p.putQuestion(q, f)
		}
	}
	return nil
}

// sayWaits says once why a question waits.
func (p *terminalUser) sayWaits(why error) {
	if !errors.Is(why, p.waits) || p.waits == nil {
		p.waits = why
		p.console.Say(p.console.ErrStyle.Dim("a question of this run waits: " + why.Error()))
	}
}

// putQuestion shows a question and begins to read its answer, unless another program reads the terminal. What was typed
// before does not answer it.
func (p *terminalUser) putQuestion(q client.Question, f *Follower) error {
	o := &openQuestion{question: q, typed: make(chan typedInput), done: make(chan struct{})}
	mode := newTerminalMode(p.console.In, func(background bool) { o.give(typedInput{resumed: true, background: background}) })
	hasKeys, err := p.acquire(mode, request.NeedsDecision(q), f.sig)
	if err != nil {
		p.sayWaits(err)
		return nil
	}
	p.waits = nil
	if o.reader, err = newKeyReader(p.console.In); err != nil {
		mode.restore()
		return fmt.Errorf("read the terminal: %w", err)
	}
	f.Settle()
	p.open = o
	p.shown[q.Agent+" "+q.Query] = true
	o.name = f.tree.AgentName(q.Agent)
	if hasKeys {
		o.keys = newKeyPrompt(q, time.Now())
	}
	p.printQuestion()
	p.drawPrompt()
	go o.read()
	return nil
}

// acquire begins to read the terminal, by keys if it can and they are wanted, or returns errTaken or errBackground. A
// second Ctrl-C may end the process at any time: so restoreTerminal knows the mode before it is switched, and a mode that
// is switched while the process ends is put back here.
func (p *terminalUser) acquire(mode *terminalMode, wantsKeys bool, sig *interrupt.Signals) (hasKeys bool, err error) {
	p.mode.Store(mode)
	if wantsKeys {
		err = mode.acquireKeys()
	} else {
		err = mode.acquireLines()
	}
	if sig.Ending.Load() {
		mode.restore()
	}
	if errors.Is(err, errTaken) || errors.Is(err, errBackground) {
		return false, err
	}
	return wantsKeys && err == nil, nil // a terminal without keys is read by lines
}

// printQuestion prints the question on the screen, and what the keys mean.
func (p *terminalUser) printQuestion() {
	o := p.open
	q := o.question
	p.console.Say(p.console.ErrStyle.Yellow("? "+term.CleanLine(o.name)+" asks: ") + term.CleanText(q.Question))
	if approvals := term.FormatApprovals(q.Approvals, q.ApprovedBy); approvals != "" {
		p.console.Say(p.console.ErrStyle.Dim("  " + approvals + ": two different people must approve"))
	}
	if q.Rule != "" {
		p.console.Say(p.console.ErrStyle.Dim("  always: " + term.CleanLine(q.Rule)))
	}
	if o.keys == nil {
		return
	}
	for _, line := range o.keys.choices() {
		p.console.Say(p.console.ErrStyle.Dim("  " + line))
	}
}

// read passes on what is typed until the question leaves the screen.
func (o *openQuestion) read() {
	defer o.reader.Close()
	b := make([]byte, 4<<10)
	for {
		n, err := o.reader.Read(b)
		if !o.give(typedInput{text: string(b[:n]), err: err}) || err != nil && !errors.Is(err, io.EOF) {
			return
		}
	}
}

// give passes input on, and reports whether the question is on the screen.
func (o *openQuestion) give(in typedInput) bool {
	select {
	case o.typed <- in:
		return true
	case <-o.done:
		return false
	}
}

// drawPrompt draws the line in which the answer is typed.
func (p *terminalUser) drawPrompt() {
	text := "  one key: "
	switch o := p.open; {
	case o.lineFor != 0:
		text = "  " + chosen(o.question, o.lineFor) + " (Esc goes back): "
	case o.keys != nil && o.keys.ignored == ignoredEarly:
		text = "  too early, or not a single key; press it again: "
	case o.keys != nil && o.keys.ignored == ignoredMeaningless:
		text = "  that key means nothing at this question (? lists the answers); one key: "
	case o.keys == nil && !request.NeedsDecision(o.question):
		text = "  approve, deny, skip, or text (? lists the answers): "
	case o.keys == nil:
		text = "  y, n [REASON], s, t TEXT (? lists the answers): "
	}
	p.write("\r\x1b[K" + p.console.ErrStyle.Dim(text))
}

// write writes to the terminal. A terminal that is gone ends the input, too.
func (p *terminalUser) write(text string) { _, _ = io.WriteString(p.console.Err, text) }

// printAbove prints while a question may be on the screen, whose prompt stands below what is printed.
func (p *terminalUser) printAbove(printLines func()) {
	if !p.isAsking() {
		printLines()
		return
	}
	if o := p.open; o.keys != nil && o.lineFor == 0 {
		p.write("\r\x1b[K")
	} else {
		p.write("\n") // what was typed of the line stays, and counts
	}
	printLines()
	p.drawPrompt()
}

// withdraw takes the question off the screen, and puts the terminal back as it was.
func (p *terminalUser) withdraw() {
	if !p.isAsking() {
		return
	}
	p.restoreTerminal()
	close(p.open.done)
	p.open.reader.Cancel()
	p.open = nil
}

// noteEvent withdraws the question if an event says that it was answered elsewhere or was closed.
func (p *terminalUser) noteEvent(e client.Event) {
	if !p.isAsking() {
		return
	}
	q := p.open.question
	switch e.Kind {
	case event.KindRunFinished:
	case event.KindAgentFinished:
		if e.Agent != q.Agent {
			return
		}
	case event.KindQueryAnswered:
		var answered event.QueryAnswered
		if e.Agent != q.Agent || json.Unmarshal(e.Data, &answered) != nil || answered.Query != q.Query {
			return
		}
		if answered.Missing > 0 { // the question is asked again, and names the approver
			p.withdraw()
			p.write("\r\x1b[K")
			return
		}
	default:
		return
	}
	p.withdraw()
	p.write("\r\x1b[K")
	p.console.Say(p.console.ErrStyle.Yellow("  this question is closed: it was answered elsewhere, expired, or its agent has ended"))
}

// takeInput takes what was typed at the question on the screen.
func (p *terminalUser) takeInput(s *session.Session, in typedInput) error {
	o := p.open
	switch {
	case in.background:
		p.withdraw() // it is put again in the foreground
		return nil
	case in.resumed:
		if o.keys != nil && o.lineFor == 0 {
			o.keys = newKeyPrompt(o.question, time.Now())
		}
		p.write("\r\x1b[K")
		p.printQuestion()
		p.drawPrompt()
		return nil
	case o.keys == nil || o.lineFor != 0:
		return p.takeLine(s, in)
	case in.err != nil: // the terminal is gone
		p.leaveUnanswered()
		return nil
	}
	o.keys.press(in.text, time.Now())
	if o.keys.ignored != ignoredNone {
		p.drawPrompt()
	}
	return nil
}

// takeLine takes a line. An empty one repeats the question; the end of the input means that no person is present.
func (p *terminalUser) takeLine(s *session.Session, in typedInput) error {
	o, text := p.open, strings.TrimSpace(in.text)
	switch {
	case text == "" && in.err != nil && o.lineFor == 0:
		p.leaveUnanswered()
		return nil
	case text == "":
		p.withdraw() // it is put again
		return nil
	case strings.ContainsRune(in.text, keyEscape): // the key, or one such as an arrow
		p.write("\r\x1b[K")
		p.withdraw() // it is put again
		return nil
	case text == "?" && o.lineFor == 0:
		p.listAnswers()
		return nil
	}
	r, err := request.ParseDecision(o.question, text)
	if o.lineFor != 0 {
		r = o.keys.decide(o.lineFor, text)
		err = request.CheckResultText(o.question, r)
	}
	if err != nil {
		failure := exit.Explain(err)
		p.console.Say(p.console.ErrStyle.Yellow(term.CleanLine(failure.Error() + ": " + failure.Hint)))
		p.withdraw() // it is put again
		return nil
	}
	return p.send(s, r)
}

// takeKey takes the key that was pressed, once no other one follows.
func (p *terminalUser) takeKey(s *session.Session) error {
	if !p.isAsking() || p.open.keys == nil {
		return nil
	}
	o := p.open
	key := o.keys.settled(time.Now())
	switch key {
	case 0:
		return nil
	case keyEnd:
		p.leaveUnanswered()
		return nil
	case keyHelp:
		p.listAnswers()
		return nil
	case keyReason, keyResult:
		o.lineFor = key
		if m := p.mode.Load(); m != nil {
			m.readLine()
		}
		p.drawPrompt()
		return nil
	}
	o.keys.ignored = ignoredNone
	p.drawPrompt()
	p.console.Say(string(key) + " (" + chosen(o.question, key) + ")")
	return p.send(s, o.keys.decide(key, ""))
}

// listAnswers says what the answers to the question on the screen do.
func (p *terminalUser) listAnswers() {
	p.write("\r\x1b[K")
	for _, line := range describeAnswers(p.open.question) {
		p.console.Say(p.console.ErrStyle.Dim("  " + line))
	}
	p.drawPrompt()
}

// leaveUnanswered withdraws the question and all later ones: no person is present.
func (p *terminalUser) leaveUnanswered() {
	p.withdraw()
	p.away = true
	p.console.Say("")
}

// send takes the question off the screen and sends the answer. A question that was answered meanwhile is no failure of
// the run.
func (p *terminalUser) send(s *session.Session, r client.AnswerRequest) error {
	p.withdraw()
	p.settled[r.Agent+" "+r.Query] = true
	err := request.SendAnswer(s.Context, s, r, p.console.Say)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code == client.CodeBad { // the question is put again
		delete(p.settled, r.Agent+" "+r.Query)
		p.console.Say(p.console.ErrStyle.Yellow(term.CleanLine(refused.Text + ": " + refused.Hint)))
		return nil
	}
	if errors.As(err, &refused) && (refused.Code == client.CodeConflict || refused.Code == client.CodeNotFound) {
		p.console.Say(p.console.ErrStyle.Yellow("the answer does not count: " + term.CleanLine(refused.Text)))
		return nil
	}
	return err
}
