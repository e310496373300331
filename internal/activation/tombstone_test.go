package activation_test

import (
	"testing"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// Only an actor's own end, and only as its first entry, is what is left of a log
// that was deleted (P14).
func TestOnlyItsOwnEndBuriesALog(t *testing.T) {
	grave := func(from mailbox.Address) []byte {
		data, err := activation.Tombstone(from)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	own, other := mailbox.At("r", "root"), mailbox.At("r", "super")
	for name, c := range map[string]struct {
		log  []mailbox.Message
		want bool
	}{
		"nothing":           {nil, false},
		"its own end":       {[]mailbox.Message{{To: own, Data: grave(own)}}, true},
		"the end and more":  {[]mailbox.Message{{To: own, Data: grave(own)}, {To: own, Data: []byte("late")}}, true},
		"another's end":     {[]mailbox.Message{{To: own, Data: grave(other)}}, false},
		"garbage":           {[]mailbox.Message{{To: own, Data: []byte("x")}}, false},
		"an end after that": {[]mailbox.Message{{To: own, Data: []byte("x")}, {To: own, Data: grave(own)}}, false},
	} {
		if got := activation.IsTombstone(c.log); got != c.want {
			t.Errorf("%s: buried %v", name, got)
		}
	}
}
