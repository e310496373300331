// Package trap marks the places of the code where the chaos suite may stop or
// kill a process. In ordinary builds a mark is nothing at all: At is empty and is
// inlined away. Built with the tag chaos, a process looks at each mark whether
// somebody has set a trap there:
//
//	go build -tags chaos ./cmd/node
//
// A trap is a file in the directory that the variable TROUPE_TRAPS names. Its name
// is the place, or the place and what comes by there ("own.sent.started"); its
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
