package activation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/mailbox"
)

// requestClaim begins the activation, which does nothing until it has read back its claim.
func requestClaim(s *stepContext) {
	e, err := s.Reader.Claim(s.Node, s.Reader.Damage)
	var data []byte
	if err == nil {
		data, err = mailbox.Encode(e)
	}
	if err != nil {
		s.addActions(Fail{"claim", err})
		return
	}
	s.addActions(AppendClaim{data})
}

// handleClaimAppended has the shell read the log up to the claim. If the activation claims while it
// is active (see Read.Reclaim), it reads the claim back from the tail.
func handleClaimAppended(s *stepContext, f ClaimAppended) {
	switch {
	case errors.Is(f.Err, mailbox.ErrFull):
		s.addActions(Warn{"the log has no room for a claim; retrying", []any{"actor", s.Reader.Addr}})
		s.deliverLater(ClaimAgain{})
	case f.Err != nil:
		s.addActions(Fail{"claim", f.Err})
	case s.stage == Claiming:
		s.addActions(ReadLog{f})
	}
}

// ReplayEntries returns the entries that the activation would step after it has read its log:
// the log, and the tail that arrived meanwhile. For a log that it would not replay, there are
// none.
func (s State) ReplayEntries(f LogRead) []mailbox.Message {
	if s.stage != Claiming || f.Err != nil || s.isHopeless(f.Log) {
		return nil
	}
	return slices.Concat(f.Log, s.ahead)
}

// isHopeless reports whether too many activations in a row did not get through the log. The
// actor of a deleted log is not given up.
func (s State) isHopeless(log []mailbox.Message) bool {
	return UnfinishedStarts(log) > s.StartsMax && !IsTombstone(log)
}

// replayLog steps the log, then the entries of the tail that arrived meanwhile.
func replayLog(s *stepContext, f LogRead) {
	switch {
	case s.stage != Claiming:
		return
	case errors.Is(f.Err, mailbox.ErrClosed):
		s.addActions(Fail{"replay", f.Err})
		return
	case f.Err != nil:
		// The log has no leader, or its blocks do not decode: no activation could read it now.
		s.addActions(Warn{"cannot read log; retrying", []any{"actor", s.Reader.Addr, "error", f.Err}})
		s.deliverLater(f.Claim)
		return
	case s.isHopeless(f.Log):
		s.addActions(ReportHopeless{fmt.Sprintf("%d starts in a row did not get through the log", s.StartsMax)})
		return
	}
	s.stage, s.Reader.Found = Following, f.Differences
	for _, m := range slices.Concat(f.Log, s.ahead) {
		readEntry(s, m)
	}
	countArrived(s, len(s.ahead))
	s.ahead = nil
	advanceOutput(s)
	if s.toDrain {
		beginDraining(s)
	}
	if s.through > 0 { // also while draining: it must still read back its own entries //mutant:drains-detached
		catchUp(s, s.through)
	}
}
