package sim

import (
	"slices"

	"github.com/troupe-run/troupe/mailbox"
)

// loseHead removes the first entries of an agent's log, whether or not a claim covers
// them. The remaining log begins with no task, and its next activation reports that (P26).
func (s *sim) loseHead() {
	a := s.actors[s.IntN(len(s.actors))]
	if a == s.super || a.closed || a.hurt || len(a.log) < 2 {
		return
	}
	k := s.between(1, len(a.log)-1)
	for len(a.shells) > 0 {
		s.kill(a.shells[0])
	}
	s.spoil(a, len(a.log)-k)
	a.shadow.rotten = !begins(a.log[k])
	if a.shadow.rotten {
		s.reach.hit(Beheaded)
	}
	s.note("%s loses its first %d entries", a.id, k)
	a.log = append(a.log[:0:0], a.log[k:]...)
	a.shadow.again()
}

// begins reports whether an entry may begin an agent's log, as the judge reads PROTOCOL P26.
func begins(m mailbox.Message) bool {
	e, err := mailbox.Decode(m.Data)
	if err != nil || len(e.Items) == 0 {
		return false
	}
	kind := e.Items[0].Kind
	switch e.From {
	case "":
		return kind == "recalled" || kind == "canceled" || kind == "steered"
	case mailbox.At(runName, mailbox.Super):
		return kind == "submitted" || kind == "recalled" || kind == "canceled"
	}
	return e.From == m.To && kind == "closed"
}

// loseRunTail removes the newest entries of the supervisor's log, as a crash does
// where the store did not sync its disk. Half of the time it removes the end of a member, and
// everything after that.
func (s *sim) loseRunTail() {
	a := s.super
	if a.closed || a.hurt || len(a.log) < 2 {
		return
	}
	keep := max(1, len(a.log)-s.between(1, 6))
	if at := ends(a.log); len(at) > 0 && s.percent(50) {
		keep = at[s.IntN(len(at))]
	}
	for len(a.shells) > 0 {
		s.kill(a.shells[0])
	}
	s.spoil(a, keep)
	for _, t := range a.shadow.emitted {
		if t.landed && t.n > uint64(keep) {
			s.ledger.heard[t.letterKey] = t.body
		}
	}
	s.reach.hit(RunTailLost)
	s.note("the log of the run loses its tail, %d entries are left", keep)
	a.log = a.log[:keep:keep]
	s.ledger.over = 0
	s.heardLess()
}

// heardLess makes the judge expect only the remaining entries of the run's log.
func (s *sim) heardLess() {
	w := &s.super.shadow
	w.high = map[mailbox.Address]uint64{}
	w.again()
	for _, a := range s.actors {
		account := w.super.State.Pool.Account(string(a.id))
		a.shadow.heard = min(a.shadow.heard, w.high[a.addr])
		a.shadow.granted = min(a.shadow.granted, max(account.Open, account.Closed))
	}
}

// ends are the places of a supervisor's log before each Finish.
func ends(log []mailbox.Message) (at []int) {
	for i := 1; i < len(log); i++ {
		e, err := mailbox.Decode(log[i].Data)
		if err == nil && slices.ContainsFunc(e.Items, func(t mailbox.Item) bool { return t.Kind == "finish" }) {
			at = append(at, i)
		}
	}
	return at
}
