package mcpclient

import "time"

// beginCall registers the begin of a call, which must call leave; false: the server is closed.
func (s *serverProcess) beginCall() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.users++
	}
	return !s.closed
}

// endCall registers the end of a call.
func (s *serverProcess) endCall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	s.stopIdle()
}

// stopIdle requires the lock. It stops a server that has been idle for a while, and removes
// a server that has ended from the hub; a server that has failed only once the backoff
// no longer delays a start.
func (s *serverProcess) stopIdle() {
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
		s.hub.forgetServer(s)
		return
	}
	s.idle = time.AfterFunc(pause, func() {
		s.mu.Lock()
		over := s.users == 0 && s.live == l && !s.closed
		if over {
			s.live = nil
			s.stopIdle()
		}
		s.mu.Unlock()
		if over && l != nil {
			s.endSession(l)
		}
	})
}

// endSession closes a session that is no longer live: in the background, or at once where the hub waits for it.
func (s *serverProcess) endSession(l *liveSession) {
	if !s.hub.runBackground(l.closeSession) {
		l.closeSession()
	}
}
