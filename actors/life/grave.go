package life

import (
	"fmt"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// Grave is the entry that closes the log of an actor which cannot do so itself.
// It counts where it is the first: when everything before it has been removed.
func Grave(at mailbox.Address) ([]byte, error) {
	f := agent.Closed{}
	raw, err := mailbox.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("life: encode %s: %w", f.Kind(), err)
	}
	return mailbox.Encode(mailbox.Entry{Form: mailbox.Form, From: at,
		Items: []mailbox.Item{{ID: string(at) + "!" + f.Kind() + ".grave", Kind: f.Kind(), Body: raw}}})
}

// Buried reports whether a log is what is left of one that was deleted: it
// begins with its own end. No other log does.
func Buried(log []mailbox.Message) bool {
	if len(log) == 0 {
		return false
	}
	e, err := mailbox.Decode(log[0].Data)
	return err == nil && e.From == log[0].To && len(e.Items) > 0 && e.Items[0].Kind == agent.Closed{}.Kind()
}
