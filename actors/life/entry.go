package life

import (
	"fmt"
	"strconv"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// Claim is the entry that begins this life.
func (l *Life) Claim(node string, damaged string) (mailbox.Entry, error) {
	r := agent.Resumed{Life: l.Start, Node: node, Damaged: damaged, Looked: l.looked}
	if l.looked {
		r.Found = l.Found
	}
	return l.Own("resumed", l.Start, r)
}

// Own makes an entry of this life. key tells entries of one kind apart.
func (l *Life) Own(kind, key string, body any) (mailbox.Entry, error) {
	return l.OwnAs(l.Epoch, l.Start, kind, key, body)
}

// OwnAs makes an entry for a life that may be over: the result of work that it
// began. It counts as far as that life's entries count.
func (l *Life) OwnAs(epoch mailbox.Epoch, start, kind, key string, body any) (mailbox.Entry, error) {
	raw, err := mailbox.Marshal(body)
	if err != nil {
		return mailbox.Entry{}, fmt.Errorf("life: encode %s: %w", kind, err)
	}
	id := l.ID(epoch, start, kind, key)
	e := mailbox.Entry{Form: mailbox.Form, From: l.Addr, Epoch: epoch, Start: start,
		Items: []mailbox.Item{{ID: id, Kind: kind, Body: raw}}}
	if f := l.Outbox.Floor(); f > l.base && f <= l.N && l.Phase == Alive { //mutant:blind-floor-above-what-is-out
		h := l.hashes[f-l.base-1]
		e.Floor, e.Hash = f, h[:]
	}
	return e, nil
}

// ID names an own entry (PROTOCOL P8).
func (l *Life) ID(epoch mailbox.Epoch, start, kind, key string) string {
	return string(l.Addr) + "!" + kind + "." + key + "." + strconv.FormatUint(epoch.Lease, 10) + "-" + strconv.FormatUint(epoch.Start, 10) + "." + start
}

// Post is the entry that carries letters to one receiver.
func (l *Life) Post(letters []Letter) mailbox.Entry {
	e := mailbox.Entry{Form: mailbox.Form, From: l.Addr, Items: make([]mailbox.Item, len(letters))}
	for i, t := range letters {
		e.Items[i] = mailbox.Item{N: t.N, I: t.I, Kind: t.Kind, Body: t.Body}
	}
	return e
}
