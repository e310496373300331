package verify

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/mailbox"
)

// attempt is one attempt of a tool call.
type attempt struct {
	call       string // TURN-INDEX
	no         int    // from 1
	started    uint64 // the newest entry that says that it begins; 0: none
	returned   uint64
	body       []byte // of the first result
	killed     bool
	activation string // activation that began it
	unbegun    bool   // the activation that was to begin it was drained before
}

func attemptKey(call string, no int) string { return call + "." + strconv.Itoa(no) }

// attempts holds the attempts of the calls of a log. An entry names one by its call and number, and may do so before the
// entry that says that it begins.
type attempts struct {
	byKey map[string]*attempt
	list  []*attempt // as they were first named
}

// find returns an attempt; nil: no entry names it.
func (t *attempts) find(call string, no int) *attempt { return t.byKey[attemptKey(call, no)] }

// named returns the attempt that a body names, which may be new.
func (t *attempts) named(b callBody) *attempt {
	a := t.find(b.Call, b.Attempt)
	if a == nil {
		a = &attempt{call: b.Call, no: b.Attempt}
		t.byKey[attemptKey(b.Call, b.Attempt)] = a
		t.list = append(t.list, a)
	}
	return a
}

// release notes that an activation has ended in order: its attempts without a result never began.
func (t *attempts) release(activation string) {
	for _, a := range t.list {
		if a.returned == 0 && a.activation == activation {
			a.unbegun = true
		}
	}
}

func (l *log) readStarted(e mailbox.Entry, item mailbox.Item) {
	var b callBody
	if !l.decode(item, &b) {
		return
	}
	a := l.attempts.named(b)
	if a.started > 0 && !a.unbegun && a.activation != e.Start {
		l.addFinding(StartedOnce, l.n, "attempt %d of call %s began in entry %d already", b.Attempt, b.Call, a.started)
	}
	a.started, a.activation, a.unbegun = l.n, e.Start, false
}

func (l *log) readReturned(item mailbox.Item) {
	var b callBody
	if !l.decode(item, &b) || b.Attempt == 0 {
		return
	}
	a := l.attempts.named(b)
	if l.closed > 0 && a.started > l.closed && !b.Killed { // its beginning may be on its way when the log is closed
		l.addFinding(AfterEnd, l.n, "attempt %d of call %s began in entry %d and has a result, and entry %d is the end",
			b.Attempt, b.Call, a.started, l.closed)
	}
	if a.returned > 0 && !bytes.Equal(a.body, item.Body) {
		l.addFinding(AnsweredOnce, l.n, "attempt %d of call %s has another result in entry %d", b.Attempt, b.Call, a.returned)
	}
	if a.returned == 0 {
		a.returned, a.body, a.killed = l.n, item.Body, b.Killed
	}
}

// readSteering notes a message of a user that takes effect at once: calls that are about to begin then do not.
func (l *log) readSteering(item mailbox.Item) {
	var b steeredBody
	if l.decode(item, &b) && b.Now {
		l.preempted = append(l.preempted, l.n)
	}
}

// mayNotBegin reports whether an agent lost rights, or read a message that takes effect at once, after the reply that asks for
// a call and before the entry that says that it begins: the call may then have ended without beginning.
func (l *agentLog) mayNotBegin(a *attempt) bool {
	_, reply := l.toolOf(a.call)
	between := func(entry uint64) bool { return reply != nil && reply.entry < entry && entry < a.started }
	return slices.ContainsFunc(l.preempted, between) ||
		slices.ContainsFunc(l.narrowings, func(n narrowing) bool { return between(n.entry) })
}

// verdict is what a hook decided.
type verdict struct {
	entry                       uint64
	point, hook, decision, text string
}

// readHooked notes the call that hooks were asked about: their gate is POINT.CALL.ATTEMPT, and may have more numbers.
func (l *log) readHooked(item mailbox.Item) {
	var b hookedBody
	if !l.decode(item, &b) {
		return
	}
	for _, a := range b.Answers {
		if a.Decision != "" && a.Decision != "allow" {
			l.hooked = append(l.hooked, verdict{l.n, b.Point, a.Hook, a.Decision, a.Text})
		}
	}
	if _, rest, ok := strings.Cut(b.ID, "."); ok {
		call, _, _ := strings.Cut(rest, ".")
		l.gated[call] = true
	}
}

// callOf splits the id of a call, which is TURN-INDEX.
func callOf(id string) (turn, index int, ok bool) {
	t, i, ok := strings.Cut(id, "-")
	turn, err := strconv.Atoi(t)
	index, err2 := strconv.Atoi(i)
	return turn, index, ok && err == nil && err2 == nil && index >= 0
}

// toolOf returns the tool of a call, and the reply that asks for it; nil: the logs do not say which reply that is.
func (l *agentLog) toolOf(call string) (string, *answer) {
	turn, index, ok := callOf(call)
	if a := l.replies()[turn]; ok && a != nil && index < len(a.calls) {
		return a.calls[index], a
	}
	return "", nil
}

// isEffect reports whether an attempt at a tool of this class begins at most once for each decision to begin it.
func isEffect(class string) bool { return class == "effect" || class == "irreversible" }

// checkCalls checks the calls of an agent by the replies that ask for them.
func (l *agentLog) checkCalls() {
	for _, a := range l.attempts.list {
		tool, _ := l.toolOf(a.call)
		class := l.classes[tool]
		if a.returned > 0 && a.started == 0 && !a.killed && isEffect(class) {
			l.addFinding(StartedFirst, a.returned,
				"call %s of %s, whose class is %s, has a result, and no entry says that it began", a.call, tool, class)
		}
		if isEffect(class) {
			l.checkBegun(a, tool)
		}
		l.checkAsked(a)
	}
	if l.finish == nil || l.finish.Outcome.Reason != "completed" || l.canceled > 0 {
		return
	}
	if l.claims == 1 { // a crash leaves calls without a result
		for _, a := range l.attempts.list {
			if a.started > 0 && !a.unbegun && a.returned == 0 && !l.mayNotBegin(a) {
				l.addFinding(AnsweredOnce, a.started, "call %s began and has no result, and the agent completed",
					attemptKey(a.call, a.no))
			}
		}
	}
	l.checkReads()
}

// checkReads finds reading calls without a result: no entry says that one begins, but the settlement of a reply says
// how many of its calls were to run.
func (l *agentLog) checkReads() {
	if l.task == nil || l.mayDenyReads() {
		return
	}
	for turn, a := range l.replies() {
		s := l.account.settled[a.reservation]
		must := int(s.body.Used.Calls)
		var reads []string
		for i, tool := range a.calls {
			call := strconv.Itoa(turn) + "-" + strconv.Itoa(i)
			switch {
			case l.classes[tool] != "read" || slices.Contains(withoutResult, tool) || l.gated[call] ||
				l.account.isAsked(call):
				must--
			default:
				reads = append(reads, call)
			}
		}
		for _, call := range reads {
			if slices.ContainsFunc(l.attempts.list, func(a *attempt) bool { return a.call == call && a.returned > 0 }) {
				must--
			}
		}
		if must > 0 {
			l.addFinding(AnsweredOnce, a.entry,
				"%d calls of the reply were to run (entry %d of %s), and of the reading calls %s %d have no result, although "+
					"the agent completed",
				s.body.Used.Calls, s.entry, l.run.super().at, strings.Join(reads, ", "), must)
		}
	}
}

// withoutResult are the tools that the loop itself answers, or another actor, or a person.
var withoutResult = []string{"ask_human", "declare_failure", "delegate", "handoff", "send_message", "get_run_journal",
	"update_run_journal", "append_run_journal_entry", "backlog_list", "backlog_post", "backlog_claim", "backlog_done", "backlog_return"}

// mayDenyReads reports whether the task has rules by which a reading call does not run, which no entry records.
func (l *agentLog) mayDenyReads() bool {
	if len(l.narrowings) > 0 {
		return true
	}
	for _, p := range l.task.Task.Permissions {
		if p.Mode == "dontAsk" || len(p.Deny)+len(p.Ask)+len(p.Only)+len(p.Within) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(l.task.Task.LoopOptions.Hooks,
		func(h hookBody) bool { return h.Point == "output" || h.Point == "pre_tool" })
}
