package supervisor

import "github.com/troupe-run/troupe/agent"

// Rests reports whether the run waits for nothing but what others will say, so
// that the process side of its supervisor may go until then, or until due, when it
// asks its members how they stand. A supervisor has no world but the timers of
// members that have given no sign of life, and those begin anew with each life: it
// stays until they are over.
func (s State) Rests() (due int64, ok bool) {
	if s.Phase == Over {
		return 0, false
	}
	rests := true
	s.Members(func(m Member) { rests = rests && (m.Seen || m.Done) })
	if rests && s.Live > 0 && s.Run.Rules >= agent.WorkRules {
		due = s.askDue()
	}
	return due, rests
}
