// Package failpoint marks the places of the code where the chaos suite may stop or
// kill a process. In ordinary builds a mark costs nothing: At is empty and is
// inlined away. Built with the tag chaos, a process checks at each mark whether
// the suite has set a failpoint there:
//
//	go build -tags chaos ./cmd/node
//
// A failpoint is a file in the directory that the variable TROUPE_FAILPOINTS names. Its
// name is the place, or the place and the subject of At ("own-sent.started"); its
// content is the fault for the process that reaches the place.
package failpoint

// DirVariable is the variable that names the directory of a process's failpoints.
const DirVariable = "TROUPE_FAILPOINTS"

// Faults.
const (
	// Kill ends the process as SIGKILL does, and removes the failpoint.
	Kill = "kill"
	// Stop stops the process as SIGSTOP does, once.
	Stop = "stop"
	// Panic panics, each time.
	Panic = "panic"
	// KillAll is Kill, and the file stays for the next process that reaches the place.
	KillAll = "kill all"
)

// HitSuffix is the suffix of the file that records that a failpoint was hit, and by which
// subject.
const HitSuffix = ".hit"

// StatsFile is the file into which a process writes its number of goroutines on SIGUSR1.
const StatsFile = "stats"

// Places.
const (
	OwnBefore     = "own-before"     // before an own entry is appended
	OwnSent       = "own-sent"       // after the append was requested, before anything else is read
	OwnAcked      = "own-acked"      // when the broker has stored it
	OwnReading    = "own-reading"    // before an own entry that was read back is stepped
	OwnRead       = "own-read"       // after that, before the actor acts on it
	ClaimBefore   = "claim-before"   // before an activation claims its log
	ClaimAcked    = "claim-acked"    // when the broker has stored the claim
	Read          = "read"           // before any entry is stepped; by the address of the log
	OutboxBefore  = "outbox-before"  // before an outbox message is appended to another actor's log
	OutboxSent    = "outbox-sent"    // after the append was requested
	OutboxAcked   = "outbox-acked"   // when the broker has stored it
	ModelBefore   = "model-before"   // before a request is sent
	ModelAfter    = "model-after"    // after the model answered, before the answer is recorded
	ToolBefore    = "tool-before"    // before a tool is called; by the key of the call
	ToolAfter     = "tool-after"     // after it returned, before the result is recorded
	CommandBefore = "command-before" // before a command of a client is appended
	CommandAfter  = "command-after"  // after that, before the client gets a reply
)
