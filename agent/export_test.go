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

// InputBound is the bound of the next prompt, which tests of behaviour compare with what was sent.
func (s State) InputBound() int64 { return s.inputBound() }
