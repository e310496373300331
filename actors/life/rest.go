package life

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// MayRest reports whether the shell of this life may go until the next entry or
// until due, if that is not 0: all letters are out, and nothing is under way
// that the machine knows of (PROTOCOL P19).
func (l *Life) MayRest() (due int64, ok bool) {
	if l.Phase != Alive || l.Damage != "" || !l.Outbox.Empty() { //mutant:rests-without-letters
		return 0, false
	}
	return l.machine.Rests()
}

// Standing is what the newest entry of a log says of its actor.
type Standing struct {
	Ended bool  // for good
	Rests bool  // it has nothing to do before the next entry, or before Due
	Due   int64 // in Unix milliseconds, 0: never
}

// Origin is who wrote an entry, as far as an admission needs to know.
type Origin int

// Origins of entries.
const (
	OriginUnknown Origin = iota // no entry, or one that does not decode
	OriginClient                // a command: nobody needs to have read the log before it
	OriginActor                 // a letter or an own entry: the run has begun
)

// InspectEntry returns the kind of the first item of an entry, and who wrote it.
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

// Stands reads how an actor stands from the newest entry of its log alone;
// entries is how many the log holds, or held later. What it does not know for
// certain is neither at rest nor ended: somebody has to look at it.
//
// An entry says how much of the log was read, and was all out, when it was
// written. It speaks for the whole log only if nothing came in between.
func Stands(at mailbox.Address, newest []byte, entries uint64) Standing {
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
