package runimport

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// The logs of a fork are those of its original with another run id. The id is in addresses, in the ids of entries, in
// the first entry of the run and in each task. Hashes of the logs are computed again. Stamps move by one distance, so
// that the point of the fork is now: time limits, timers and the expiry of questions go on from there. Everything
// else stays as it was, and the same checks as of a restored run show that this version comes to the same decisions.

// errForkedLog says that a log cannot be copied, because it is not whole.
var errForkedLog = errors.New("control: a log of the run is damaged")

// A restored run that goes on in another directory, or in the node pool of another machine, is copied by the same
// code. It keeps its id and its stamps.

// forkedLogs copies logs.
type forkedLogs struct {
	from, to string                     // the runs
	open     func(o *supervisor.Opened) // changes the first entry of the run
	pools    map[mailbox.Address]string // of agents, by their address without a pool; nil: as they were
	shift    int64                      // of stamps, in milliseconds

	tasks map[messageID]taskBody // that the supervisor of the copy sends
}

// messageID names a message of the supervisor.
type messageID struct {
	n uint64
	i int
}

type taskBody []byte

// address returns the address that takes the place of another.
func (f *forkedLogs) address(a mailbox.Address) mailbox.Address {
	if a.Run() != f.from {
		return a
	}
	copied := mailbox.Address(f.to + strings.TrimPrefix(string(a), f.from))
	if pool, ok := f.pools[a.Bare()]; ok {
		return copied.In(pool)
	}
	return copied
}

// copyLogs copies the logs of a cut. The entries of each log are in order, one log after the other.
func (f *forkedLogs) copyLogs(cut []mailbox.Message) (copied []mailbox.Message, err error) {
	logs, order := map[mailbox.Address][]mailbox.Message{}, []mailbox.Address(nil)
	for _, m := range cut {
		if logs[m.To] == nil {
			order = append(order, m.To)
		}
		logs[m.To] = append(logs[m.To], m)
	}
	super, err := f.copyLog(logs[mailbox.At(f.from, mailbox.Super)])
	if err != nil {
		return nil, err
	}
	f.tasks = sentTasks(super)
	for _, at := range order {
		log := super
		if at.Agent() != mailbox.Super {
			if log, err = f.copyLog(logs[at]); err != nil {
				return nil, err
			}
		}
		copied = append(copied, log...)
	}
	return copied, nil
}

func (f *forkedLogs) copyLog(log []mailbox.Message) ([]mailbox.Message, error) {
	var before, after runfile.HashChain
	copied := make([]mailbox.Message, len(log))
	for i, m := range log {
		e, err := mailbox.Decode(m.Data)
		if err != nil {
			return nil, fmt.Errorf("%w: entry %d of %s: %w", errForkedLog, i+1, m.To, err)
		}
		if len(e.Hash) > 0 {
			if e.Floor == 0 || e.Floor > uint64(i) || !bytes.Equal(e.Hash, before.Hashes[e.Floor-1]) {
				return nil, fmt.Errorf("%w: entry %d of %s does not have the hash of the entries before it", errForkedLog, i+1, m.To)
			}
			e.Hash = after.Hashes[e.Floor-1]
		}
		before.Add(m.Data)
		if m.Data, err = f.copyEntry(m.To, e); err != nil {
			return nil, fmt.Errorf("control: fork: entry %d of %s: %w", i+1, m.To, err)
		}
		after.Add(m.Data)
		m.To, m.At, m.Imported = f.address(m.To), m.At+f.shift, false
		copied[i] = m
	}
	return copied, nil
}

func (f *forkedLogs) copyEntry(at mailbox.Address, e mailbox.Entry) ([]byte, error) {
	items := make([]mailbox.Item, len(e.Items))
	for i, item := range e.Items {
		if rest, own := strings.CutPrefix(item.ID, string(at)+"!"); own {
			item.ID = string(f.address(at)) + "!" + rest
		}
		body, err := f.copyBody(item, e.From)
		if err != nil {
			return nil, err
		}
		item.Body = body
		items[i] = item
	}
	e.From, e.Items = f.address(e.From), items
	return mailbox.Encode(e)
}

// copyBody returns the body of a fact in the fork.
func (f *forkedLogs) copyBody(item mailbox.Item, from mailbox.Address) ([]byte, error) {
	switch item.Kind {
	case supervisor.Opened{}.Kind():
		return runfile.ChangeBody(item.Body, f.open)
	case agent.Submitted{}.Kind():
		if task, ok := f.tasks[messageID{item.N, item.I}]; ok && from.Agent() == mailbox.Super {
			return task, nil
		}
	case agent.Park{}.Kind():
		return runfile.ChangeBody(item.Body, func(p *agent.Park) { p.Due = f.later(p.Due) })
	case agent.Released{}.Kind():
		return runfile.ChangeBody(item.Body, func(r *agent.Released) { r.Due = f.later(r.Due) })
	}
	return item.Body, nil
}

func (f *forkedLogs) later(due int64) int64 {
	if due == 0 {
		return 0
	}
	return due + f.shift
}

// moveOpened changes the directory of a run.
func moveOpened(o *supervisor.Opened, dir string) {
	if o.Workspace == "" {
		return
	}
	was := o.Workspace
	o.Workspace = dir
	moved := func(path string) string {
		if rest, ok := workdir.Below(was, path); ok && filepath.IsAbs(path) {
			return filepath.Join(dir, rest)
		}
		return path
	}
	for i := range o.Servers {
		o.Servers[i].Source = moved(o.Servers[i].Source)
	}
	for i := range o.Definitions {
		o.Definitions[i].Source = moved(o.Definitions[i].Source)
	}
}

// taskWatch is a supervisor whose tasks are collected.
type taskWatch struct {
	activation.Supervisor
	n     uint64
	sent  int
	tasks map[messageID]taskBody
}

// Step steps one fact.
func (w *taskWatch) Step(f activation.Fact) activation.Stepped {
	out := w.Supervisor.Step(f)
	if f.N != w.n {
		w.n, w.sent = f.N, 0
	}
	for _, m := range out.Messages {
		if m.Kind == (agent.Submitted{}).Kind() {
			w.tasks[messageID{f.N, w.sent}] = m.Body
		}
		w.sent++
	}
	return out
}

// sentTasks returns the tasks that a supervisor sends by its log.
func sentTasks(log []mailbox.Message) map[messageID]taskBody {
	if len(log) == 0 {
		return nil
	}
	w := &taskWatch{Supervisor: activation.Supervisor{Addr: log[0].To}, tasks: map[messageID]taskBody{}}
	reader := activation.Watch(log[0].To, w)
	for _, m := range log {
		reader.Next(m)
	}
	return w.tasks
}
