package verify

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/mailbox"
)

// narrowing is what an operator takes from an agent: a client's command in the log of the run, or the supervisor's message in
// the log of an agent.
type narrowing struct {
	entry uint64
	cause uint64 // in the log of the run; 0: it is the command
	body  narrowingBody
}

type narrowingBody struct {
	Agent  string          `msgpack:"a"` // of the command; "": the root
	Rights permissionsBody `msgpack:"r"`
}

func (l *log) readNarrowing(item mailbox.Item, cause uint64) {
	n := narrowing{entry: l.n, cause: cause}
	if l.decode(item, &n.body) {
		l.narrowings = append(l.narrowings, n)
	}
}

// text is what the narrowing decides by, as one of the permissions of an agent.
func (n narrowing) text() string {
	p := n.body.Rights
	p.Narrows = true
	return p.text()
}

// isFor reports whether the command is about an agent or one above it.
func (n narrowing) isFor(agent string) bool {
	at := n.body.Agent
	return at == "" || isWithin(agent, at)
}

// checkNarrowings checks what was taken from an agent: by which client's command, and that nothing begins later that one of
// its rules denies as a whole.
func (l *agentLog) checkNarrowings() {
	super := l.run.super()
	for _, n := range l.narrowings {
		if n.cause <= super.n && !slices.ContainsFunc(super.narrowings, func(o narrowing) bool {
			return o.entry == n.cause && o.isFor(l.at.Agent()) && o.text() == n.text()
		}) {
			l.addFinding(Cause, n.entry, "rights of the agent are narrowed by entry %d of %s, which does not say so", n.cause, super.at)
		}
	}
	l.checkDenied()
}

// denial are rules that deny calls from an entry on: those with which an agent begins, or of a narrowing.
type denial struct {
	entry uint64
	rules [][]byte
}

// denies reports whether a rule denies all calls of a tool.
func (d denial) denies(tool string) bool {
	return tool != "" && slices.ContainsFunc(d.rules, func(r []byte) bool {
		text, _, _ := strings.Cut(string(r), ruleSeparator)
		return text == tool
	})
}

// denials are all that deny calls of an agent.
func (l *agentLog) denials() (list []denial) {
	if l.task == nil {
		return nil
	}
	for _, p := range l.task.Task.Permissions {
		list = append(list, denial{l.taskAt, p.Deny})
	}
	for _, n := range l.narrowings {
		list = append(list, denial{n.entry, n.body.Rights.Deny})
	}
	return list
}

// checkDenied checks that no call of an agent begins that a rule denies as a whole.
func (l *agentLog) checkDenied() {
	super := l.run.super()
	for _, d := range l.denials() {
		for _, a := range l.attempts.list {
			tool, reply := l.toolOf(a.call)
			if at := l.deniedBeginning(a, reply, d); at > 0 && d.denies(tool) {
				l.addFinding(Rights, at, "attempt %d of call %s of %s begins, and entry %d denies the tool", a.no, a.call,
					tool, d.entry)
			}
		}
		for _, m := range super.inbox {
			var b delegateBody
			if m.from != l.at || m.kind != "delegate" || m.n <= d.entry || mailbox.Unmarshal(m.body, &b) != nil {
				continue
			}
			tool := delegateTool
			if b.HandsOff {
				tool = "handoff"
			}
			if d.denies(tool) {
				super.addFinding(Rights, m.entry, "%s begins %s by %s, and entry %d of its log denies the tool", m.from,
					b.Child, tool, d.entry)
			}
		}
	}
}

// deniedBeginning is the entry that shows that an attempt has begun although an earlier entry denies its tool; 0: it has
// not. The entry that says that it begins may follow the denial: the activation may have appended it before it read the
// denial, and then nothing comes of it. It has begun if it has a result, if a person was asked about its outcome, if it
// was repeated, or if the reply that asks for it follows the denial.
func (l *agentLog) deniedBeginning(a *attempt, reply *answer, d denial) uint64 {
	late := reply != nil && reply.entry > d.entry
	switch {
	case a.started > d.entry &&
		(a.returned > 0 || late || l.account.isOutcomeAsked(a) || l.attempts.find(a.call, a.no+1) != nil):
		return a.started
	case a.started == 0 && a.returned > 0 && !a.killed && late: // a reading call has no entry that says that it begins
		return a.returned
	}
	return 0
}

// isOutcomeAsked reports whether a person was asked about the unknown outcome of an attempt.
func (c *account) isOutcomeAsked(a *attempt) bool {
	return slices.ContainsFunc(c.questions, func(q question) bool {
		return q.body.Reason == "resume_unsafe" && q.body.Query == attemptKey(a.call, a.no) && q.cause > a.started
	})
}

// checkNarrowedChild checks that a child begins with what was taken from its parent before.
func checkNarrowedChild(child, parent *log) {
	for _, n := range parent.narrowings {
		if n.cause >= child.taskCause {
			continue
		}
		if !slices.ContainsFunc(child.task.Task.Permissions, func(p permissionsBody) bool { return p.text() == n.text() }) {
			child.addFinding(Rights, child.taskAt, "what entry %d takes from the parent %s is not taken from the agent", n.entry, parent.at)
		}
	}
}
