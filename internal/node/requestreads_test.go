package node

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// entryCounter counts the entries that requests read.
type entryCounter struct {
	mailbox.Store
	entries *atomic.Int64
}

func (c entryCounter) count(each func(mailbox.Message) error) func(mailbox.Message) error {
	return func(m mailbox.Message) error {
		c.entries.Add(1)
		return each(m)
	}
}

func (c entryCounter) Read(ctx context.Context, at mailbox.Address, after, through uint64, each func(mailbox.Message) error) error {
	return c.Store.Read(ctx, at, after, through, c.count(each))
}

func (c entryCounter) ReadRun(ctx context.Context, run string, each func(mailbox.Message) error) error {
	return c.Store.ReadRun(ctx, run, c.count(each))
}

// longAsker is a script of an agent that calls a tool once in each of some turns, then asks.
func longAsker(turns int) string {
	var b strings.Builder
	b.WriteString("agents:\n  asker:\n")
	for i := range turns {
		fmt.Fprintf(&b, "    - calls: [{name: look, args: {n: %d}}]\n", i)
	}
	b.WriteString("    - calls: [{name: ask_human, args: {question: \"Which one?\"}}]\n    - text: \"bought: {{last}}\"\n")
	return b.String()
}

// What a request about a run reads does not grow with the logs of the run.
func TestRequestsReadAsMuchOfALongLogAsOfAShortOne(t *testing.T) {
	t.Parallel()
	const short, long, entriesMax = 1, 60, 100 // a cancel that waits looks several times
	var entries atomic.Int64
	agents := writeAskerAgent(t)
	look := tool.Func("look", "Looks.", model.Read, func(_ context.Context, args struct {
		N int `json:"n"`
	}) (string, error) {
		return fmt.Sprintf("%d: %x", args.N, sha256.Sum256([]byte{byte(args.N)})), nil // each result is news
	})
	h := startNode(t, t.TempDir(), func(c *Config) {
		c.Roots, c.Contributions = []string{agents}, Contributions{Tools: []tool.Tool{look}}
		c.watchRequests = func(s mailbox.Store) mailbox.Store { return entryCounter{s, &entries} }
	})
	c := connectClient(t, h)
	ctx := testContext(t)
	for _, turns := range []int{short, long} {
		begin := func() string {
			id := beginRun(t, c, client.RunRequest{Model: writeScript(t, longAsker(turns)), Agents: agents, Agent: "asker", MaxTurns: long + 2})
			if info, err := c.Wait(ctx, id); err != nil || info.State != control.Parked {
				t.Fatalf("%+v %v", info, err)
			} else if info.Result.Detail != "Which one?" {
				t.Fatalf("it asks %q", info.Result.Detail)
			}
			return id
		}
		run, canceled := begin(), begin()
		var question client.Question
		requests := []struct {
			name string
			send func() error
		}{
			{"questions", func() error {
				list, err := c.Questions(ctx)
				for _, q := range list {
					if q.RunID == run {
						question = q
					}
				}
				return err
			}},
			{"list", func() error { _, err := c.List(ctx); return err }},
			{"state", func() error { _, err := c.State(ctx, run); return err }},
			{"budget", func() error {
				return c.Budget(ctx, client.BudgetRequest{RunID: run, Patch: true, Limits: spec.RunLimits{Tokens: 2_000_000}})
			}},
			{"answer", func() error {
				return c.Answer(ctx, client.AnswerRequest{RunID: run, Query: question.Query, Decision: "text", Text: "this"})
			}},
			{"cancel", func() error { _, err := c.Cancel(ctx, client.CancelRequest{RunID: canceled}); return err }},
		}
		for _, r := range requests {
			entries.Store(0)
			if err := r.send(); err != nil {
				t.Fatalf("%s: %v", r.name, err)
			}
			if read := entries.Load(); read > entriesMax {
				t.Errorf("%s read %d entries of runs of %d turns, want %d at most", r.name, read, turns, entriesMax)
			} else {
				t.Logf("%s read %d entries of runs of %d turns", r.name, read, turns)
			}
		}
		waitFinished(t, c, run, spec.Completed)
		waitFinished(t, c, canceled, spec.ByCancel)
	}
}
