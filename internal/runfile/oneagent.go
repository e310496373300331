package runfile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// ErrOneAgent says that an agent cannot be taken out of its run.
var ErrOneAgent = errors.New("the agent cannot be taken out of its run")

// TakeAgent makes the logs of a run whose root is one agent of another run, with the agents below it. The entries are a
// consistent cut of that run. The caller must judge the logs that were made.
//
// The logs of the agents stay as they are, but for names. The log of the supervisor keeps its own entries, the
// commands and the messages of these agents. What it has sent to them is computed again from that, and so is what
// they send: without the other agents, grants may have another size.
//
// The other agents used a part of the budget. Before each message, the log says how much they used then
// (supervisor.OthersUse). So the agents get the same grants as in the whole run, and at the end they have what the
// others have left.
func TakeAgent(entries []mailbox.Message, id spec.ID, to string, atMS int64) ([]mailbox.Message, error) {
	t, err := newTaking(entries, id, to, atMS)
	if err != nil {
		return nil, err
	}
	taken, err := t.takeUntilStable()
	if err != nil {
		return nil, err
	}
	marks, err := t.marks()
	return append(taken, marks...), err
}

// roundsMax is how often the messages between the supervisor and the agents are computed again: a grant of another
// size changes the next settlement, which changes the next grant.
const roundsMax = 16

func (t *taking) takeUntilStable() (taken []mailbox.Message, err error) {
	t.heard = nil
	for range roundsMax {
		super, err := t.takeSupervisor()
		if err != nil {
			return nil, err
		}
		t.sent = sentMessages(super)
		taken = super
		heard := map[messageID][]byte{}
		for _, at := range t.order {
			if !below(t.id, at.Agent()) {
				continue
			}
			log, err := t.takeLog(t.logs[at])
			if err != nil {
				return nil, err
			}
			taken = append(taken, log...)
			noteMessages(log, heard)
		}
		if maps.EqualFunc(heard, t.heard, bytes.Equal) {
			return taken, nil
		}
		t.heard = heard
	}
	return nil, fmt.Errorf("%w: what it was granted depends on other agents of the run", ErrOneAgent)
}

// taking takes one agent, and those below it, out of a run.
type taking struct {
	id, to string
	from   string // the run
	atMS   int64
	logs   map[mailbox.Address][]mailbox.Message
	order  []mailbox.Address
	task   spec.Task // of the agent
	super  supervisor.State
	agents map[spec.ID]agent.State
	sent   map[mailbox.Address][]activation.OutboxMessage // by the supervisor of the new run
	heard  map[messageID][]byte                           // what the agents of the new run send to it
	others []supervisor.OthersUse                         // before each entry of the supervisor's log, and at its end
}

// messageID names a message of an agent of the new run.
type messageID struct {
	from mailbox.Address
	n    uint64
	i    int
	kind string
}

func newTaking(entries []mailbox.Message, id spec.ID, to string, atMS int64) (*taking, error) {
	t := &taking{id: string(id), to: to, atMS: atMS, logs: map[mailbox.Address][]mailbox.Message{}, agents: map[spec.ID]agent.State{}}
	for _, m := range entries {
		if t.logs[m.To] == nil {
			t.order = append(t.order, m.To)
		}
		t.logs[m.To] = append(t.logs[m.To], m)
		t.from = m.To.Run()
	}
	if id == spec.Root {
		return nil, fmt.Errorf("%w: it is the root: a dump of the run is the file of its root", ErrOneAgent)
	}
	for _, at := range t.order {
		if !below(t.id, at.Agent()) {
			continue
		}
		m := &activation.Agent{Addr: at}
		if err := readAll(at, t.logs[at], m); err != nil {
			return nil, err
		}
		t.agents[spec.ID(at.Agent())] = m.State
	}
	for _, s := range t.agents {
		if usesBacklog(s) {
			return nil, fmt.Errorf("%w: %s uses the backlog, and the other agents of the run have a part in that", ErrOneAgent, s.Task.ID)
		}
	}
	s, ok := t.agents[id]
	if !ok || s.Phase == "" {
		return nil, fmt.Errorf("%w: there is no agent %.80q that has begun", ErrOneAgent, id)
	}
	super := mailbox.At(t.from, mailbox.Super)
	m := &activation.Supervisor{Addr: super}
	reader := activation.Watch(super, m)
	for _, entry := range t.logs[super] {
		t.others = append(t.others, t.othersUse(m.State))
		if r := reader.Next(entry); r.Err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOneAgent, r.Err)
		}
	}
	t.others = append(t.others, t.othersUse(m.State))
	t.task, t.super = s.Task, m.State
	return t, nil
}

func readAll(at mailbox.Address, log []mailbox.Message, m activation.Machine) error {
	reader := activation.Watch(at, m)
	for _, entry := range log {
		if r := reader.Next(entry); r.Err != nil {
			return fmt.Errorf("%w: %w", ErrOneAgent, r.Err)
		}
	}
	return nil
}

// below reports whether an agent is the one of an id, or below it.
func below(id, other string) bool { return other == id || spec.ID(other).IsBelow(spec.ID(id)) }

// name is the id of an agent in the new run.
func (t *taking) name(id string) string { return string(spec.Root) + strings.TrimPrefix(id, t.id) }

// address is that of an actor in the new run.
func (t *taking) address(a mailbox.Address) mailbox.Address {
	if a.Agent() == mailbox.Super {
		return mailbox.At(t.to, mailbox.Super)
	}
	return mailbox.At(t.to, t.name(a.Agent())).In(a.Pool())
}

// takeSupervisor keeps the part of the supervisor's log that concerns the agents.
func (t *taking) takeSupervisor() (kept []mailbox.Message, err error) {
	log := t.logs[mailbox.At(t.from, mailbox.Super)]
	start, activation, err := t.findStart(log)
	if err != nil {
		return nil, err
	}
	var hashes HashChain
	var known supervisor.OthersUse
	before := make([]uint64, 0, len(log)) // how many of the entries up to each are kept
	for i, m := range log {
		e, err := mailbox.Decode(m.Data)
		if err == nil {
			e.Items, err = t.keptItems(e)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: entry %d of %s: %w", ErrOneAgent, i+1, m.To, err)
		}
		if i < start { // the run begins with the agent: no earlier activation has known of it
			m.At, m.Nanos = log[start].At, log[start].Nanos
			if e.From == m.To && e.Start != activation {
				e.Items = nil
			}
		}
		if len(e.Items) > 0 {
			if now := t.others[i]; i > start && e.From != "" && e.From != log[i].To && now != known {
				o, err := t.command("others-"+fmt.Sprint(i), now)
				if err != nil {
					return nil, err
				}
				o.At, o.Nanos, known = m.At, m.Nanos, now
				hashes.Add(o.Data)
				kept = append(kept, o)
			}
			if m, err = t.rewrite(m, e, before, &hashes); err != nil {
				return nil, err
			}
			kept = append(kept, m)
		}
		before = append(before, uint64(len(kept)))
	}
	commands := 0
	for i := range kept {
		kept[i].Place = uint64(i + 1)
		if e, err := mailbox.Decode(kept[i].Data); err == nil && e.From == "" {
			commands++
		}
	}
	if commands > commandsMax {
		return nil, fmt.Errorf("%w: its budget depends on others at more than %d moments", ErrOneAgent, commandsMax)
	}
	return kept, nil
}

// command makes an entry for the supervisor of the new run.
func (t *taking) command(key string, fact interface{ Kind() string }) (mailbox.Message, error) {
	body, err := mailbox.Marshal(fact)
	if err != nil {
		return mailbox.Message{}, err
	}
	data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: "taken-" + key + "-" + t.to, Kind: fact.Kind(), Body: body}}})
	return mailbox.Message{To: mailbox.At(t.to, mailbox.Super), At: t.atMS, Data: data}, err
}

// othersUse returns what the agents that are not taken have of the budget.
func (t *taking) othersUse(s supervisor.State) supervisor.OthersUse {
	p := s.Pool
	o := supervisor.OthersUse{Spent: p.Spent, Held: p.Held, Ahead: p.Ahead, Kept: p.Kept, Carved: p.Carved}
	s.Members(func(m supervisor.Member) {
		if a := p.Account(string(m.ID)); below(t.id, string(m.ID)) {
			o.Spent, o.Held, o.Ahead, o.Kept = o.Spent.Minus(a.Spent), o.Held.Minus(a.Held).Minus(a.Ahead), o.Ahead.Minus(a.Ahead), o.Kept.Minus(a.Kept)
		}
	})
	return o
}

// commandsMax leaves room for the requests that the new run will get: a log has at most RequestsMax.
const commandsMax = activation.RequestsMax * 3 / 4

// findStart returns the index of the entry that began the agent, and the activation of the supervisor that read it.
func (t *taking) findStart(log []mailbox.Message) (start int, activation string, err error) {
	for i, m := range log {
		e, err := mailbox.Decode(m.Data)
		if err != nil {
			return 0, "", fmt.Errorf("%w: entry %d of %s: %w", ErrOneAgent, i+1, m.To, err)
		}
		for _, item := range e.Items {
			var f agent.Delegate
			switch {
			case e.From == m.To && item.Kind == (agent.Resumed{}).Kind():
				activation = e.Start
			case item.Kind == f.Kind() && mailbox.Unmarshal(item.Body, &f) == nil && string(f.Child) == t.id:
				return i, activation, nil
			}
		}
	}
	return 0, "", fmt.Errorf("%w: no agent has delegated to it", ErrOneAgent)
}

// rewrite encodes an entry in the new run. before maps indexes of the log; nil: they stay.
func (t *taking) rewrite(m mailbox.Message, e mailbox.Entry, before []uint64, hashes *HashChain) (mailbox.Message, error) {
	if e.Floor > 0 && before != nil {
		e.Floor = before[min(e.Floor, uint64(len(before)))-1]
	}
	if len(e.Hash) > 0 {
		if e.Floor == 0 || e.Floor > uint64(len(hashes.Hashes)) {
			return m, fmt.Errorf("%w: an entry of %s has the hash of entries that are not there", ErrOneAgent, m.To)
		}
		e.Hash = hashes.Hashes[e.Floor-1]
	}
	to := t.address(m.To)
	for i, item := range e.Items {
		if rest, own := strings.CutPrefix(item.ID, string(m.To)+"!"); own {
			e.Items[i].ID = string(to) + "!" + rest
		}
	}
	if e.From != "" {
		e.From = t.address(e.From)
	}
	data, err := mailbox.Encode(e)
	if err != nil {
		return m, fmt.Errorf("%w: %s: %w", ErrOneAgent, m.To, err)
	}
	hashes.Add(data)
	m.To, m.Data, m.Imported = to, data, false
	return m, nil
}

// keptItems returns what of an entry of the supervisor's log concerns the agents.
func (t *taking) keptItems(e mailbox.Entry) (kept []mailbox.Item, err error) {
	if e.From != "" && e.From.Agent() != mailbox.Super && !below(t.id, e.From.Agent()) {
		return nil, nil
	}
	for _, item := range slices.Clone(e.Items) {
		keeps := true
		if body, ok := t.heard[messageID{t.address(e.From).Bare(), item.N, item.I, item.Kind}]; ok && e.From != "" {
			item.Body = body
			kept = append(kept, item)
			continue
		}
		switch item.Kind {
		case supervisor.Opened{}.Kind():
			item.Body, err = ChangeBody(item.Body, t.open)
		case supervisor.LaneStarted{}.Kind():
			keeps = false
		case agent.Delegate{}.Kind():
			item.Body, err = ChangeBody(item.Body, func(f *agent.Delegate) { f.Child = spec.ID(t.name(string(f.Child))) })
		case agent.Send{}.Kind():
			item.Body, err = ChangeBody(item.Body, func(f *agent.Send) {
				if below(t.id, f.To) {
					f.To = t.name(f.To)
				}
			})
		case agent.Canceled{}.Kind():
			item.Body, err = ChangeBody(item.Body, func(f *agent.Canceled) {
				if keeps = f.Of == "" || below(t.id, string(f.Of)); keeps && f.Of != "" {
					f.Of = spec.ID(t.name(string(f.Of)))
				}
			})
		case supervisor.GivenUp{}.Kind():
			item.Body, err = ChangeBody(item.Body, func(f *supervisor.GivenUp) {
				keeps, f.Agent = below(t.id, string(f.Agent)), spec.ID(t.name(string(f.Agent)))
			})
		case agent.Woke{}.Kind():
			item.Body, err = ChangeBody(item.Body, func(f *agent.Woke) {
				if kind, who, ok := strings.Cut(f.Timer, "/"); ok {
					keeps, f.Timer = below(t.id, who), kind+"/"+t.name(who)
				}
			})
		}
		if err != nil {
			return nil, err
		}
		if keeps {
			kept = append(kept, item)
		}
	}
	return kept, nil
}

// open changes the first entry of the run: its root is the agent, with the rights and limits that the agent has. The
// tree may be as deep below it as before.
func (t *taking) open(o *supervisor.Opened) {
	o.Run, o.Root, o.Goal, o.Fork = t.to, t.task.Name, t.task.Goal, t.from+"@"+t.id
	o.Conversation, o.InLane, o.Past, o.Media, o.RootTurns = "", false, nil, t.task.Media, 0
	o.LoopOptions.Require, o.LoopOptions.Continue = spec.Require{}, spec.Continue{}
	o.Limits.Depth = max(1, t.super.Run.Limits.Depth-t.task.Depth)
	for i := range o.Definitions {
		d := &o.Definitions[i]
		if d.Name != t.task.Name {
			continue
		}
		d.Limits, d.LoopOptions.Require.Schema, d.Carved, d.OnlyNamed = t.task.Limits, t.task.LoopOptions.Require.Schema, false, false
		d.Tools = []string{}
		for _, tool := range o.Tools {
			if !slices.Contains(t.task.Forbidden, tool.Name) {
				d.Tools = append(d.Tools, tool.Name)
			}
		}
	}
}

// usesBacklog reports whether an agent has called a tool of the backlog that the agents of its run share.
func usesBacklog(s agent.State) bool {
	return slices.ContainsFunc(s.History, func(m model.Message) bool {
		return slices.ContainsFunc(m.Calls, func(c model.ToolCall) bool { return strings.HasPrefix(c.Name, "backlog_") })
	})
}
