package agent

// Bounds that the tests of behaviour compare with.
const (
	JournalTextMax    = journalTextMax
	JournalEntryMax   = journalEntryMax
	JournalEntriesMax = journalEntriesMax
	JournalBytesMax   = journalBytesMax
	DigestMax         = digestMax
	AttemptsMax       = attemptsMax
	RemarksMax        = remarksMax
)

// What a suspended agent awaits, and what it continues with.
type (
	Awaited      = awaited
	Continuation = continuation
)
