package replay

import (
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// RecordedBoundary is a decision that the policy of a run was asked for: at which entry of the supervisor's log, and
// what the policy in force then decides.
type RecordedBoundary struct {
	Entry    uint64
	AtMS     int64 // since the start of the run
	Version  int
	Boundary supervisor.Boundary
	Verdict  supervisor.Verdict
}

// noteBoundary notes a fact that asks the supervisor's policy, before the supervisor reads the fact.
func (l *replayedLog) noteBoundary(f activation.Fact) {
	if !l.watchBoundaries || l.super == nil || f.From == "" {
		return
	}
	fact, ok, err := supervisor.Decode(f.Kind, func(into any) error { return mailbox.Unmarshal(f.Body, into) })
	if err != nil || !ok {
		return
	}
	s := l.super.State
	b, asks := supervisor.FindBoundary(s, supervisor.Input{N: f.N, At: f.At, From: spec.ID(f.From.Agent()), Damaged: f.Damaged, Fact: fact})
	if asks {
		l.boundaries = append(l.boundaries, RecordedBoundary{Entry: f.N, AtMS: b.Facts.ElapsedMS, Version: s.Run.Policy.Version,
			Boundary: b, Verdict: s.Run.Policy.Decide(b.On, b.Facts)})
	}
}
