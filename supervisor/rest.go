package supervisor

// Rests reports whether the run waits only for messages of others, so that the
// process side of its supervisor may passivate until then, or until due, when it
// asks its members for their status. The only outside world of a supervisor are
// the timers of members that have sent nothing yet, and each activation starts
// those anew: the supervisor stays active until they are over.
func (s State) Rests() (due int64, ok bool) {
	if s.Phase == Over {
		return 0, false
	}
	rests := true
	s.Members(func(m Member) { rests = rests && (m.Seen || m.Done) })
	if rests && s.Live > 0 {
		due = s.Inquiry.nextDue()
		if s.ParkDue != 0 {
			due = min(due, s.ParkDue)
		}
	}
	return due, rests
}
