package sim

import (
	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// tooShort: the supervisor had heard more than the log told when it went on.
func (w *shadow) tooShort() bool { return w.regrown > 0 && w.heard >= w.regrown }

// watchVouched: no side effect begins from a log of which more was heard.
func (s *sim) watchVouched(a *actor, call string, class model.Class) {
	w := &a.shadow
	st := &w.agent.State
	if class == model.Read || !a.hurt || s.super.hurt || w.rotten || !st.Task.Manners.Vouch {
		return
	}
	s.reach.hit(VouchedAfterCut)
	if w.tooShort() || st.Lease < w.granted {
		s.fail("%s: call %s begins, and the log lost its tail (cut to %d, heard of %d; %d leases, granted %d)",
			a.id, call, w.cut, w.heard, st.Lease, w.granted)
	}
}

// watchAsked: an agent asks once in a life whether its log is whole.
func (s *sim) watchAsked(a *actor, before agent.State, out life.Stepped) {
	asked := before.Vouch.Asked
	for _, letter := range out.Letters {
		if letter.Kind != (agent.Vouch{}).Kind() {
			continue
		}
		var v agent.Vouch
		if err := mailbox.Unmarshal(letter.Body, &v); err != nil {
			s.fail("%s: a question to the supervisor does not decode: %v", a.id, err)
			return
		}
		if v.Life == asked {
			s.fail("%s asks twice in life %s whether its log is whole", a.id, v.Life)
		}
		asked = v.Life
	}
}

// finalHurt: a spoiled log that could be known as such ends log_damaged.
func (s *sim) finalHurt(a *actor) {
	w := &a.shadow
	known := w.rotten || w.tooShort()
	if known && !w.alarmed && !w.done {
		s.fail("the log of %s was spoiled (rotten %v, cut to %d, heard of %d) and nobody noticed", a.id, w.rotten, w.cut, w.heard)
	}
	m, _ := s.super.shadow.super.State.Member(a.id)
	st := w.agent.State
	halted := st.Outcome.Reason == agent.LogDamaged || m.Outcome.Reason == agent.LogDamaged
	canceled := st.Cancel != nil && st.Cancel.As == ""
	if w.alarmed && !w.late && !halted && !canceled {
		s.fail("the log of %s is known to be damaged, and it ends %s", a.id, st.Outcome.Reason)
	}
}
