package activation

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// MayPassivate reports whether this activation may free its memory until the next entry or
// until due, if due is not 0: all messages are acknowledged, and the machine knows of nothing
// that is under way (PROTOCOL P19).
func (l *LogReader) MayPassivate() (due int64, ok bool) {
	if l.Phase != Active || l.Damage != "" || !l.Outbox.Empty() { //mutant:rests-with-a-full-outbox
		return 0, false
	}
	return l.machine.Rests()
}

// Standing is the state of an actor as the newest entry of its log shows it.
type Standing struct {
	Ended bool  // for good
	Rests bool  // the actor has nothing to do before the next entry, or before Due
	Due   int64 // in Unix milliseconds, 0: never
}

// Origin is the kind of writer of an entry, as far as an admission needs it.
type Origin int

// Origins of entries.
const (
	OriginUnknown Origin = iota // no entry, or one that does not decode
	OriginClient                // a command: it needs no activation that read the log before
	OriginActor                 // a message or an own entry: the run has begun
)

// InspectEntry returns the kind of the first item of an entry, and its origin.
func InspectEntry(data []byte) (kind string, from Origin) {
	e, err := mailbox.Decode(data)
	switch {
	case err != nil || len(e.Items) == 0:
		return "", OriginUnknown
	case e.From == "":
		return e.Items[0].Kind, OriginClient
	}
	return e.Items[0].Kind, OriginActor
}

// ReadStanding derives the state of an actor from the newest entry of its log alone; entries
// is how many the log holds, or held at a later time. If the state is uncertain, Rests and
// Ended are false, so that a node activates the actor.
//
// An entry says how much of the log was read, with all messages acknowledged, when it was
// written. It speaks for the whole log only if no other entry came in between.
func ReadStanding(at mailbox.Address, newest []byte, entries uint64) Standing {
	e, err := mailbox.Decode(newest)
	if err != nil || e.From != at || len(e.Items) != 1 || e.Floor+1 != entries { //mutant:rest-covers-the-log
		return Standing{}
	}
	switch item := e.Items[0]; item.Kind {
	case agent.Closed{}.Kind():
		return Standing{Ended: true}
	case agent.Released{}.Kind():
		var f agent.Released
		if mailbox.Unmarshal(item.Body, &f) == nil && f.Rests {
			return Standing{Rests: true, Due: f.Due}
		}
	}
	return Standing{}
}
