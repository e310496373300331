package actors_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/test/golden"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/tool"
)

// TestLogShapes records the entries that activations append to their own logs, in
// order, scenario by scenario. (What actors send each other, and when it arrives, depends
// on the machine; other tests look at it.) Whoever decides what a shell appends must
// decide this.
func TestLogShapes(t *testing.T) {
	for name, play := range logScenarios {
		t.Run(name, inBubble(func(t *testing.T) {
			post := memory.New(memory.Config{})
			play(t, post)
			settleBubble()
			golden.Compare(t, filepath.Join("testdata", "logshapes", name+".txt"), logShapes(t, post, name == "late-entries"))
		}))
	}
}

// settleBubble lets everything happen that needs no minute.
func settleBubble() { <-time.After(30 * time.Second) }

// logScenarios play runs over a store.
var logScenarios = map[string]func(*testing.T, *memory.Post){
	"start": func(t *testing.T, post *memory.Post) {
		s := playRun(t, post, 1, lookOnce, look)
		s.openRun("r1", look)
		s.awaitResult()
	},
	"child": func(t *testing.T, post *memory.Post) {
		s := playRun(t, post, 1, ofChild, delegate)
		s.openRun("r1", delegate)
		s.awaitResult()
	},
	"crash": func(t *testing.T, post *memory.Post) {
		second := playRun(t, post, 2, lookOnce, stopHalfway(t, post, lookOnce))
		second.resumeRun("r1")
		second.awaitResult()
	},
	"crash-in-a-side-effect": func(t *testing.T, post *memory.Post) {
		work, inside, _, _ := waitingTool(model.Effect)
		first := playRun(t, post, 1, workTwice, work)
		first.openRun("r1", work)
		<-inside
		first.node.Stop()
		second := playRun(t, post, 2, workTwice, work)
		second.resumeRun("r1")
		second.awaitEvent(event.KindQueryAsked)
	},
	"claim-below-the-current-one": func(t *testing.T, post *memory.Post) {
		tool := stopHalfway(t, post, lookOnce)
		claimElsewhere(t, post, "r1.root", 7)
		second := playRun(t, post, 2, lookOnce, tool)
		second.resumeRun("r1")
		second.awaitResult()
	},
	"superseded": func(t *testing.T, post *memory.Post) {
		var times atomic.Int32
		inside, free := make(chan struct{}, 2), []chan struct{}{make(chan struct{}), make(chan struct{})}
		work := echoTool{name: "work", class: model.Read, call: func(context.Context, tool.Call) (tool.Result, error) {
			n := times.Add(1)
			inside <- struct{}{}
			<-free[n-1]
			return tool.Result{Text: "worked"}, nil
		}}
		s := playRun(t, post, 1, `{agents: {boss: [{calls: [{name: work}]}, {text: "{{last}}"}]}}`, work)
		s.openRun("r1", work)
		<-inside
		claimElsewhere(t, post, "r1.root", 7) // the node holds the log still, so it claims again
		<-inside
		close(free[0]) // what a tool of a superseded activation returned is evidence
		settleBubble()
		close(free[1])
		s.awaitResult()
	},
	"drain": func(t *testing.T, post *memory.Post) {
		work, inside, free, _ := waitingTool(model.Effect)
		first := playRun(t, post, 1, workTwice, work)
		first.openRun("r1", work)
		<-inside
		gone := make(chan struct{})
		first.node.HandOver("all", func(mailbox.Address, uint64) bool { return true }, func() { close(gone) })
		free <- struct{}{}
		<-gone
		first.node.Stop()
		second := playRun(t, post, 2, workTwice, work)
		second.resumeRun("r1")
		<-inside
		free <- struct{}{}
		second.awaitResult()
	},
	"passivation": func(t *testing.T, post *memory.Post) {
		s := startResting(t, post, 1, scriptModel(t, asks))
		s.openRun("r1", ask)
		if err := s.node.Open(t.Context(), askingRun("r2")); err != nil {
			t.Fatal(err)
		}
		s.awaitEvent(event.KindQueryAsked)
		s.awaitAsleep(post, 2)
		s.answerRun("r2")
		s.awaitResult()
	},
	"late-entries": func(t *testing.T, post *memory.Post) {
		whole := memory.New(memory.Config{})
		first := playRun(t, whole, 1, ofChild, delegate)
		first.openRun("r1", delegate)
		first.awaitResult()
		settleBubble() // every log is closed
		first.node.Stop()
		super := mailbox.At("r1", mailbox.Super)
		for to, entries := range ofRun(t, whole) {
			if to == super {
				entries = entries[:lastFinish(t, entries)]
			}
			for _, data := range entries {
				if _, err := mailbox.Put(t.Context(), post, to, data); err != nil {
					t.Fatal(err)
				}
			}
		}
		second := playRun(t, post, 2, ofChild, delegate)
		second.node.Wake(super)
		second.awaitResult()
	},
	"given-up": func(t *testing.T, post *memory.Post) {
		s := playRun(t, post, 1, ofChild, delegate)
		s.onWhole = func(at, kind string) {
			if at == "r1.root-1-0" && kind == event.KindAgentStarted {
				panic("an observer that crashes the shell")
			}
		}
		s.openRun("r1", delegate)
		s.awaitResult()
	},
	"damage": func(t *testing.T, post *memory.Post) {
		whole := memory.New(memory.Config{})
		tool := stopHalfway(t, whole, lookOnce)
		for at, entries := range ofRun(t, whole) {
			if at == "r1.root" {
				entries = entries[1:]
			}
			for _, data := range entries {
				if _, err := mailbox.Put(t.Context(), post, at, data); err != nil {
					t.Fatal(err)
				}
			}
		}
		second := playRun(t, post, 2, lookOnce, tool)
		second.resumeRun("r1")
		second.awaitResult()
	},
	"lease-over-for-a-while": func(t *testing.T, post *memory.Post) {
		work, inside, free, _ := waitingTool(model.Effect)
		l := holdRuns("r1")
		s := startOwner(t, post, l, workTwice, work)
		s.openRun("r1", work)
		<-inside
		l["r1"].Store(0)
		free <- struct{}{}
		s.awaitEvent(event.KindToolFinished)
		l["r1"].Store(2)
		<-inside
		close(free)
		s.awaitResult()
	},
	"cancel": func(t *testing.T, post *memory.Post) {
		work, inside, _, _ := waitingTool(model.Read)
		s := playRun(t, post, 1, workTwice, work)
		s.openRun("r1", work)
		<-inside
		sendCommand(t, s, "r1.super", "c1", agent.Canceled{Why: "enough", Now: true})
		s.awaitResult()
	},
	"configuration-drift": func(t *testing.T, post *memory.Post) {
		sc, err := script.Parse([]byte(lookOnce))
		if err != nil {
			t.Fatal(err)
		}
		inside, stopped := make(chan struct{}, 1), atomic.Bool{}
		client := clientFunc(func(ctx context.Context, r model.Request, emit func(model.Delta)) (model.Reply, error) {
			if !stopped.Load() {
				inside <- struct{}{}
				<-ctx.Done()
			}
			return sc.Client("").Complete(ctx, r, emit)
		})
		set, err := tool.NewSet(look)
		if err != nil {
			t.Fatal(err)
		}
		cfg := actors.Config{Name: "one", Post: post, Lease: 1, Model: func(string) (model.Client, string, error) { return client, "m", nil },
			Tools: func(spec.Task) (*tool.Set, error) { return set, nil }}
		first := stageOf(t, cfg)
		o := openedRun("r1", look)
		o.Hashes = map[string]string{spec.ToolVersion + "look": "old"}
		if err := first.node.Open(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		<-inside
		first.node.Stop()
		stopped.Store(true)
		cfg.Name, cfg.Lease, cfg.Differs = "two", 2, func(spec.Task) map[string]string { return map[string]string{spec.ToolVersion + "look": "new"} }
		second := stageOf(t, cfg)
		second.resumeRun("r1")
	},
}

// claimElsewhere appends a claim of a process that is never heard of again.
func claimElsewhere(t *testing.T, post mailbox.Post, at mailbox.Address, lease uint64) {
	t.Helper()
	f := agent.Resumed{Activation: "elsewhere", Node: "elsewhere"}
	raw, err := mailbox.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, From: at, Epoch: mailbox.Epoch{Lease: lease}, Start: f.Activation,
		Items: []mailbox.Item{{ID: string(at) + "!elsewhere", Kind: f.Kind(), Body: raw}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mailbox.Put(t.Context(), post, at, data); err != nil {
		t.Fatal(err)
	}
}

// logShapes prints the own entries of all logs of a store. What wakes a closed log for
// an answer is left out, unless wanted: whether somebody asks depends on the machine.
func logShapes(t *testing.T, post *memory.Post, afterEnd bool) string {
	t.Helper()
	addresses, err := post.Addresses(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, at := range addresses {
		fmt.Fprintf(&b, "%s\n", at)
		starts, closed := map[string]int{}, false
		err := post.Read(t.Context(), at, 0, 0, func(m mailbox.Message) error {
			e, err := mailbox.Decode(m.Data)
			if err != nil || e.From != at || closed && !afterEnd {
				return err
			}
			if starts[e.Start] == 0 {
				starts[e.Start] = len(starts) + 1
			}
			closed = closed || e.Items[0].Kind == agent.Closed{}.Kind()
			fmt.Fprintf(&b, "  activation %d lease %d %s\n", starts[e.Start], e.Epoch.Lease, ownItem(t, e.Items[0]))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// ownItem names an own entry, with what tells its variants apart.
func ownItem(t *testing.T, item mailbox.Item) string {
	t.Helper()
	read := func(into any) {
		if err := mailbox.Unmarshal(item.Body, into); err != nil {
			t.Fatal(err)
		}
	}
	switch item.Kind {
	case agent.Resumed{}.Kind():
		var f agent.Resumed
		read(&f)
		return fmt.Sprintf("%s damaged=%t looked=%t", item.Kind, f.Damaged != "", f.Looked)
	case agent.Released{}.Kind():
		var f agent.Released
		read(&f)
		return fmt.Sprintf("%s rests=%t due=%t", item.Kind, f.Rests, f.Due != 0)
	case agent.Closed{}.Kind():
		var f agent.Closed
		read(&f)
		return fmt.Sprintf("%s finish=%t", item.Kind, f.Finish != nil)
	}
	return item.Kind
}
