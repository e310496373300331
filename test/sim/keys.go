package sim

import (
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
)

type reservationKey struct {
	who         spec.ID
	reservation int
}

type callKey struct {
	who     spec.ID
	call    string
	attempt int
}

type gateKey struct{ activation, id string }

type askedQuestion struct {
	who   spec.ID
	query string
}

// messageKey identifies an outbox message for ever.
type messageKey struct {
	from mailbox.Address
	n    uint64
	i    int
}
