package runfile

import (
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/troupe-run/troupe/mailbox"
)

// Redact removes all content from a file: of each fact it leaves the kind, the sender and the receiver, of each
// entry the stamp and the place, and no blob and no result. The hashes in the logs are removed, too, because they
// would confirm a guess of the content. So such a file can be neither replayed, nor verified, nor restored.
func Redact(f File) (File, error) {
	f.Header.Redacted, f.Header.Dump, f.Header.Result, f.Blobs = true, false, nil, nil
	entries := make([]mailbox.Message, len(f.Entries))
	for i, m := range f.Entries {
		e, err := mailbox.Decode(m.Data)
		if err != nil { // nothing is known of what such bytes hold
			e = mailbox.Entry{Form: mailbox.Form}
		}
		e.Hash = nil
		for k := range e.Items {
			e.Items[k].ID, e.Items[k].Body = "", emptyBody
		}
		if m.Data, err = mailbox.Encode(e); err != nil {
			return File{}, fmt.Errorf("runfile: redact an entry of %s: %w", m.To, err)
		}
		entries[i] = m
	}
	f.Entries = entries
	return f, nil
}

// emptyBody is the body of a fact without content: an empty map.
var emptyBody = msgpack.RawMessage{0x80}
