package verify

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/mailbox"
)

// readMessages reads the messages of another actor.
func (l *log) readMessages(e mailbox.Entry) {
	for _, item := range e.Items {
		m := message{l.n, e.From, item.N, item.I, item.Kind, item.Body}
		key := fmt.Sprintf("%s %d %d", e.From, item.N, item.I)
		if was, known := l.seen[key]; known {
			if !bytes.Equal(was, item.Body) {
				l.find(Unchanged, l.n, "message %d.%d of %s is sent again with another content", item.N, item.I, e.From)
			}
			continue
		}
		l.seen[key] = item.Body
		if last, ok := l.last[e.From]; ok && (last.n > m.n || last.n == m.n && last.i > m.i) {
			l.find(InOrder, l.n, "message %d.%d of %s arrives after %d.%d", m.n, m.i, e.From, last.n, last.i)
			continue
		}
		l.last[e.From] = m
		l.inbox = append(l.inbox, m)
		l.readMessage(item)
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
			l.find(OneTask, l.n, "the agent gets another task")
			return
		}
		l.task = &b
		for _, t := range b.Task.Tools {
			l.classes[t.Name] = t.Class
		}
	case "granted":
		var b grantedBody
		if l.decode(item, &b) {
			l.granted[b.Reservation] = b
		}
	case "canceled":
		var b canceledBody
		if l.decode(item, &b) {
			l.damaged = l.damaged || b.As == logDamaged
			if l.canceled == 0 {
				l.canceled, l.cancel = l.n, b
			}
		}
	case "finish":
		var b finishBody
		l.damaged = l.damaged || l.decode(item, &b) && b.Outcome.Reason == logDamaged
	case "back":
		var b reportBody
		l.damaged = l.damaged || l.decode(item, &b) && b.Damaged != ""
	}
}

// checkMessages checks messages against the logs of their senders.
func (v *verifier) checkMessages(l *log) {
	if l.deleted {
		return
	}
	for _, m := range l.inbox {
		from := v.logs[m.from]
		switch {
		case from == nil:
			l.find(Cause, m.entry, "%q comes from %s, which has no log", m.kind, m.from)
		case !from.isSuper() && from.closed > 0 && m.n > from.closed && m.n <= from.n:
			l.find(AfterEnd, m.entry, "%q was caused by entry %d of %s, whose end is entry %d", m.kind, m.n, m.from, from.closed)
		case m.n == 0 || m.n > from.n && from.closed > 0:
			l.find(Cause, m.entry, "%q names entry %d of %s, which has %d", m.kind, m.n, m.from, from.n)
		}
	}
	if l.isSuper() || l.closed == 0 {
		return
	}
	super, ends := v.super(), 0
	if super == nil {
		return
	}
	for _, m := range super.inbox {
		if m.from == l.at && m.kind == "finish" {
			ends++
		}
	}
	if ends != 1 {
		l.find(Delivered, l.closed, "the log is closed, and %d ends of the agent are in the log of the run", ends)
	}
}

// asking are the messages with which an agent begins something.
var asking = []string{"reserve", "delegate"}

// checkStop checks that an agent asks for nothing after its cancel.
func (v *verifier) checkStop(l *log) {
	super := v.super()
	if l.isSuper() || l.canceled == 0 || super == nil {
		return
	}
	for _, m := range super.inbox {
		if m.from == l.at && m.n > l.canceled && slices.Contains(asking, m.kind) {
			super.find(Canceled, m.entry, "%s asks for %q in its entry %d, and read its cancel in entry %d", l.at, m.kind, m.n, l.canceled)
		}
	}
}

// checkRights checks the rights of an agent against those of its parent.
func (v *verifier) checkRights(l *log) {
	if l.task == nil {
		return
	}
	t := l.task.Task
	for _, tool := range t.Tools {
		if slices.Contains(t.Forbidden, tool.Name) {
			l.find(Rights, 1, "the agent is offered %s, which is forbidden to it", tool.Name)
		}
	}
	for _, p := range v.order {
		if t.Parent == "" || p.task == nil || p.at.Agent() != t.Parent {
			continue
		}
		for _, name := range p.task.Task.Forbidden {
			if !slices.Contains(t.Forbidden, name) {
				l.find(Rights, 1, "%s is forbidden to the parent %s and not to the agent", name, t.Parent)
			}
		}
	}
}
