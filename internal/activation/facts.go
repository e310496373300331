package activation

import "github.com/troupe-run/troupe/mailbox"

// Input is one fact that an activation learns, with the time and the lease that its node knew
// then.
type Input struct {
	Now int64 // Unix milliseconds, by the clock of the node
	// Lease is the lease under which the node holds the log, if LeaseHeld. Facts that deliver
	// entries, ProveLease and Passivate need both.
	Lease     uint64
	LeaseHeld bool
	Fact      any // one of the types of this file
}

// Facts about the claim and the log.
type (
	// Activate begins the activation.
	Activate struct{}
	// ClaimAppended says at which place of the log a claim is, or why the append failed.
	ClaimAppended struct {
		Place uint64
		Err   error
	}
	// ClaimAgain says that the pause before the next attempt to claim is over.
	ClaimAgain struct{}
	// LogRead is the log from its start up to the claim.
	LogRead struct {
		Claim       ClaimAppended
		Log         []mailbox.Message
		Differences map[string]string // where the configuration of this node differs from the task's
		Err         error
	}
	// EntryArrived delivers an entry of the tail.
	EntryArrived struct{ Message mailbox.Message }
	// EntryRead delivers an entry that the activation read for itself after the replay.
	EntryRead struct{ Message mailbox.Message }
	// TailRead ends one part of such a read.
	TailRead struct {
		Through uint64
		Entries int
		Err     error
	}
	// Detached says that the tail sends nothing more for now, and that the log extends at
	// least to Through.
	Detached struct{ Through uint64 }
)

// Facts about appends. An error comes from the store; mailbox.ErrClosed says that the process
// ends.
type (
	// OwnFailed says that the append of an own entry failed.
	OwnFailed struct {
		Own OwnResult
		Err error
	}
	// AppendAgain says that the pause before the next attempt is over.
	AppendAgain struct{ Own OwnResult }
	// MessagesSent says that messages are in the log of their receiver, or why the append
	// failed.
	MessagesSent struct {
		To       mailbox.Address
		Messages []OutboxMessage
		Err      error
	}
	// SendAgain says that the pause before the next attempt is over.
	SendAgain struct {
		To       mailbox.Address
		Messages []OutboxMessage
	}
	// HoldExpired says that messages which were held back to share an entry are to be sent now.
	HoldExpired struct{}
	// AnswerSent says that the answer of a closed log is sent, or why the append failed.
	AnswerSent struct {
		Message OutboxMessage
		Err     error
	}
	// AnswerAgain says that the pause before the next attempt is over.
	AnswerAgain struct{}
)

// Facts about the world.
type (
	// WorkDone says that work has produced a result. Another activation may have begun the
	// work.
	WorkDone struct{ Own OwnResult }
	// WorkPosted says that work has ended, and that a later activation posted its result.
	WorkPosted struct{ Start, Key string }
	// WorkNotBegun says that work did not begin because the lease had ended just before.
	WorkNotBegun struct {
		Start, Key string
		Effect     any
	}
	// TimerFired says that a timer is due. If the timer waits for the first sign of life of a
	// member, Served says whether a node of the member's pool is alive.
	TimerFired struct {
		Timer  string
		Served bool
	}
	// ProveLease makes the activation check again whether it may begin the postponed effects.
	ProveLease struct{}
	// Drain asks the activation to drain.
	Drain struct{}
	// Passivate asks the activation to free its memory if it has nothing to do. Early asks for
	// that before the idle timeout, because runs are queued.
	Passivate struct{ Early bool }
)

// OwnResult is a result of an activation's own work that is to become an own entry. It names the
// activation that began the work, because another one may post it.
type OwnResult struct {
	At        mailbox.Address
	Epoch     mailbox.Epoch
	Start     string
	Kind, Key string
	Body      any
	Small     bool // it replaces a result that was too large
}
