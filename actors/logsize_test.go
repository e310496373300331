package actors_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget/tokens"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// pageTool is a tool whose results are pages of prose: large ones for the
// conversation that a measurement begins with, and small ones.
type pageTool struct {
	name string
	size int
}

func (p pageTool) Spec() model.ToolSpec {
	return model.ToolSpec{Name: p.name, Class: model.Read, Schema: `{"type":"object"}`}
}

func (p pageTool) Call(_ context.Context, c tool.Call) (tool.Result, error) {
	text := ""
	for i := 0; len(text) < p.size; i++ {
		text += fmt.Sprintf("Line %d of page %s says what the archive holds on shelf %d.\n", i, c.ID, 7*i%90)
	}
	return tool.Result{Text: text[:p.size]}, nil
}

const (
	bigPage, bigPages = 60 << 10, 13
	smallPage         = 5 << 10
)

// logSize runs a conversation of large pages and then calls of small ones, and
// returns the bytes of all logs of the run and the tokens it began the calls with.
func logSize(t *testing.T, calls int) (bytes, conversation int64) {
	t.Helper()
	big, small := pageTool{"archive", bigPage}, pageTool{"look", smallPage}
	set, err := tool.NewSet(big, small)
	if err != nil {
		t.Fatal(err)
	}
	client := clientFunc(func(_ context.Context, r model.Request, _ func(model.Delta)) (model.Reply, error) {
		taken := 0
		for _, m := range r.Messages {
			if m.Role == model.Assistant {
				taken++
			}
		}
		reply := sayReply("done")
		reply.UsageKnown, reply.Usage = true, model.Usage{Input: 1000 * int64(len(r.Messages)), Output: 30}
		switch {
		case taken < bigPages:
			reply.Message = model.Message{Calls: []model.ToolCall{{Name: big.name, Args: "{}"}}}
		case taken < bigPages+calls:
			if taken == bigPages {
				for _, m := range r.Messages {
					conversation += tokens.Message(m)
				}
			}
			reply.Message = model.Message{Calls: []model.ToolCall{{Name: small.name, Args: "{}"}}}
		}
		return reply, nil
	})
	post := memory.New(memory.Config{})
	over := make(chan event.Result, 1)
	node, err := actors.Start(t.Context(), actors.Config{Post: post, Lease: 1,
		Model:    func(string) (model.Client, string, error) { return client, "m", nil },
		Tools:    func(spec.Task) (*tool.Set, error) { return set, nil },
		OnResult: func(_ string, r event.Result) { over <- r }})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Stop()
	o := openedRun("r", big, small)
	o.RootTurns, o.Limits = bigPages+calls+1, spec.RunLimits{Calls: 1 << 20}
	if err := node.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-over:
		if r.Reason != spec.Completed {
			t.Fatalf("the run ended %s: %s", r.Reason, r.Detail)
		}
	case <-time.After(time.Minute):
		t.Fatal("the run hangs")
	}
	err = post.ReadRun(t.Context(), "r", func(m mailbox.Message) error {
		bytes += int64(len(m.Data))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes, conversation
}

// TestLogGrowsOnlyByNewMessages: a log holds what was said,
// once; no turn writes the conversation again (acceptance point 5). It prints
//
//	go test ./actors -run LogGrowsOnly -v
func TestLogGrowsOnlyByNewMessages(t *testing.T) {
	sizes := map[int]int64{}
	for _, calls := range []int{50, 100, 200} {
		size, conversation := logSize(t, calls)
		sizes[calls] = size
		t.Logf("%d calls of %d bytes on a conversation of %d tokens: %d bytes of log", calls, smallPage, conversation, size)
		if conversation < 209_000 {
			t.Errorf("the conversation has only %d tokens", conversation)
		}
	}
	if sizes[100] >= 2<<20 {
		t.Errorf("100 calls make a log of %d bytes, want less than 2 MB", sizes[100])
	}
	first, second := float64(sizes[100]-sizes[50])/50, float64(sizes[200]-sizes[100])/100
	t.Logf("a call adds %.0f bytes, then %.0f", first, second)
	if second > 1.05*first {
		t.Errorf("the log does not grow linearly: a call adds %.0f bytes, later %.0f", first, second)
	}
}
