package mcp

import "time"

// take says that a call begins, which must leave; false: it is closed.
func (s *server) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.users++
	}
	return !s.closed
}

// leave says that a call is over.
func (s *server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	s.rest()
}

// rest is under the lock. It stops a server that nobody comes to for a while, and
// lets the hub forget what is over; of what has failed only when a start would not
// be waited for any more.
func (s *server) rest() {
	if s.users > 0 || s.starting != nil || s.closed {
		return
	}
	if s.idle != nil {
		s.idle.Stop()
	}
	l, pause := s.live, s.hub.cfg.Idle
	if l == nil {
		pause = time.Until(s.retryAt.Add(BackoffMax))
	}
	if l == nil && (s.failures == 0 || pause <= 0) {
		s.closed = true
		s.hub.forget(s)
		return
	}
	s.idle = time.AfterFunc(pause, func() {
		s.mu.Lock()
		over := s.users == 0 && s.live == l && !s.closed
		if over {
			s.live = nil
			s.rest()
		}
		s.mu.Unlock()
		if over && l != nil {
			s.end(l)
		}
	})
}

// end closes what is live no more: beside, or at once where the hub waits for it.
func (s *server) end(l *live) {
	if !s.hub.do(l.close) {
		l.close()
	}
}
