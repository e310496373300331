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

// lookTool is a tool whose results are all different.
func lookTool() tool.Tool {
	return tool.Func("look", "Looks.", model.Read, func(_ context.Context, args struct {
		N int `json:"n"`
	}) (string, error) {
		return fmt.Sprintf("%d: %x", args.N, sha256.Sum256([]byte{byte(args.N)})), nil
	})
}

// What a request about a run reads does not grow with the logs of the run.
func TestRequestsReadAsMuchOfALongLogAsOfAShortOne(t *testing.T) {
	t.Parallel()
	const short, long = 1, 60
	// A cancel looks again until the agents have stopped.
	const entriesMax, cancelMax = 10, 60
	var entries atomic.Int64
	agents := writeAskerAgent(t)
	h := startNode(t, t.TempDir(), func(c *Config) {
		c.Roots, c.Contributions = []string{agents}, Contributions{Tools: []tool.Tool{lookTool()}}
		c.watchRequests = func(s mailbox.Store) mailbox.Store { return entryCounter{s, &entries} }
	})
	c, ctx := connectClient(t, h), testContext(t)
	for _, turns := range []int{short, long} {
		begin := func() string {
			id := beginRun(t, c, client.RunRequest{Model: writeScript(t, longAsker(turns)), Agents: agents, Agent: "asker", MaxTurns: long + 2})
			if info, err := c.Wait(ctx, id); err != nil || info.State != client.RunParked || info.Result.Detail != "Which one?" {
				t.Fatalf("%+v %v", info, err)
			}
			return id
		}
		run, canceled := begin(), begin()
		query := ""
		measure := func(request string, most int64, send func() error) {
			entries.Store(0)
			if err := send(); err != nil {
				t.Fatalf("%s: %v", request, err)
			}
			if read := entries.Load(); read > most {
				t.Errorf("%s read %d entries of runs of %d turns, want %d at most", request, read, turns, most)
			}
		}
		// The first list of questions reads the logs of each asker once, for its journal.
		if _, err := c.Questions(ctx); err != nil {
			t.Fatal(err)
		}
		measure("questions", entriesMax, func() error {
			list, err := c.Questions(ctx)
			for _, q := range list {
				if q.RunID == run {
					query = q.Query
				}
			}
			return err
		})
		measure("list", entriesMax, func() error { _, err := c.List(ctx); return err })
		measure("state", entriesMax, func() error { _, err := c.State(ctx, run); return err })
		measure("budget", entriesMax, func() error {
			return c.Budget(ctx, client.BudgetRequest{RunID: run, Patch: true, Limits: spec.RunLimits{Tokens: 2_000_000}})
		})
		measure("answer", entriesMax, func() error {
			return c.Answer(ctx, client.AnswerRequest{RunID: run, Query: query, Decision: "text", Text: "this"})
		})
		measure("cancel", cancelMax, func() error { _, err := c.Cancel(ctx, client.CancelRequest{RunID: canceled}); return err })
		waitFinished(t, c, run, spec.Completed)
		waitFinished(t, c, canceled, spec.ByCancel)
	}
}
