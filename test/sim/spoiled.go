package sim

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// tooShort reports whether the supervisor had read of more entries than the log held when it continued.
func (w *shadow) tooShort() bool { return w.regrown > 0 && w.heard >= w.regrown }

// watchVouched checks that no side effect begins before the supervisor has compared the log in
// the same activation, and that none begins from a log of which the supervisor had read more.
func (s *sim) watchVouched(sh *shell, call string, class model.Class) {
	a := sh.actor
	w := &a.shadow
	st := &w.agent.State
	recorded := class == model.Effect || class == model.Irreversible
	current := st.Life == sh.start // the log has no later claim that it has not read
	if recorded && current && st.Task.LoopOptions.Vouch && st.Vouch.Answered != st.Life {
		s.fail("%s: call %s begins in activation %q, and the supervisor compared the log for %q", a.id, call, st.Life, st.Vouch.Answered)
	}
	if class == model.Read || !a.hurt || s.super.hurt || w.rotten || !st.Task.LoopOptions.Vouch {
		return
	}
	s.reach.hit(VouchedAfterCut)
	if w.tooShort() || st.Lease < w.granted {
		s.fail("%s: call %s begins, and the log lost its tail (cut to %d, heard of %d; %d leases, granted %d)",
			a.id, call, w.cut, w.heard, st.Lease, w.granted)
	}
}

// watchAsked checks that an agent asks at most once in an activation for a verification of its log.
func (s *sim) watchAsked(a *actor, before agent.State, out activation.Stepped) {
	asked := before.Vouch.Asked
	for _, letter := range out.Messages {
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

// finalHurt checks that a spoiled log whose damage could be noticed ends log_damaged.
func (s *sim) finalHurt(a *actor) {
	w := &a.shadow
	known := w.rotten || w.tooShort()
	if known && !w.alarmed && !w.done {
		s.fail("the log of %s was spoiled (rotten %v, cut to %d, heard of %d) and nobody noticed", a.id, w.rotten, w.cut, w.heard)
	}
	m, _ := s.super.shadow.super.State.Member(a.id)
	st := w.agent.State
	halted := st.Outcome.Reason == spec.LogDamaged || m.Outcome.Reason == spec.LogDamaged
	canceled := st.Cancel != nil && st.Cancel.As == ""
	if w.alarmed && !w.late && !halted && !canceled {
		s.fail("the log of %s is known to be damaged, and it ends %s", a.id, st.Outcome.Reason)
	}
}
