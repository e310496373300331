package top

import "time"

// What a screen keeps at most, however long it is open and however large the run is.
const (
	runsMax            = 1000 // rows of the list of runs
	questionsMax       = 500
	nodesMax           = 500
	agentsMax          = 20_000 // of the open run
	spansMax           = 20_000 // of its timeline
	eventsMax          = 2000   // of its newest events
	eventColumnsMax    = 400    // of one of them
	EntriesMax         = 200    // of one log, on one page
	dumpBytesMax       = 16 << 10
	formBytesMax       = 64 << 10 // that are typed or pasted into a field of a form
	transcriptBytesMax = 1 << 20
	transcriptLinesMax = 10_000
	textBytesMax       = 64 << 10 // of one message or question
	writingBytesMax    = 4 << 10  // of a reply that arrives
	lineBytesMax       = 4 << 10  // of what is drawn in one line
	inputBytesMax      = 4 << 10  // that are typed
	historyMax         = 16       // places to which esc goes back
	budgetAgentsMax    = 200      // rows by agent
	decisionsMax       = 12       // the last ones, in the view of why a run stopped
)

// How often the screen polls a node. It polls what the view shows, and always the questions (counted in the head) and
// the open run.
const (
	listInterval       = 2 * time.Second
	transcriptInterval = time.Second
	probeInterval      = time.Second // while no node answers
)

// answerGuard is how long a question must be selected before a key answers it: the key may be meant for the question
// that was there before.
const answerGuard = 700 * time.Millisecond

// The smallest terminal in which the screen is drawn.
const (
	widthMin  = 40
	heightMin = 10
)
