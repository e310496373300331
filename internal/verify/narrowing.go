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
	return at == "" || at == agent || strings.HasPrefix(agent, at+"-")
}

// checkNarrowings checks what was taken from an agent: by which client's command, and that no call begins later that one of its
// rules denies as a whole.
func (v *verifier) checkNarrowings(l *log) {
	super := v.super()
	for _, n := range l.narrowings {
		if n.cause <= super.n && !slices.ContainsFunc(super.narrowings, func(o narrowing) bool {
			return o.entry == n.cause && o.isFor(l.at.Agent()) && o.text() == n.text()
		}) {
			l.addFinding(Cause, n.entry, "rights of the agent are narrowed by entry %d of %s, which does not say so", n.cause, super.at)
		}
		for _, a := range l.attemptList {
			tool, _ := v.toolOf(l, a.call)
			if a.returned > 0 && a.started > n.entry && n.denies(tool) {
				l.addFinding(Rights, a.started, "attempt %d of call %s of %s begins, and entry %d denies the tool", a.no, a.call, tool, n.entry)
			}
		}
	}
}

// denies reports whether a rule denies all calls of a tool.
func (n narrowing) denies(tool string) bool {
	return slices.ContainsFunc(n.body.Rights.Deny, func(r []byte) bool {
		text, _, _ := strings.Cut(string(r), ruleSeparator)
		return text == tool
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
