package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// histories stores the messages with which runs begin: those that a client has sent, and copies of those of other runs.
// They stand in the log of the root before its run is opened.
type histories struct {
	cfg       *Config
	lookup    *lookup
	views     *runViews
	admission *admission
}

// logHistory is a history that was taken from a log.
type logHistory struct {
	past    history.Transcript
	journal string // see agent.Recalled
	n       uint64 // entries that it was made from
}

// readHistory replays an agent's log up to the end of a turn, or, with turn -1, up to entry n; 0
// is the whole log.
func readHistory(ctx context.Context, post mailbox.Store, at mailbox.Address, turn int, n uint64) (logHistory, error) {
	m := &activation.Agent{Addr: at}
	found := turn < 0
	read := uint64(0)
	_, err := runlog.Replay(ctx, post, at, m, func(mailbox.Message) error {
		read++
		if !found && m.State.Turned(turn) {
			found = true
			return runlog.ErrEnough
		}
		if read == n {
			return runlog.ErrEnough
		}
		return nil
	})
	switch {
	case err != nil:
		return logHistory{}, err
	case m.State.Task.ID == "":
		return logHistory{}, runlog.ExplainNoAgent(ctx, post, spec.ID(at.Agent()), at.Run())
	case !found:
		last := m.State.Turn
		if last > 0 && !m.State.Turned(last) {
			last-- // the turn is in progress
		}
		return logHistory{}, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("%s has no complete turn %d", at, turn),
			Hint: fmt.Sprintf("its complete turns are 0 to %d; without a turn its current state is used", last)}
	}
	return logHistory{m.State.Past(), m.State.Journal.Args(), read}, nil
}

// exportBytes is the maximum size of an exported document in one reply: as a JSON string it
// may become twice as long.
const exportBytes = 384 << 10

// exportHistory returns a history as a document that is cut into pages. All pages but the first
// name the entry at which the first page was taken, so that they are pages of the same
// document.
func (c *viewer) exportHistory(ctx context.Context, r client.ExportRequest) (any, error) {
	if _, err := c.lookup.findRun(ctx, r.RunID); err != nil {
		return nil, err
	}
	if r.Agent == "" {
		r.Agent = string(spec.Root)
	}
	if err := names.CheckToken(r.Agent); err != nil {
		return nil, &client.Error{Code: client.CodeBad, Text: "agent: " + err.Error(), Hint: "`troupe describe` shows the ids of agents"}
	}
	turn := -1
	if r.Turn != nil {
		if turn = *r.Turn; turn < 0 {
			return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("turn is %d", turn), Hint: "turns are counted from 0, which is before the first reply"}
		}
	}
	at, err := c.views.agentAddress(ctx, r.RunID, spec.ID(r.Agent))
	if err != nil {
		return nil, err
	}
	t, err := readHistory(ctx, c.cfg.Post, at, turn, r.N)
	if err != nil {
		return nil, err
	}
	doc, err := json.Marshal(t.past)
	if err != nil {
		return nil, fmt.Errorf("control: export: %w", err)
	}
	if r.Offset < 0 || r.Offset > int64(len(doc)) || r.N > 0 && r.N != t.n {
		return nil, &client.Error{Code: client.CodeBad, Text: "there is no such page", Hint: "send `n` and `offset` of the previous page"}
	}
	end := min(int(r.Offset)+exportBytes, len(doc))
	for end < len(doc) && !utf8.RuneStart(doc[end]) {
		end--
	}
	return client.ExportPage{Data: string(doc[r.Offset:end]), N: t.n, Offset: int64(end), Size: int64(len(doc))}, nil
}

// storeHistoryPart stores a part of an imported history before the run that begins with it.
func (c *histories) storeHistoryPart(ctx context.Context, r client.RecallRequest) (any, error) {
	if err := bounds.CheckRunID(r.RunID); err != nil {
		return nil, err
	}
	if err := names.CheckToken(r.Past); err != nil {
		return nil, &client.Error{Code: client.CodeBad, Text: "past: " + err.Error(), Hint: "name the history by its hash"}
	}
	if r.Part < 0 || r.Part >= history.PartsMax {
		return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("part is %d", r.Part), Hint: fmt.Sprintf("a history has at most %d parts", history.PartsMax)}
	}
	if err := c.admission.checkUnopened(ctx, r.RunID); err != nil {
		return nil, err
	}
	return struct{}{}, c.appendPart(ctx, mailbox.At(r.RunID, string(spec.Root)), requestOwner(ctx), agent.Recalled{Messages: r.Messages, Past: r.Past, Part: r.Part, Fold: r.Fold, Tainted: r.Tainted})
}

// appendPart appends a part to the log of a root that has no task yet. The request is named by
// the history, the part and the owner who sent it: if it is sent again, it is applied once.
func (c *histories) appendPart(ctx context.Context, root mailbox.Address, owner string, f agent.Recalled) error {
	id := fmt.Sprintf("%s%s-%d", partPrefix, f.Past, f.Part)
	if owner != "" {
		id += "." + owner // no name of a history has a dot
	}
	return c.cfg.Node.Command(ctx, root, id, f.Kind(), f)
}

func (c *histories) appendParts(ctx context.Context, root mailbox.Address, owner string, parts []agent.Recalled) error {
	for _, f := range parts {
		if err := c.appendPart(ctx, root, owner, f); err != nil {
			return err
		}
	}
	return nil
}

// prepareHistory writes the history that a run begins with into the log of its root, or finds the
// one that was sent there, before the run is opened.
func (c *histories) prepareHistory(ctx context.Context, r client.RunRequest, root mailbox.Address) (*spec.HistoryOrigin, error) {
	switch {
	case r.Fork != "" && r.History != nil:
		return nil, &client.Error{Code: client.CodeBad, Text: "both fork and history are given", Hint: "a run begins with one history"}
	case r.Fork != "":
		return c.copyHistory(ctx, r, root)
	case r.History != nil:
		return c.checkSentHistory(ctx, r, root)
	}
	return nil, nil
}

// copyHistory copies the history of another run's root.
func (c *histories) copyHistory(ctx context.Context, r client.RunRequest, root mailbox.Address) (*spec.HistoryOrigin, error) {
	run, turn, err := ParseFork(r.Fork)
	if err != nil {
		return nil, err
	}
	if run == r.RunID {
		return nil, &client.Error{Code: client.CodeBad, Text: "a run cannot be a fork of itself", Hint: "choose another run_id"}
	}
	if _, err := c.lookup.findRun(ctx, run); err != nil {
		return nil, err
	}
	from, err := c.views.agentAddress(ctx, run, spec.Root)
	if err != nil {
		return nil, err
	}
	t, err := readHistory(ctx, c.cfg.Post, from, turn, 0)
	if err != nil {
		return nil, err
	}
	t.journal = "" // a fork may be of an earlier turn: its messages tell the journal
	return c.copyTranscript(ctx, run, requestOwner(ctx), t, root)
}

// copyTranscript writes a history of another run into the log of a root, for an owner.
func (c *histories) copyTranscript(ctx context.Context, run, owner string, t logHistory, root mailbox.Address) (*spec.HistoryOrigin, error) {
	doc, err := json.Marshal(t.past.Messages)
	if err != nil {
		return nil, fmt.Errorf("control: fork: %w", err)
	}
	sum := sha256.Sum256(append(doc, t.journal...))
	parts, err := agent.RecallParts(t.past, hex.EncodeToString(sum[:8]))
	if err != nil {
		return nil, badHistory("the history of "+run, err)
	}
	parts[0].Journal = t.journal
	if err := c.appendParts(ctx, root, owner, parts); err != nil {
		return nil, err
	}
	return &spec.HistoryOrigin{Run: run, Turn: t.past.Turn, Messages: len(t.past.Messages), Bound: agent.HistoryBound(t.past)}, nil
}

// ParseFork parses RUN or RUN@TURN; turn -1 is the current state.
func ParseFork(text string) (run string, turn int, err error) {
	run, number, at := strings.Cut(text, "@")
	turn = -1
	if at {
		turn, err = strconv.Atoi(number)
	}
	if names.CheckToken(run) != nil || err != nil || turn < -1 || at && turn < 0 {
		return "", 0, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("fork is %.100q", text), Hint: "name a run, or RUN@TURN; `troupe list` shows the runs"}
	}
	return run, turn, nil
}

// checkSentHistory checks a history that the client has sent in parts.
func (c *histories) checkSentHistory(ctx context.Context, r client.RunRequest, root mailbox.Address) (*spec.HistoryOrigin, error) {
	s, err := runlog.ReplayAgent(ctx, c.cfg.Post, root.Bare())
	if err != nil {
		return nil, err
	}
	got := s.ImportedHistory
	if got.Past != r.History.Past || got.Parts != r.History.Parts || got.Parts == 0 {
		return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("the request names %d parts of the history %.80q, and %d parts of %q have arrived", r.History.Parts, r.History.Past, got.Parts, got.Past),
			Hint: "send all parts with `recall`, in order from 0, before `run`"}
	}
	past := history.Transcript{Form: history.Form, Messages: got.Messages, Fold: got.Fold, Tainted: got.Tainted}
	if err := past.Check(); err != nil {
		return nil, badHistory("the history", err)
	}
	if root != root.Bare() { // the client could not know the pool of the root
		parts, err := agent.RecallParts(past, got.Past)
		if err == nil {
			err = c.appendParts(ctx, root, requestOwner(ctx), parts)
		}
		if err != nil {
			return nil, fmt.Errorf("control: history of %s: %w", root, err)
		}
	}
	return &spec.HistoryOrigin{Messages: len(got.Messages), Bound: agent.HistoryBound(past)}, nil
}

// describeHistory describes the history that a run begins with.
func describeHistory(p *spec.HistoryOrigin) string {
	if p.Run == "" {
		return fmt.Sprintf("it begins with %d messages of an imported history", p.Messages)
	}
	return fmt.Sprintf("it begins with %d messages of %s, after its turn %d", p.Messages, p.Run, p.Turn)
}

// forkNotes lists what a fork does not copy from the run whose history it begins with.
func (c *histories) forkNotes(ctx context.Context, o supervisor.Opened) (notes []string, err error) {
	if o.Past.Run == "" {
		return nil, nil
	}
	s, err := runlog.ReplaySupervisor(ctx, c.cfg.Post, o.Past.Run)
	if err != nil {
		return nil, err
	}
	if from := s.Run.Workspace; from != "" && o.Workspace == "" {
		notes = append(notes, fmt.Sprintf("%s worked in %s; this run has no directory: --dir gives it one", o.Past.Run, from))
	}
	if from := s.Run.Model.Name; from != "" && from != o.Model.Name {
		notes = append(notes, fmt.Sprintf("%s asked %s; this run asks %s: -m names another model", o.Past.Run, from, o.Model.Name))
	}
	return notes, nil
}

func badHistory(whose string, err error) error {
	refused := &client.Error{Code: client.CodeBad, Text: whose + ": " + err.Error()}
	var known *history.Error
	if errors.As(err, &known) {
		refused.Hint = known.Remedy
	}
	return refused
}
