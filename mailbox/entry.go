package mailbox

import "github.com/vmihailenco/msgpack/v5"

// Entry is the content of one append to a log. There are three sorts:
//
//   - outbox messages: From is another actor; every Item carries (N, I), its identity
//     (PROTOCOL P6): N is the index of the entry in the sender's log that caused it,
//     I its index in that step. Several outbox messages may share an entry.
//   - own entries: From is the log's own address; ID identifies them (P8), Epoch and
//     Start say which activation posted them, Floor and Hash are the ack floor that
//     they claim and the hash of the log (P12).
//   - commands: From is empty; Item.ID is the request id that the client chose (P9).
type Entry struct {
	Form  int     `msgpack:"v"`
	From  Address `msgpack:"f,omitempty"`
	Epoch Epoch   `msgpack:"e,omitempty"`
	Start string  `msgpack:"s,omitempty"`
	Floor uint64  `msgpack:"l,omitempty"`
	Hash  []byte  `msgpack:"h,omitempty"`
	Items []Item  `msgpack:"m"`
}

// Form is the newest form of entries that this code writes and reads.
const Form = 1

// Item is one fact in an entry.
type Item struct {
	N    uint64             `msgpack:"n,omitempty"`
	I    int                `msgpack:"i,omitempty"`
	ID   string             `msgpack:"d,omitempty"`
	Kind string             `msgpack:"k"`
	Body msgpack.RawMessage `msgpack:"b"`
}

// Epoch orders the activations of an actor: first by the revision of the write that acquired
// the shard lease, then by the number of the activation under it. It is the fencing token of
// a claim.
type Epoch struct {
	Lease uint64 `msgpack:"l"`
	Start uint64 `msgpack:"s"`
}

// Higher reports whether e is a later claim than f.
func (e Epoch) Higher(f Epoch) bool {
	return e.Lease > f.Lease || e.Lease == f.Lease && e.Start > f.Start
}
