package control

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/buildslots"
	"github.com/troupe-run/troupe/internal/control/runimport"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/schedules"
	"github.com/troupe-run/troupe/internal/telemetry"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// opener opens runs, and continues those that exist.
type opener struct {
	cfg       *Config
	lookup    *lookup
	owners    *ownerCheck
	lanes     *laneLogs
	schedules *schedules.Registry
	admission *admission
	commander *commander
	canceler  *canceler
	histories *histories
	keeper    *laneKeeper
	forker    *runimport.Forker
	locks     *runLocks
	// opening has a slot for each run that is opened now; nil: other nodes open runs on the same logs, too.
	opening chan struct{}
	// building has the slots for runs that are built now.
	building *buildslots.Slots
}

// opensPerProcessor is how many runs a node that owns all logs opens at once, for each processor. A run that is open
// goes on before others are opened, so that short runs end one after the other and are not all in memory. Where each
// append waits for the disk (Config.LogsSynced), it is opensPerProcessorSynced: the appends of many runs share a sync.
const (
	opensPerProcessor       = 2
	opensPerProcessorSynced = 8
)

func newOpener(p *parts, forker *runimport.Forker) *opener {
	c := &opener{cfg: p.cfg, lookup: p.lookup, owners: p.owners, lanes: p.lanes, schedules: p.schedules, admission: p.admission, commander: p.commander, canceler: p.canceler,
		histories: p.histories, keeper: p.keeper, forker: forker, locks: p.locks,
		building: buildslots.New(buildsPerProcessor * runtime.GOMAXPROCS(0))}
	if p.cfg.Cluster == nil {
		c.opening = make(chan struct{}, opensAtOnce(p.cfg.LogsSynced)*runtime.GOMAXPROCS(0))
	}
	forker.Reopen = c.reopenRun
	return c
}

// opensAtOnce is how many runs a node that owns all logs opens at once, for each processor.
func opensAtOnce(synced bool) int {
	if synced {
		return opensPerProcessorSynced
	}
	return opensPerProcessor
}

// openRun opens a run, or continues the one that has this id. The order of its steps:
//
//   - checkRunRequest refuses what is wrong whatever there is, and changes nothing.
//   - serveSpecialRequest serves the requests that open no run here: of a schedule, of a fork of a tree, of a dry run.
//   - lockRun comes before the first look, so that of two owners the second is refused before it appends.
//   - continueExisting comes before all that may refuse a new run: a request that is repeated gets its run.
//   - openNew opens the run.
func (c *opener) openRun(ctx context.Context, r client.RunRequest) (any, error) {
	if err := checkRunRequest(ctx, r); err != nil {
		return nil, err
	}
	r.Trace = traceOf(ctx, r)
	if reply, handled, err := c.serveSpecialRequest(ctx, r); handled || err != nil {
		return reply, err
	}
	done, err := c.locks.lockRun(ctx, r.RunID)
	if err != nil {
		return nil, err
	}
	defer done()
	if accepted, exists, err := c.continueExisting(ctx, r); exists || err != nil {
		return accepted, err
	}
	return c.openNew(ctx, r)
}

// openNew opens a run whose id is free. The order of its steps:
//
//   - Room and queue are checked before the request is resolved or an entry is written.
//   - resolveRequest names the conversation and the owner, which the first entry holds for good.
//   - buildFirstEntry makes the first entry.
//   - prependHistory appends a requested history to the log of the root, which the root reads first.
//   - appendOpened appends the first entry: from here on the run exists, and works.
//   - addRow comes after it: a row without a log would be that of a lost run.
//   - enterLane comes last, because a lane reads the rows of its runs.
func (c *opener) openNew(ctx context.Context, r client.RunRequest) (any, error) {
	if err := cmp.Or(c.admission.checkRoom(ctx), c.cfg.Queue.checkFull()); err != nil {
		return nil, err
	}
	meant, err := c.resolveRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	opened, accepted, err := c.buildFirstEntry(ctx, meant, r.Conversation)
	if err != nil {
		return nil, err
	}
	if meant.Fork != "" || meant.History != nil {
		past, notes, err := c.prependHistory(ctx, meant, opened)
		if err != nil {
			return nil, err
		}
		opened.Past, accepted.Notes = past, append(accepted.Notes, notes...)
	}
	if err := c.appendOpened(ctx, opened); err != nil {
		return nil, err
	}
	if r.History != nil {
		c.purgeUploadedHistory(ctx, rootOf(opened))
	}
	err = c.addRow(ctx, client.RunInfo{RunID: r.RunID, State: client.RunLive, Title: runindex.TitleOf(r.Prompt), Agent: opened.Root, Fork: cmp.Or(opened.Fork, meant.Fork), Model: accepted.Model, Node: c.cfg.Name, Owner: opened.Owner,
		Started: time.Now().UTC().Format(time.RFC3339), Conversation: meant.Conversation})
	if err != nil || meant.Conversation == "" {
		return accepted, err
	}
	return c.keeper.enterLane(ctx, meant.Conversation, accepted)
}

// checkRunRequest refuses what no request may have, or what its sender may not ask for.
func checkRunRequest(ctx context.Context, r client.RunRequest) error {
	if r.Instead != "" {
		if err := refuseAgentProgram(ctx); err != nil {
			return err
		}
	}
	if err := cmp.Or(bounds.CheckRunID(r.RunID), checkNamedOwner(r.Owner), checkPreview(r)); err != nil {
		return err
	}
	if schedules.TimesOf(r).IsEmpty() && (r.Zone != "" || r.Missed != "" || r.Overlap != "") {
		return &client.Error{Code: client.CodeBad, Text: "zone, missed and overlap are only valid with a schedule", Hint: "add at or every, or leave them out"}
	}
	return nil
}

// traceOf returns the trace context of a request, or of its header. It goes into each log of the run, and to MCP servers.
func traceOf(ctx context.Context, r client.RunRequest) string {
	header, _ := ctx.Value(traceKey{}).(string) // requests of this node itself have none
	return telemetry.CleanTraceparent(cmp.Or(r.Trace, header))
}

// serveSpecialRequest makes a schedule, forks a tree or answers a dry run, and refuses what only such a request may have.
// handled is false if a run is to be opened here.
func (c *opener) serveSpecialRequest(ctx context.Context, r client.RunRequest) (reply any, handled bool, err error) {
	point, isFork := runimport.ParseForkPoint(r.Fork)
	switch {
	case !schedules.TimesOf(r).IsEmpty():
		if err := checkCreator(ctx); err != nil {
			return nil, true, err
		}
		reply, err = c.schedules.Create(ctx, r)
	case isFork && !r.Resume:
		reply, err = c.forker.Fork(ctx, r, point)
	case r.Instead != "":
		err = &client.Error{Code: client.CodeBad, Text: "`instead` is only valid with a fork of a tree", Hint: "name the result or the question that it replaces: fork is RUN@AGENT:CALL or RUN@AGENT:QUESTION"}
	case len(r.Layers) > 0:
		err = &client.Error{Code: client.CodeBad, Text: "`layers` are only valid with a fork of a tree", Hint: "name them in an agent file, or set them while the run works: `troupe context RUN --layer NAME=TEXT`"}
	case r.DryRun:
		reply, err = c.previewRun(ctx, r)
	default:
		return nil, false, nil
	}
	return reply, true, err
}

// resolveRequest returns a request with the conversation and the owner that it means.
func (c *opener) resolveRequest(ctx context.Context, r client.RunRequest) (client.RunRequest, error) {
	r, err := c.keeper.withConversation(ctx, r)
	if err != nil {
		return r, err
	}
	r.Owner, err = c.forkOwner(ctx, r)
	return r, err
}

// forkOwner returns the owner of a new run: the fork that an operator makes has the owner of its original, unless it is
// part of a conversation, which has an owner of its own.
func (c *opener) forkOwner(ctx context.Context, r client.RunRequest) (owner string, err error) {
	if r.Fork == "" || r.Conversation != "" || r.Owner != "" {
		return r.Owner, nil
	}
	from, _, _ := strings.Cut(r.Fork, "@")
	owner, _, err = c.owners.ownerOf(ctx, from)
	return owner, err
}

// buildFirstEntry builds the first entry of a run, and writes nothing: dry runs and schedules try a request with it.
// asked is the conversation that the client named: Build recognizes a command of the user by its whole request.
func (c *opener) buildFirstEntry(ctx context.Context, r client.RunRequest, asked string) (supervisor.Opened, client.RunAccepted, error) {
	sent := r
	sent.Conversation = asked
	holder, err := c.lanes.holderOf(ctx, r)
	if err != nil {
		return supervisor.Opened{}, client.RunAccepted{}, err
	}
	sent.Holder = holder
	opened, accepted, err := c.build(ctx, sent)
	if err != nil {
		return opened, accepted, explainHolder(err, r.Conversation, holder)
	}
	opened.Conversation, opened.InLane, opened.Owner = r.Conversation, r.Conversation != "", r.Owner
	return opened, accepted, c.checkUploads(ctx, r, rootOf(opened))
}

// prependHistory appends the history that a request names to the log of the root, before the entry that opens the run.
// It returns where the history comes from, and what the client should know of it.
func (c *opener) prependHistory(ctx context.Context, r client.RunRequest, o supervisor.Opened) (past *spec.HistoryOrigin, notes []string, err error) {
	if o.Past, err = c.histories.prepareHistory(ctx, r, rootOf(o)); err != nil {
		return nil, nil, err
	}
	notes, err = c.histories.forkNotes(ctx, o)
	return o.Past, append([]string{describeHistory(o.Past)}, notes...), err
}

// rootOf is the address of the root's log of a run that is opened.
func rootOf(o supervisor.Opened) mailbox.Address {
	return mailbox.At(o.Run, string(spec.Root)).In(o.RootPlace())
}

// purgeUploadedHistory removes the log to which the client uploaded the history: prepareHistory has copied it to the
// root's log in its node pool. A failure only wastes space.
func (c *opener) purgeUploadedHistory(ctx context.Context, root mailbox.Address) {
	if root == root.Bare() {
		return
	}
	if err := purgeToTombstone(ctx, c.cfg.Post, root.Bare(), nil); err != nil {
		c.cfg.logger().Warn("cannot remove uploaded history", "log", root.Bare(), "error", err)
	}
}

// addRow adds the row of a run that was opened.
func (c *opener) addRow(ctx context.Context, info client.RunInfo) error {
	// A run of a conversation is written at once: its lane reads rows from the index.
	if c.cfg.RowAdded != nil && info.Conversation == "" && c.cfg.Runs.NoteOpened(info) {
		c.cfg.RowAdded(info.RunID)
		return nil
	}
	err := c.cfg.Runs.AddOpened(ctx, info)
	if bus.IsFull(err) { // the run works, and its node adds the row once there is room
		c.cfg.logger().Warn("a run was not added to the index", "run", info.RunID, "error", err)
		return nil
	}
	return err
}

// appendOpened appends the first entry of a run. It refuses an owner whose entry is not the first: another one has
// opened a run of this id meanwhile.
func (c *opener) appendOpened(ctx context.Context, o supervisor.Opened) error {
	if c.opening != nil {
		select {
		case c.opening <- struct{}{}:
			defer func() { <-c.opening }()
		case <-ctx.Done():
			return fmt.Errorf("control: run %s was not opened: %w", o.Run, context.Cause(ctx))
		}
	}
	if err := c.cfg.Node.Open(ctx, o); err != nil || o.Owner == "" {
		return err
	}
	return c.owners.checkOwnRun(ctx, o.Run, o.Owner) // the first entry of the log decides who was first
}
