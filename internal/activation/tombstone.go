package activation

import (
	"fmt"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// Tombstone makes the entry that closes the log of an actor which cannot close it itself. It
// counts if it is the first entry: when everything before it has been removed.
func Tombstone(at mailbox.Address) ([]byte, error) {
	f := agent.Closed{}
	raw, err := mailbox.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("activation: encode %s: %w", f.Kind(), err)
	}
	return mailbox.Encode(mailbox.Entry{Form: mailbox.Form, From: at,
		Items: []mailbox.Item{{ID: string(at) + "!" + f.Kind() + ".grave", Kind: f.Kind(), Body: raw}}})
}

// IsTombstone reports whether a log was deleted, so that only its tombstone is left: it
// begins with its own end. No other log does.
func IsTombstone(log []mailbox.Message) bool {
	if len(log) == 0 {
		return false
	}
	e, err := mailbox.Decode(log[0].Data)
	return err == nil && e.From == log[0].To && len(e.Items) > 0 && e.Items[0].Kind == agent.Closed{}.Kind()
}
