package mailbox

// The bound on what a decode allocates, for its test.
const (
	AllocFactor = allocFactor
	AllocBase   = allocBase
)
