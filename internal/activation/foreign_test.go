package activation_test

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// An own entry of an unknown kind stops the activation, which names the entry and decides nothing
// from it (P10).
func TestStep_AnOwnEntryOfAnUnknownKindEndsTheActivation(t *testing.T) {
	d := activeAgent(t)
	entry := d.landEncoded(mailbox.Entry{From: root, Epoch: mailbox.Epoch{Lease: 1, Start: 1}, Start: "a",
		Items: []mailbox.Item{{ID: "x", Kind: "invented_later", Body: []byte{0x80}}}})
	if got := d.learnFact(entry); !strings.HasPrefix(got, "ReportNewerLog") {
		t.Fatal(got)
	}
	if why := d.last[0].(activation.ReportNewerLog).Why; !strings.Contains(why, `"invented_later"`) {
		t.Error(why)
	}
}
