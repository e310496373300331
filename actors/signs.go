package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/supervisor"
)

// awaitsSign reports whether a member that has given no sign of life is waited for
// longer, though its time is over: while a node of its pool lives, and once more after
// it was seen, because another node may be about to come in its place. The machine
// hears of the timer only when that is over; a new activation begins to wait anew.
func (s *shell) awaitsSign(c actor.Context, timer string) bool {
	if s.super == nil {
		return false
	}
	pool, unseen := s.super.State.Unseen(timer)
	if !unseen {
		return false
	}
	lives := s.cfg.Serves(pool)
	if !lives && !s.awaited[timer] {
		return false
	}
	if s.awaited == nil {
		s.awaited = map[string]bool{}
	}
	s.awaited[timer] = lives
	if lives {
		s.log.Warn("an agent gives no sign of life; a node of its pool lives, so it is waited for", "actor", s.life.Addr, "timer", timer, "pool", pool)
	}
	s.arm(c, timer, time.Now().Add(supervisor.FirstSignMS*time.Millisecond).UnixMilli())
	return true
}
