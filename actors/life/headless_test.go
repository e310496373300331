package life_test

import (
	"errors"
	"testing"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/mailbox"
)

// An actor is woken by what somebody says to it. A log that begins with its claim has
// lost that, and a life that takes it up says so instead of waiting for ever (P13, FM10).
func TestALogThatBeginsWithAClaimIsDamaged(t *testing.T) {
	at := mailbox.At("r", "root")
	first := life.New(at, "a", mailbox.Epoch{Lease: 1, Start: 1}, &life.Agent{Addr: at})
	entry, err := first.Claim("n1", "")
	if err != nil {
		t.Fatal(err)
	}
	claim, err := mailbox.Encode(entry)
	if err != nil {
		t.Fatal(err)
	}
	next := life.New(at, "b", mailbox.Epoch{Lease: 1, Start: 2}, &life.Agent{Addr: at})
	if read := next.Next(mailbox.Message{To: at, Place: 2, Data: claim}); !errors.Is(read.Err, life.ErrDamaged) || next.Damage == "" {
		t.Errorf("read as %v, damage %q", read.Err, next.Damage)
	}
}
