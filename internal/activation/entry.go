package activation

import (
	"fmt"
	"strconv"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// Claim makes the entry that begins this activation.
func (l *LogReader) Claim(node string, damaged string) (mailbox.Entry, error) {
	r := agent.Resumed{Activation: l.Start, Node: node, Damaged: damaged, Looked: l.driftClaimRequested}
	if l.driftClaimRequested {
		r.Found = l.Found
	}
	return l.OwnEntry("resumed", l.Start, r)
}

// OwnEntry makes an entry of this activation. The key tells entries of one kind apart.
func (l *LogReader) OwnEntry(kind, key string, body any) (mailbox.Entry, error) {
	return l.OwnEntryOf(l.Epoch, l.Start, kind, key, body)
}

// OwnEntryOf makes an entry for an activation that may be over: the result of work that it began.
// The entry counts if that activation's entries count.
func (l *LogReader) OwnEntryOf(epoch mailbox.Epoch, start, kind, key string, body any) (mailbox.Entry, error) {
	raw, err := mailbox.Marshal(body)
	if err != nil {
		return mailbox.Entry{}, fmt.Errorf("activation: encode %s: %w", kind, err)
	}
	id := l.ID(epoch, start, kind, key)
	e := mailbox.Entry{Form: mailbox.Form, From: l.Addr, Epoch: epoch, Start: start,
		Items: []mailbox.Item{{ID: id, Kind: kind, Body: raw}}}
	if f := l.Outbox.Floor(); f > l.base && f <= l.N && l.Phase == Active { //mutant:blind-floor-above-what-is-out
		h := l.hashes[f-l.base-1]
		e.Floor, e.Hash = f, h[:]
	}
	return e, nil
}

// EncodeEvidence makes the entry for a tool's result if the actor has no activation. The
// entry claims no ack floor. Results of other kinds get no id, because only the activation
// itself may post them.
func EncodeEvidence(o OwnResult) (id string, data []byte, err error) {
	if o.Kind != (agent.Returned{}).Kind() {
		return "", nil, nil
	}
	reader := LogReader{Addr: o.At}
	id = reader.ID(o.Epoch, o.Start, o.Kind, o.Key)
	e, err := reader.OwnEntryOf(o.Epoch, o.Start, o.Kind, o.Key, o.Body)
	if err == nil {
		data, err = mailbox.Encode(e)
	}
	if err == nil || o.Small {
		return id, data, err
	}
	o.Small = true
	o.Kind, o.Body = ShrinkResult(o.Kind, o.Body)
	return EncodeEvidence(o)
}

// ID names an own entry (PROTOCOL P8).
func (l *LogReader) ID(epoch mailbox.Epoch, start, kind, key string) string {
	return string(l.Addr) + "!" + kind + "." + key + "." + strconv.FormatUint(epoch.Lease, 10) + "-" + strconv.FormatUint(epoch.Start, 10) + "." + start
}

// MessageEntry makes the entry that carries messages to one receiver.
func (l *LogReader) MessageEntry(messages []OutboxMessage) mailbox.Entry {
	e := mailbox.Entry{Form: mailbox.Form, From: l.Addr, Items: make([]mailbox.Item, len(messages))}
	for i, t := range messages {
		e.Items[i] = mailbox.Item{N: t.N, I: t.I, Kind: t.Kind, Body: t.Body}
	}
	return e
}
