// Package runimport makes runs of the logs of others: it restores runs from run files, and forks trees. Both come into
// the store as imported entries, in an order in which no node acts on a part of a run, and both pass the same checks: such
// a run has no right that a new run would not get here.
package runimport

import (
	"context"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// Config is what imports of runs need of their node.
type Config struct {
	Store mailbox.Store
	Index *runindex.Index
	Blobs mailbox.Blobs
	// Node is the name of the node, Version that of its program. NoActors says that the node runs no agents.
	Node, Version string
	NoActors      bool
	Now           func() time.Time
	Redact        func([]byte) []byte
	// CheckRestored, CheckRestoredChange, PlaceRestored and ForkModel are those of the node; see the Config of package
	// control.
	CheckRestored       func(o supervisor.Opened, named client.RunRequest) error
	CheckRestoredChange func(o supervisor.Opened, named client.RunRequest, change RecordedChange) error
	PlaceRestored       func(named client.RunRequest) (dir, pool string, err error)
	ForkModel           ModelChooser
	// Lock waits until no other request opens, imports or deletes a run.
	Lock func(ctx context.Context, run string) (done func(), err error)
	// FindRun returns the row of a run, or the reason why it is not there.
	FindRun func(ctx context.Context, run string) (runindex.Row, error)
	// CheckRoom refuses new runs for which there is no room, CheckUnopened those whose id is taken, too, and CheckQueue
	// those for which the queue of the node is full.
	CheckRoom     func(ctx context.Context) error
	CheckUnopened func(ctx context.Context, run string) error
	CheckQueue    func() error
	// CheckApprover refuses a request whose sender may not approve.
	CheckApprover func(ctx context.Context) error
	Answers       Answers
}

// Answers are the rules of answers to open questions, of which a restore may bring some.
type Answers interface {
	// Find finds the question of a run that a request answers.
	Find(run string, s supervisor.Summary, r client.AnswerRequest) (q supervisor.OpenQuestion, ok bool, err error)
	// Check refuses an answer that the agent would not take.
	Check(r client.AnswerRequest, q supervisor.OpenQuestion, now time.Time) error
	// Fact is the entry of an answer, and ID the id of it.
	Fact(r client.AnswerRequest, q supervisor.OpenQuestion) agent.Answered
	ID(r client.AnswerRequest) string
}

// NewRestorer returns what restores runs from run files.
func NewRestorer(cfg Config) *Restorer {
	return &Restorer{&cfg, &runFileCheck{&cfg}, &runImporter{&cfg}}
}

// NewForker returns what makes forks of trees. Its Reopen must be set.
func NewForker(cfg Config) *Forker {
	return &Forker{cfg: &cfg, check: &runFileCheck{&cfg}, importer: &runImporter{&cfg}}
}
