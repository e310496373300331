// Package trap marks the places of the code where the chaos suite may stop or
// kill a process. In ordinary builds a mark is nothing at all: At is empty and is
// inlined away. Built with the tag chaos, a process looks at each mark whether
// somebody has set a trap there:
//
//	go build -tags chaos ./cmd/node
//
// A trap is a file in the directory that the variable TROUPE_TRAPS names. Its name
// is the place, or the place and what comes by there ("own-sent.started"); its
// content says what is done to whoever comes by.
package trap

// Dir is the variable that names the directory of the traps of a process.
const Dir = "TROUPE_TRAPS"

// What a trap does.
const (
	// Kill ends the process as SIGKILL does. The trap is gone with it.
	Kill = "kill"
	// Stop stops the process as SIGSTOP does, once.
	Stop = "stop"
	// Panic panics, each time.
	Panic = "panic"
	// KillAll is Kill, and the trap stays for whoever comes next.
	KillAll = "kill all"
)

// Sprung ends the name of the file that tells that a trap was sprung, and by what.
const Sprung = ".sprung"

// Stats is the file in which a process tells how many goroutines it has when it
// gets SIGUSR1.
const Stats = "stats"

// Places.
const (
	OwnBefore     = "own-before"     // before an own entry is appended
	OwnSent       = "own-sent"       // after that was asked for, and before anything else is read
	OwnAcked      = "own-acked"      // when the broker has it
	OwnReading    = "own-reading"    // before an own entry that has come round is stepped
	OwnRead       = "own-read"       // after that, and before anything is done for it
	ClaimBefore   = "claim-before"   // before a life claims its log
	ClaimAcked    = "claim-acked"    // when the broker has the claim
	Read          = "read"           // before any entry is stepped; by the address of the log
	LetterBefore  = "letter-before"  // before a letter is appended to the log of another actor
	LetterSent    = "letter-sent"    // after that was asked for
	LetterAcked   = "letter-acked"   // when the broker has it
	ModelBefore   = "model-before"   // before a request is sent
	ModelAfter    = "model-after"    // after it was answered, and before anybody knows
	ToolBefore    = "tool-before"    // before a tool is called; by the key of the call
	ToolAfter     = "tool-after"     // after it returned, and before anybody knows
	CommandBefore = "command-before" // before a command of a client is appended
	CommandAfter  = "command-after"  // after that, and before the client is answered
)
