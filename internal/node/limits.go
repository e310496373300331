package node

import "github.com/troupe-run/troupe/internal/runspec"

// Limits of a run that names none.
const (
	ScoutTokens = runspec.ScoutTokens
	ModelTokens = runspec.ModelTokens
	PaidNano    = runspec.PaidNano
	// AttachedBytesMax is the most of all attachments of a request.
	AttachedBytesMax = runspec.AttachedBytesMax
)
