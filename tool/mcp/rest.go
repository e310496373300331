package mcp

import "time"

// take registers the begin of a call, which must call leave; false: the server is closed.
func (s *server) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.users++
	}
	return !s.closed
}

// leave registers the end of a call.
func (s *server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	s.rest()
}

// rest requires the lock. It stops a server that has been idle for a while, and removes
// a server that has ended from the hub; a server that has failed only once the backoff
// no longer delays a start.
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

// end closes a session that is no longer live: in the background, or at once where the hub waits for it.
func (s *server) end(l *live) {
	if !s.hub.do(l.close) {
		l.close()
	}
}
