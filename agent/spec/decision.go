package spec

// Decision is what a person decides about a question of an agent.
type Decision string

// Decisions.
const (
	Approve  Decision = "approve" // the call runs; the loop goes on
	Deny     Decision = "deny"    // a call does not run, the agent reads why, and the loop goes on; on a question of the loop itself, the agent ends
	Skip     Decision = "skip"    // the call does not run; the loop goes on without an answer
	TextOnly Decision = "text"    // the text is the answer, or the result of the call in place of the tool's
)
