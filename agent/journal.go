package agent

// Journal is the run journal that the agent edits.
type Journal struct{}

// dynamic is the part of the system prompt behind the cache breakpoint: what
// the task says, and last the digest of the journal as it stood at the last
// compaction, so that a prefix that was sent stays as it was.
func (s State) dynamic() string { return s.Task.Manners.Dynamic }
