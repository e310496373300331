package verify

import (
	"bytes"
	"fmt"

	"github.com/troupe-run/troupe/mailbox"
)

// readMessages reads the messages of another actor.
func (l *log) readMessages(e mailbox.Entry) {
	for _, item := range e.Items {
		m := message{l.n, e.From, item.N, item.I, item.Kind, item.Body}
		key := fmt.Sprintf("%s %d %d", e.From, item.N, item.I)
		if was, known := l.seen[key]; known {
			if !bytes.Equal(was, item.Body) {
				l.addFinding(Unchanged, l.n, "message %d.%d of %s is sent again with another content", item.N, item.I, e.From)
			}
			continue
		}
		l.seen[key] = item.Body
		if last, ok := l.last[e.From]; ok && (last.n > m.n || last.n == m.n && last.i > m.i) {
			l.addFinding(InOrder, l.n, "message %d.%d of %s arrives after %d.%d", m.n, m.i, e.From, last.n, last.i)
			continue
		}
		l.last[e.From] = m
		l.inbox = append(l.inbox, m)
		if l.isSuper() || e.From.Agent() == mailbox.Super { // no agent tells another one anything by itself
			l.readMessage(item)
		}
	}
}

func (l *log) readMessage(item mailbox.Item) {
	switch item.Kind {
	case "submitted":
		var b submittedBody
		if !l.decode(item, &b) {
			return
		}
		if l.tasks++; l.tasks > 1 {
			l.addFinding(OneTask, l.n, "the agent gets another task")
			return
		}
		l.task = &b
		l.taskAt, l.taskCause = l.n, item.N
		for _, t := range b.Task.Tools {
			l.classes[t.Name] = t.Class
		}
	case "granted":
		var b grantedBody
		if l.decode(item, &b) {
			if _, known := l.granted[b.Reservation]; !known {
				l.granted[b.Reservation] = grant{b, l.n, item.N, item.I}
			}
		}
	case "permissions_narrowed":
		l.readNarrowing(item, item.N)
	case "steered":
		l.readSteering(item)
	case "context_set":
		if !l.isSuper() {
			l.readContext(item, item.N)
		}
	case "canceled":
		l.readCancel(item)
	case "finish":
		var b finishBody
		l.damaged = l.damaged || l.decode(item, &b) && b.Outcome.Reason == logDamaged
	case "report_log":
		var b reportBody
		l.damaged = l.damaged || l.decode(item, &b) && b.Damaged != ""
	}
}

// mayComeLater reports whether a log may have been read before it had an entry: the logs of a live run are read one
// after the other. It must be that of the root, or of an agent to which another one has delegated.
func (v *verifier) mayComeLater(at mailbox.Address) bool {
	super := v.super()
	return super != nil && super.closed == 0 && (at.Agent() == "root" || v.parents[at.Agent()] != "")
}

// checkMessages checks messages against the logs of their senders.
func (v *verifier) checkMessages(l *log) {
	if l.deleted {
		return
	}
	for _, m := range l.inbox {
		from := v.logs[m.from]
		switch {
		case !l.isSuper() && m.from.Agent() != mailbox.Super:
			l.addFinding(Cause, m.entry, "%q comes from %s, and agents get messages of the supervisor alone", m.kind, m.from)
		case from == nil && !v.mayComeLater(m.from):
			l.addFinding(Cause, m.entry, "%q comes from %s, which has no log", m.kind, m.from)
		case from == nil:
		case !from.isSuper() && from.closed > 0 && m.n > from.closed && m.n <= from.n:
			l.addFinding(AfterEnd, m.entry, "%q was caused by entry %d of %s, whose end is entry %d", m.kind, m.n, m.from,
				from.closed)
		case m.n == 0 || m.n > from.n && from.closed > 0:
			l.addFinding(Cause, m.entry, "%q names entry %d of %s, which has %d", m.kind, m.n, m.from, from.n)
		}
	}
	if l.isSuper() || l.closed == 0 {
		return
	}
	super := v.super()
	if super == nil {
		return
	}
	if ends := len(super.inbox.endsOf(l.at.Agent())); ends > 1 || ends == 0 && super.closed > 0 {
		l.addFinding(Delivered, l.closed, "the log is closed, and %d ends of the agent are in the log of the run", ends)
	}
}
