package runfile

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// sentMessages returns what a supervisor sends by its log, by receiver.
func sentMessages(log []mailbox.Message) map[mailbox.Address][]activation.OutboxMessage {
	sent := map[mailbox.Address][]activation.OutboxMessage{}
	watchMessages(log, &activation.Supervisor{Addr: log[0].To}, func(m activation.OutboxMessage) { sent[m.To.Bare()] = append(sent[m.To.Bare()], m) })
	return sent
}

// noteMessages notes what an agent sends by its log.
func noteMessages(log []mailbox.Message, heard map[messageID][]byte) {
	at := log[0].To
	watchMessages(log, &activation.Agent{Addr: at}, func(m activation.OutboxMessage) { heard[messageID{at.Bare(), m.N, m.I, m.Kind}] = m.Body })
}

func watchMessages(log []mailbox.Message, m activation.Machine, note func(activation.OutboxMessage)) {
	w := &messageWatch{Machine: m, note: note}
	reader := activation.Watch(log[0].To, w)
	for _, m := range log {
		reader.Next(m)
	}
}

// messageWatch is a machine whose messages are noted.
type messageWatch struct {
	activation.Machine
	n     uint64
	count int
	note  func(activation.OutboxMessage)
}

// Step steps one fact.
func (w *messageWatch) Step(f activation.Fact) activation.Stepped {
	out := w.Machine.Step(f)
	if f.N != w.n {
		w.n, w.count = f.N, 0
	}
	for _, m := range out.Messages {
		m.N, m.I = f.N, w.count
		w.note(m)
		w.count++
	}
	return out
}

// takeLog copies the log of an agent, with the messages of the new run's supervisor.
func (t *taking) takeLog(log []mailbox.Message) (taken []mailbox.Message, err error) {
	var hashes HashChain
	known := map[[2]uint64]activation.OutboxMessage{} // by the old identity
	next := t.sent[t.address(log[0].To).Bare()]
	for i, m := range log {
		e, err := mailbox.Decode(m.Data)
		if err != nil {
			return nil, fmt.Errorf("%w: entry %d of %s: %w", ErrOneAgent, i+1, m.To, err)
		}
		e.Items = slices.Clone(e.Items)
		for k, item := range e.Items {
			if e.From.Agent() != mailbox.Super || e.From == "" {
				continue
			}
			was := [2]uint64{item.N, uint64(item.I)}
			now, again := known[was]
			if !again {
				if len(next) == 0 || next[0].Kind != item.Kind {
					return nil, fmt.Errorf("%w: %s of entry %d of %s depends on other agents of the run", ErrOneAgent, item.Kind, i+1, m.To)
				}
				now, next = next[0], next[1:]
				known[was] = now
			}
			if err := t.checkSameMessage(item, now.Body, m.To); err != nil {
				return nil, err
			}
			e.Items[k].N, e.Items[k].I, e.Items[k].Body = now.N, now.I, now.Body
		}
		if m, err = t.rewrite(m, e, nil, &hashes); err != nil {
			return nil, err
		}
		taken = append(taken, m)
	}
	return taken, nil
}

// checkSameMessage refuses a message that would say something else in the new run: what an agent has read is its
// history. Only a grant may have another size.
func (t *taking) checkSameMessage(item mailbox.Item, body []byte, of mailbox.Address) error {
	switch {
	case item.Kind == (agent.Submitted{}).Kind():
		return checkSameRights(item, body, of)
	case item.Kind == (agent.Granted{}).Kind() || bytes.Equal(item.Body, body):
		return nil
	case item.Kind == (agent.Returned{}).Kind():
		renamed, err := ChangeBody(item.Body, func(f *agent.Returned) { f.Text = strings.ReplaceAll(f.Text, t.id+"-", string(spec.Root)+"-") })
		if err == nil && bytes.Equal(renamed, body) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s of %s would say something else without the other agents", ErrOneAgent, item.Kind, of)
}

// checkSameRights refuses a task that the new run would give with other rights or limits: agents above bind those
// below them to their hooks, permission rules and tools, and they are not in the new run.
func checkSameRights(item mailbox.Item, body []byte, of mailbox.Address) error {
	var was, now agent.Submitted
	if err := errors.Join(mailbox.Unmarshal(item.Body, &was), mailbox.Unmarshal(body, &now)); err != nil {
		return fmt.Errorf("%w: the task of %s: %w", ErrOneAgent, of, err)
	}
	a, b := was.Task, now.Task
	for _, part := range []struct {
		what string
		same bool
	}{
		{"its permission rules", reflect.DeepEqual(a.Permissions, b.Permissions) && reflect.DeepEqual(a.AddedRules, b.AddedRules)},
		{"its hooks", slices.Equal(a.LoopOptions.Hooks, b.LoopOptions.Hooks)},
		{"its tools", reflect.DeepEqual(a.Tools, b.Tools) && slices.Equal(a.Commands, b.Commands) && slices.Equal(a.Servers, b.Servers) && slices.Equal(a.Foreign, b.Foreign)},
		{"the tools that are forbidden to it", !slices.ContainsFunc(a.Forbidden, func(name string) bool { return !slices.Contains(b.Forbidden, name) })},
		{"its directory", a.Workspace == b.Workspace && slices.Equal(a.Writable, b.Writable) && a.Memory == b.Memory},
		{"its limits", a.Limits.WithDefaults(a.Depth) == b.Limits.WithDefaults(b.Depth)},
	} {
		if !part.same {
			return fmt.Errorf("%w: as the root of a run, %s would be others for %s: agents above it bind it to theirs", ErrOneAgent, part.what, of)
		}
	}
	return nil
}

// marks ends the logs: each agent at work reads that what is under way was begun in the other run, and the other
// agents hold nothing any more.
func (t *taking) marks() (marks []mailbox.Message, err error) {
	o, err := t.command("others", supervisor.OthersUse{Spent: t.others[len(t.others)-1].Spent})
	marks = append(marks, o)
	for _, at := range t.order {
		s, ok := t.agents[spec.ID(at.Agent())]
		if !ok || s.Phase == "" || s.Phase == agent.Done {
			continue
		}
		m, failed := t.command("mark", agent.Forked{Of: t.from + "@" + at.Agent()})
		log := t.logs[at]
		m.To, m.Place, m.At = t.address(at), log[len(log)-1].Place+1, max(t.atMS, log[len(log)-1].At)
		marks, err = append(marks, m), errors.Join(err, failed)
	}
	marks[0].Place = uint64(2 * len(t.others)) // behind all of its log
	return marks, err
}
