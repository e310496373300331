package screen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/compare"
	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/internal/top"
)

// stepsBefore and stepsAfter are the most steps that the screen shows before and after the first difference of two runs.
const (
	stepsBefore = 3
	stepsAfter  = 30
)

// startFlags are the flags of the command start for what a person typed.
func startFlags(e top.StartRun) []string {
	return flagWords("run-id", e.ID, "agent", e.Agent, "agents", e.Agents, "dir", e.Dir, "model", e.Model, "max-tokens", e.MaxTokens, "max-budget-usd", e.MaxUSD,
		"max-turns", e.MaxTurns, "max-tool-calls", e.MaxCalls)
}

// forkFlags are the flags of the command start for a fork.
func forkFlags(e top.ForkRun) []string {
	return flagWords("run-id", e.ID, "fork", e.Run+"@"+e.Agent+":"+strconv.Itoa(e.Turn), "dir", e.Dir, "agents", e.Agents, "model", e.Model, "max-tokens", e.MaxTokens, "max-budget-usd", e.MaxUSD)
}

// flagWords returns the flags of pairs of a name and a value, without those that are empty.
func flagWords(pairs ...string) (words []string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			words = append(words, "--"+pairs[i]+"="+pairs[i+1])
		}
	}
	return words
}

// begun is a run that begins. Its fields are set once done is closed.
type begun struct {
	effect top.Effect
	run    string
	done   chan struct{}
	data   any
	isLost bool
	err    error
}

// beginInBackground begins the run of an effect, which goes on as the screen is left; nil: the effect begins none. Only the
// loop of the screen calls it, and what follows the loop.
func (n *nodeLink) beginInBackground(e top.Effect) *begun {
	b := &begun{effect: e, done: make(chan struct{})}
	switch e := e.(type) {
	case top.StartRun:
		b.run = e.ID
	case top.ForkRun:
		b.run = e.ID
	default:
		return nil
	}
	n.begins = append(n.begins, b)
	go func() {
		defer close(b.done)
		b.data, b.isLost, b.err = n.request(e, nil)
	}()
	return b
}

// noteShown forgets the run of an effect: the screen shows what became of it.
func (n *nodeLink) noteShown(e top.Effect) {
	n.begins = slices.DeleteFunc(n.begins, func(b *begun) bool { return b.effect == e })
}

// finishBegins waits for the runs that began as the screen was left, and says what became of them. So the copy of a directory
// that is made for a fork is completed, or removed.
func (n *nodeLink) finishBegins(say func(line string)) (err error) {
	for _, b := range n.begins {
		select {
		case <-b.done:
		default:
			say("waiting for run " + b.run + " to begin")
			<-b.done
		}
		if b.isLost {
			say("run " + b.run + " may have begun: troupe list shows it then")
		}
		if b.err != nil {
			err = errors.Join(err, b.err)
			continue
		}
		reply, _ := b.data.(top.Begun)
		if !strings.Contains(reply.Notes, reply.Run) {
			say("run " + reply.Run + " has begun")
		}
		say(term.CleanLine(reply.Notes))
	}
	return err
}

// beginRun begins a run as the command start does.
func (n *nodeLink) beginRun(flags []string, prompt string) (top.Begun, error) {
	accepted, notes, err := n.begin(n.ctx, flags, prompt)
	return top.Begun{Run: accepted.RunID, Notes: cmp.Or(notes, "run "+accepted.RunID+" has begun")}, err
}

// readEntries reads the logs of a run, and a page of that of an agent.
func readEntries(ctx context.Context, s *session.Session, e top.FetchEntries) (page top.EntriesPage, err error) {
	list, err := client.AskLogs(ctx, s.Client, client.LogsRequest{RunID: e.Run})
	if err != nil {
		return page, err
	}
	page.Logs = list.Logs
	for _, at := range list.Logs {
		if at.Agent() != e.Agent {
			continue
		}
		part, err := client.AskLogs(ctx, s.Client, client.LogsRequest{RunID: e.Run, Log: at, After: e.After})
		if err != nil {
			return page, err
		}
		page.Entries, page.More = part.Entries, part.More
		if len(page.Entries) > top.EntriesMax {
			page.Entries, page.More = page.Entries[:top.EntriesMax], true
		}
	}
	return page, nil
}

// compareRuns compares two runs, the first of which may be what the second is a fork of.
func compareRuns(ctx context.Context, s *session.Session, e top.FetchComparison) (c top.Compared, err error) {
	b, err := s.FindRun(ctx, e.B)
	if err != nil {
		return c, err
	}
	if e.A == "" {
		if e.A, err = findOrigin(ctx, s, b); err != nil {
			return c, err
		}
	}
	a, err := s.FindRun(ctx, e.A)
	if err != nil {
		return c, err
	}
	var sides [2]compare.Run
	for i, id := range []string{a, b} {
		f := runfile.File{Header: runfile.Header{Run: id}}
		if f.Entries, err = s.Logs(ctx, id); err != nil {
			return c, err
		}
		if sides[i], err = compare.ReadRun(f); err != nil {
			if errors.Is(err, replay.ErrNoLog) {
				err = exit.UsageError("troupe verify "+id+" shows what is wrong", "%w", err)
			}
			return c, err
		}
	}
	c.Comparison = compare.Runs(sides[0], sides[1])
	c.Steps = c.Around(stepsBefore, stepsAfter)
	return c, nil
}

// errNoFork says that a run has no origin.
var errNoFork = errors.New("it is not a fork")

// findOrigin returns the run that another one is a fork of.
func findOrigin(ctx context.Context, s *session.Session, run string) (string, error) {
	info, err := s.Describe(ctx, run)
	if err != nil {
		return "", err
	}
	if info.Description == nil || info.Description.Fork == "" {
		return "", &exit.Failure{Code: exit.Usage, Err: fmt.Errorf("run %s: %w", run, errNoFork), Hint: "name the run to compare it with"}
	}
	origin, _, _ := strings.Cut(info.Description.Fork, "@")
	return origin, nil
}
