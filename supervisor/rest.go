package supervisor

// Rests reports whether the run waits for nothing but what others will say, so
// that the process side of its supervisor may go until then. A supervisor has no
// world but the timers of members that have given no sign of life, and those
// begin anew with each life: it stays until they are over.
func (s State) Rests() bool {
	if s.Phase == Over {
		return false
	}
	rests := true
	s.Members(func(m Member) { rests = rests && (m.Seen || m.Done) })
	return rests
}
