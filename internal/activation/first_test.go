package activation_test

import (
	"errors"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// A log whose first entries are lost begins with what never begins a log. An activation
// says so at once instead of waiting forever for a task (PROTOCOL P26).
func TestALogBeginsWithATaskOrIsDamaged(t *testing.T) {
	root, super := mailbox.At("r", "root"), mailbox.At("r", mailbox.Super)
	letter := func(kind string) mailbox.Entry {
		return mailbox.Entry{Form: mailbox.Form, From: super, Items: []mailbox.Item{{N: 7, Kind: kind, Body: decodeBody(t, struct{}{})}}}
	}
	command := func(kind string) mailbox.Entry {
		return mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: "q1", Kind: kind, Body: decodeBody(t, struct{}{})}}}
	}
	mark := func(first bool) mailbox.Entry {
		e := command(agent.Forked{}.Kind())
		e.Items[0].Body = decodeBody(t, agent.Forked{Of: "other@root:0", First: first})
		return e
	}
	own := func(at mailbox.Address, kind string, start string) mailbox.Entry {
		return mailbox.Entry{Form: mailbox.Form, From: at, Epoch: mailbox.Epoch{Lease: 1, Start: 1}, Start: start,
			Items: []mailbox.Item{{ID: "x", Kind: kind, Body: decodeBody(t, struct{}{})}}}
	}
	ask := letter(agent.Reserve{}.Kind())
	ask.From = root
	for name, c := range map[string]struct {
		at      mailbox.Address
		entry   mailbox.Entry
		damaged bool
	}{
		"its task":                        {root, letter(agent.Submitted{}.Kind()), false},
		"a history":                       {root, letter(agent.Recalled{}.Kind()), false},
		"a history that a client imports": {root, command(agent.Recalled{}.Kind()), false},
		"a cancel before its task":        {root, letter(agent.Canceled{}.Kind()), false},
		"a client's cancel before it":     {root, command(agent.Canceled{}.Kind()), false},
		"a client's steering before it":   {root, command(agent.Steered{}.Kind()), false},
		"the model of a fork":             {root, command(agent.ModelSet{}.Kind()), false},
		"the mark of a fork at its task":  {root, mark(true), false},
		"a mark behind its task":          {root, mark(false), true},
		"its tombstone":                   {root, own(root, agent.Closed{}.Kind(), ""), false},
		"a message of its supervisor":     {root, letter(agent.Granted{}.Kind()), true},
		"a claim":                         {root, own(root, agent.Resumed{}.Kind(), "a"), true},
		"a result":                        {root, own(root, agent.Returned{}.Kind(), "a"), true},
		"a client's answer":               {root, command(agent.Answered{}.Kind()), true},
		"a run":                           {super, command(supervisor.Opened{}.Kind()), false},
		"a cancel before the run":         {super, command(agent.Canceled{}.Kind()), false},
		"a message of an agent":           {super, ask, true},
		"a claim of a supervisor":         {super, own(super, agent.Resumed{}.Kind(), "a"), true},
		"a limit":                         {super, command(supervisor.LimitSet{}.Kind()), true},
	} {
		var m activation.Machine = &activation.Agent{Addr: c.at}
		if c.at == super {
			m = &activation.Supervisor{Addr: c.at}
		}
		l := activation.NewLogReader(c.at, "b", mailbox.Epoch{Lease: 1, Start: 2}, m)
		data, err := mailbox.Encode(c.entry)
		if err != nil {
			t.Fatal(err)
		}
		r := l.Next(mailbox.Message{To: c.at, Place: 1, Data: data})
		if got := errors.Is(r.Err, activation.ErrDamaged) && l.Damage != ""; got != c.damaged {
			t.Errorf("a log that begins with %s: damaged %t, %v", name, got, r.Err)
		}
	}
	l := activation.NewLogReader(root, "b", mailbox.Epoch{Lease: 1, Start: 2}, &activation.Agent{Addr: root})
	if r := l.Next(mailbox.Message{To: root, Place: 1, Data: []byte{0xc1}}); !errors.Is(r.Err, activation.ErrDamaged) || l.Damage == "" {
		t.Errorf("a log that begins with no entry: %v", r.Err)
	}
}

func decodeBody(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := mailbox.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A newer node may have begun the log with a form that this one cannot read: that is no
// damage, and this node leaves the log alone.
func TestALogThatBeginsWithANewerFormIsNotDamaged(t *testing.T) {
	root := mailbox.At("r", "root")
	l := activation.NewLogReader(root, "b", mailbox.Epoch{Lease: 1, Start: 2}, &activation.Agent{Addr: root})
	r := l.Next(mailbox.Message{To: root, Place: 1, Data: []byte("\x83\xa1v\x02\xa1z\xc0\xa1m\x90")})
	if !errors.Is(r.Err, mailbox.ErrForm) || errors.Is(r.Err, activation.ErrDamaged) || l.Damage != "" {
		t.Errorf("error %v, damage %q", r.Err, l.Damage)
	}
}

// A log that lost all before a client's steering begins with what may begin a log. The
// first word of its supervisor tells: it is the task, and nothing that follows one.
func TestFirstSupervisorMessageIsATaskOrTheLogIsDamaged(t *testing.T) {
	root, super := mailbox.At("r", "root"), mailbox.At("r", mailbox.Super)
	task := agent.Submitted{Task: spec.Task{ID: "root"}}
	for name, c := range map[string]struct {
		fact    agent.Fact
		damaged bool
	}{
		"its task":        {task, false},
		"a cancel":        {agent.Canceled{}, false},
		"a child's end":   {agent.Returned{Call: "1-0"}, true},
		"a question":      {agent.StatusAsked{Activation: "s", Ordinal: 4}, true},
		"a granted lease": {agent.Granted{}, true},
	} {
		l := activation.NewLogReader(root, "b", mailbox.Epoch{Lease: 1, Start: 2}, &activation.Agent{Addr: root})
		next := func(e mailbox.Entry) error {
			t.Helper()
			data, err := mailbox.Encode(e)
			if err != nil {
				t.Fatal(err)
			}
			return l.Next(mailbox.Message{To: root, Data: data}).Err
		}
		steered := mailbox.Item{ID: "q1", Kind: agent.Steered{}.Kind(), Body: decodeBody(t, agent.Steered{Text: "look closer"})}
		if err := next(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{steered}}); err != nil {
			t.Fatal(err)
		}
		said := mailbox.Item{N: 7, Kind: c.fact.Kind(), Body: decodeBody(t, c.fact)}
		err := next(mailbox.Entry{Form: mailbox.Form, From: super, Items: []mailbox.Item{said}})
		if got := errors.Is(err, activation.ErrDamaged) && l.Damage != ""; got != c.damaged {
			t.Errorf("a supervisor begins with %s: damaged %t, %v", name, got, err)
		}
	}
}
