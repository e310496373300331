package sim

import (
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
)

type leaseKey struct {
	who   spec.ID
	lease int
}

type callKey struct {
	who     spec.ID
	call    string
	attempt int
}

type gateKey struct{ life, id string }

type question struct {
	who   spec.ID
	query string
}

// letterKey identifies an outbox message for ever.
type letterKey struct {
	from mailbox.Address
	n    uint64
	i    int
}
