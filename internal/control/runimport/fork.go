package runimport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/promptlayer"
	"github.com/troupe-run/troupe/internal/refuse"
	recorded "github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// A fork of a tree is a new run that begins as another one was at a point: RUN@AGENT:POINT (docs/fork.md). It is
// imported like a restored run, and passes the same checks, so it has no right that a new run would not get.

// forkPoint is RUN@AGENT:POINT.
type forkPoint struct{ run, agent, point string }

func (p forkPoint) String() string { return p.run + "@" + p.agent + ":" + p.point }

// ParseForkPoint parses the point of a fork of a tree; ok is false for RUN and RUN@TURN, which fork a history.
func ParseForkPoint(text string) (p forkPoint, ok bool) {
	run, rest, _ := strings.Cut(text, "@")
	who, point, ok := strings.Cut(rest, ":")
	return forkPoint{run, who, point}, ok
}

// Forker makes forks of trees, and imports them.
type Forker struct {
	cfg      *Config
	check    *runFileCheck
	importer *runImporter
	// Reopen continues the run that has the id of the fork already.
	Reopen func(ctx context.Context, known client.RunInfo, r client.RunRequest) (client.RunAccepted, error)
}

// Fork opens a run that begins as another one was at a point.
func (c *Forker) Fork(ctx context.Context, r client.RunRequest, p forkPoint) (any, error) {
	if c.cfg.CheckRestored == nil || c.cfg.Blobs == nil {
		return nil, &client.Error{Code: client.CodeBad, Text: "this node forks no trees", Hint: "ask a node that builds runs"}
	}
	for _, lock := range []string{restoreLock, r.RunID} {
		done, err := c.cfg.Lock(ctx, lock)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	known, listed, err := c.cfg.Index.Get(ctx, r.RunID)
	switch {
	case err != nil:
		return nil, err
	case known.Removing:
		return nil, refuse.RunDeleted(r.RunID)
	case listed:
		if err := c.checkSameFork(ctx, r.RunID, p); err != nil {
			return nil, err
		}
		return c.Reopen(ctx, known.RunInfo, client.RunRequest{RunID: r.RunID})
	}
	if err := cmp.Or(checkForkRequest(r, p), c.cfg.CheckRoom(ctx), c.cfg.CheckQueue()); err != nil {
		return nil, err
	}
	f, checked, err := c.forkFile(ctx, r, p)
	if err != nil {
		return nil, err
	}
	held, err := c.importer.readImported(ctx, checked)
	if err != nil {
		return nil, err
	}
	for more := !held.committed; more; {
		if more, err = c.importer.importRun(ctx, f, checked, held); err == nil && more {
			held, err = c.importer.readImported(ctx, checked)
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
	}
	if err := c.importer.listRestored(ctx, checked); err != nil {
		return nil, err
	}
	if err := c.importer.wakeRestored(ctx, checked); err != nil {
		return nil, err
	}
	run := checked.replayed.Super.Run
	notes := []string{fmt.Sprintf("a fork of %s; agents: %d, tokens settled until then: %d", p, len(checked.replayed.Agents), checked.replayed.Super.Pool.Spent.Tokens)}
	notes = append(notes, modelNotes(run, r.Model)...)
	why := "of the forked run"
	if r.Model != "" {
		why = "named for the fork"
	}
	return client.RunAccepted{RunID: r.RunID, Model: run.Model.Name, Why: why, Limit: run.Limits.Tokens, LimitUSD: float64(run.Limits.Nano) / budget.NanoPerUSD, Notes: notes}, nil
}

// checkSameFork refuses a request for a fork whose id another run has: its client would take that run for the fork.
func (c *Forker) checkSameFork(ctx context.Context, run string, p forkPoint) error {
	var first runfile.File
	first.Header.Run = run
	err := c.cfg.Store.Read(ctx, mailbox.At(run, mailbox.Super), 0, 0, func(m mailbox.Message) error {
		first.Entries = append(first.Entries, m)
		return runlog.ErrEnough
	})
	if err != nil && !errors.Is(err, runlog.ErrEnough) {
		return fmt.Errorf("control: fork: read %s: %w", run, err)
	}
	if o, err := firstOpened(first); err == nil && o.Fork != p.String() {
		return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("the run %s exists, and is not a fork of %s", run, p), Hint: "choose another run_id"}
	}
	return nil // without a first entry, the reopening reports the error
}

// forkFields are the fields of a request that a fork of a tree may have. Everything else is of the original.
var forkFields = []string{"RunID", "Fork", "Prompt", "Instead", "Layers", "Dir", "Agents", "MCPConfig", "Model", "Policy", "MaxTokens", "MaxBudgetUSD", "MaxToolCalls",
	"Caller", "Trace", "Interactive", "Owner"}

// checkForkRequest refuses what a fork cannot have.
func checkForkRequest(r client.RunRequest, p forkPoint) error {
	if p.run == r.RunID {
		return &client.Error{Code: client.CodeBad, Text: "a run cannot be a fork of itself", Hint: "choose another run_id"}
	}
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		if field := v.Type().Field(i); !slices.Contains(forkFields, field.Name) && !v.Field(i).IsZero() {
			name, _, _ := strings.Cut(cmp.Or(field.Tag.Get("json"), field.Name), ",")
			return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("a fork of a tree takes %s from its original", name), Hint: "leave " + name + " out"}
		}
	}
	switch {
	case min(r.MaxTokens, r.MaxToolCalls) < 0 || r.MaxBudgetUSD < 0 || r.MaxBudgetUSD > 1e9:
		return &client.Error{Code: client.CodeBad, Text: "a limit is negative or too large", Hint: "0 leaves a limit as it was"}
	case len(r.Prompt) > forkTextMax || len(r.Instead) > forkTextMax:
		return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("a text has more than %d bytes", forkTextMax), Hint: "send a shorter one"}
	}
	for _, l := range r.Layers {
		if err := promptlayer.Validate(l); err != nil {
			return &client.Error{Code: client.CodeBad, Text: err.Error(), Hint: refuse.ContextHint}
		}
	}
	if err := promptlayer.Check(r.Layers); err != nil {
		return &client.Error{Code: client.CodeBad, Text: err.Error(), Hint: refuse.ContextHint}
	}
	return checkInstead(r.Instead)
}

// forkEntriesMax is the most entries of a run that is forked: one request reads and replays them three times.
const forkEntriesMax = 20_000

// forkTextMax is the most bytes of the prompt of a fork, and of the text that takes the place of a result.
const forkTextMax = 64 << 10

// forkFile makes the logs of a fork and checks them.
func (c *Forker) forkFile(ctx context.Context, r client.RunRequest, p forkPoint) (f runfile.File, checked checkedRestore, err error) {
	entries, err := c.readTree(ctx, p)
	if err != nil {
		return f, checked, err
	}
	f = runfile.File{Header: runfile.Header{Run: r.RunID, Dump: true, WrittenBy: c.cfg.Version}, Blobs: map[string][]byte{}}
	if f.Entries, err = makeFork(entries, r, p, c.cfg.Now(), c.cfg.ForkModel); err != nil {
		return f, checked, err
	}
	if err := c.copyBlobs(ctx, p.run, &f); err != nil {
		return f, checked, err
	}
	checked, err = c.check.judgeLogs(f, r)
	if err == nil {
		checked.addEntries(sortImported(f.Entries))
	}
	return f, checked, err
}

// makeFork makes the entries of a fork from those of its original.
func makeFork(entries []mailbox.Message, r client.RunRequest, p forkPoint, now time.Time, choose ModelChooser) ([]mailbox.Message, error) {
	cut, original, err := cutTree(entries, p)
	if err != nil {
		return nil, err
	}
	if err := checkForkDir(r.Dir, original.Super.Run.Workspace); err != nil {
		return nil, err
	}
	if err := checkRulesHold(withNarrowings(original.Super), r.Dir, "fork the history of its root: RUN@TURN"); err != nil {
		return nil, err
	}
	at := forkTime(r.RunID, now).UnixMilli()
	logs := &forkedLogs{from: p.run, to: r.RunID, shift: at - newestStamp(cut), open: func(o *supervisor.Opened) {
		o.Run, o.Fork, o.Conversation, o.Caller, o.Owner = r.RunID, p.String(), "", r.Caller, cmp.Or(r.Owner, o.Owner)
		moveOpened(o, r.Dir)
	}}
	what, err := newForkChanges(r, p, original, at, choose)
	if err == nil {
		cut, err = what.change(cut)
	}
	var copied, marks []mailbox.Message
	if err == nil {
		copied, err = logs.copyLogs(cut)
	}
	if err == nil {
		marks, err = what.marks(logs)
	}
	if err != nil {
		return nil, forkError(p, err)
	}
	return append(copied, marks...), nil
}

// readTree reads the logs of a run at a consistent cut.
func (c *Forker) readTree(ctx context.Context, p forkPoint) ([]mailbox.Message, error) {
	if _, err := c.cfg.FindRun(ctx, p.run); err != nil {
		return nil, err
	}
	var reads [2][]mailbox.Message
	for i := range reads {
		err := c.cfg.Store.ReadRun(ctx, p.run, func(m mailbox.Message) error {
			if len(reads[i]) >= forkEntriesMax {
				return badFile("fork the history of its root: RUN@TURN", "%s has more than %d entries", p.run, forkEntriesMax)
			}
			m.Data = slices.Clone(m.Data)
			reads[i] = append(reads[i], m)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("control: fork: read %s: %w", p.run, err)
		}
	}
	return runfile.Cut(reads[0], reads[1]), nil
}

// cutTree cuts the logs of a run at a point, and replays them. Damage behind the point counts, too: a changed entry may
// be in the cut while the entry that shows it is not.
func cutTree(entries []mailbox.Message, p forkPoint) ([]mailbox.Message, *recorded.Run, error) {
	cut, err := runfile.CutFork(entries, p.agent, p.point)
	if err != nil {
		return nil, nil, forkError(p, err)
	}
	if _, err := replayWhole(entries, p.run); err != nil {
		return nil, nil, err
	}
	original, err := replayWhole(cut, p.run)
	return cut, original, err
}

// replayWhole replays logs, and refuses those that are not whole.
func replayWhole(entries []mailbox.Message, run string) (*recorded.Run, error) {
	if report := verify.Logs(entries); len(report.Findings) > 0 || report.Damaged {
		text := "they record that one of them is damaged"
		if len(report.Findings) > 0 {
			text = report.Findings[0].String()
		}
		return nil, badFile("`troupe verify "+run+"` shows all that is wrong", "the logs of %s are not whole: %s", run, text)
	}
	r := recorded.Logs(entries, recorded.Options{})
	if err := cmp.Or(r.Err(), r.ReadErr); err != nil {
		return nil, badFile("`troupe replay "+run+" --assert` shows the place", "this version does not come to the state of %s: %v", run, err)
	}
	return r, nil
}

// forkError refuses a point that does not exist, or logs that cannot be copied.
func forkError(p forkPoint, err error) error {
	if known := (*client.Error)(nil); errors.As(err, &known) {
		return err
	}
	return badFile("name RUN@AGENT:TURN, or RUN@AGENT:CALL for a call or a question; `troupe describe "+p.run+"` and `troupe transcript "+p.run+"` show them", "%s: %v", p, err)
}

// checkForkDir refuses a directory that the fork would share with its original.
func checkForkDir(dir, original string) error {
	switch {
	case original == "" && dir != "":
		return badFile("leave dir out", "the forked run has no directory")
	case original == "":
		return nil
	case dir == "":
		return badFile("name a copy of it with dir; `troupe run --fork` makes one", "the forked run works in %s, and a fork shares no directory with it", original)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return badFile("name a directory that exists", "dir: %v", err)
	}
	if shared := workdir.IsBelow(original, real) || workdir.IsBelow(real, original); shared {
		return badFile("name a copy outside of it; `troupe run --fork` without --dir makes one",
			"dir is %s, and the forked run works in %s: both would write there", dir, original)
	}
	return nil
}

// forkClockMax is how far the time in the id of a fork may be from the clock of the node.
const forkClockMax = 10 * time.Minute

// forkTime is the moment of a fork. The id of the run has it, so that a repeated request makes the same logs.
func forkTime(run string, now time.Time) time.Time {
	id, err := ulid.ParseStrict(strings.ToUpper(run))
	if err != nil {
		return now
	}
	at := ulid.Time(id.Time())
	if at.Before(now.Add(-forkClockMax)) || at.After(now) {
		return now
	}
	return at
}

func newestStamp(entries []mailbox.Message) (at int64) {
	for _, m := range entries {
		at = max(at, m.At)
	}
	return at
}

// copyBlobs reads the blobs that the logs of a fork name.
func (c *Forker) copyBlobs(ctx context.Context, run string, f *runfile.File) error {
	for _, ref := range runfile.NamedBlobs(f.Entries) {
		var whole []byte
		for size := int64(1); int64(len(whole)) < size; {
			part, all, err := c.cfg.Blobs.Get(ctx, run, ref, int64(len(whole)), bounds.LogPageBytes)
			if err != nil {
				return fmt.Errorf("control: fork: blob of %s: %w", run, err)
			}
			if whole, size = append(whole, part...), all; len(part) == 0 {
				break
			}
		}
		f.Blobs[ref] = whole
	}
	return nil
}
