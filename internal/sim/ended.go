package sim

import (
	"slices"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/mailbox"
)

// answerAfterEnd sends what a closed log answers to whom that does not know of its end.
func (s *sim) answerAfterEnd(sh *shell, r life.Read) {
	sh.repeat = append(sh.repeat, r.Repeat...)
	if sh.life.Phase != life.Closed {
		return
	}
	for _, t := range sh.repeat {
		s.reach.hit(RepeatedEnd)
		s.append(t.To, s.encode(sh.life.Post([]life.Letter{t})), sh.start+" says again "+t.Kind)
	}
	sh.repeat = nil
}

// loseHead takes the first entries of an agent's log away, whether anything claims
// them or not. What is left begins with no task, and its next activation says so (P26).
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

// begins: an entry that may begin an agent's log, as the judge reads PROTOCOL P26.
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

// loseRunTail takes the newest entries of the supervisor's log away, as a crash does
// where the store did not wait for its disk. Half of the time the end of a member, and
// what came after it, is what is lost.
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
	s.reach.hit(RunTailLost)
	s.note("the log of the run loses its tail, %d entries are left", keep)
	a.log = a.log[:keep:keep]
	s.ledger.published, s.ledger.over = 0, 0
	s.heardLess()
}

// heardLess makes the judge expect of the run's log what is left of it.
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
