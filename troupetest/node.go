package troupetest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/node/killable"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
)

// scriptRoute is the model that sends the replies of the script.
const scriptRoute = "script/test"

// Limits of a wait.
const (
	// runMax is how long a run may take, with all its crashes.
	runMax = 2 * time.Minute
	// lastEntryMax is how long the entry of a crash may come after the result.
	lastEntryMax = 2 * time.Second
)

// Node is a node of a test. A test uses it from one goroutine. A crash replaces the embedded Node: a test that plans
// one reads n.Client() again after Run.
type Node struct {
	*troupe.Node
	t     testing.TB
	cfg   troupe.Config
	count *killable.Count
	logs  *killable.Logs // of the current node
}

// Start starts a node, which the end of the test closes. The replies are a script in YAML (see package model/script),
// which plays every agent under the model "script/test"; Config.Model is that model unless cfg names another. With
// replies "" there is no script: the models are those of cfg. The node reads no environment unless cfg.Env is set, so
// that no key of the machine is used. Its logs are in a directory of the test unless cfg.StateDir is set.
func Start(t testing.TB, cfg troupe.Config, replies string) *Node {
	t.Helper()
	if replies != "" {
		s, err := script.Parse([]byte(replies))
		if err != nil {
			t.Fatal(err)
		}
		models := map[string]model.Client{scriptRoute: s.Client("")}
		for route, own := range cfg.Models {
			models[route] = own
		}
		cfg.Models, cfg.Model = models, cmp.Or(cfg.Model, scriptRoute)
	}
	if cfg.Env == nil {
		cfg.Env = func(string) string { return "" }
	}
	cfg.StateDir = cmp.Or(cfg.StateDir, t.TempDir()+"/state")
	n := &Node{t: t, cfg: cfg, count: &killable.Count{}}
	n.start()
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// start starts the node, the first or the next one on its logs.
func (n *Node) start() {
	n.t.Helper()
	var logs *killable.Logs
	ctx := node.WithLogs(context.Background(), func(s mailbox.Store) mailbox.Store {
		logs = killable.Wrap(s, n.count)
		return logs
	})
	started, err := troupe.Start(ctx, n.cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	n.Node, n.logs = started, logs
}

// CrashAt plans crashes for the next Run: when the logs of the run hold so many entries, the node is killed and
// another one starts on the same logs. Several numbers, in ascending order, are several crashes. What is killed is the
// node and not the process: it appends nothing more, reads nothing of its own entries, and its tools are canceled.
// Run fails the test if the run ends with fewer entries.
func (n *Node) CrashAt(entries ...int) { n.count.Plan(entries) }

// Run runs a task through all planned crashes until it has ended or waits for a person, and returns its trace. Whether
// it completed is an assertion of the test: see Trace.
func (n *Node) Run(task troupe.Task) *Trace {
	n.t.Helper()
	task.RunID = cmp.Or(task.RunID, client.NewID())
	n.count.Begin(task.RunID)
	ctx, cancel := context.WithTimeout(context.Background(), runMax)
	defer cancel()
	trace := &Trace{t: n.t}
	for !n.runOnce(ctx, task, trace) {
		trace.Crashes++
		n.start()
	}
	if left := n.count.End(); len(left) > 0 {
		n.t.Errorf("the run ended with %d entries, before the crash at entry %d", n.count.Entries(), left[0])
	}
	trace.Entries = n.count.Entries()
	if trace.Entries == 0 { // the task was refused
		return trace
	}
	if err := trace.readEvents(ctx, n.Client(), task.RunID); err != nil {
		n.t.Errorf("the events of run %s: %v", task.RunID, err)
	}
	return trace
}

// runOnce waits for the run on the current node, and reports false if that node was killed meanwhile: it is closed
// then.
func (n *Node) runOnce(ctx context.Context, task troupe.Task, trace *Trace) (ended bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	current, over := n.Node, make(chan struct{})
	go func() {
		defer close(over)
		trace.Result, trace.Err = current.Run(ctx, task)
	}()
	select {
	case <-n.logs.Killed():
	case <-over:
		if !n.count.Pending() && !n.logs.IsDead() {
			return true
		}
		select {
		case <-n.logs.Killed():
		case <-time.After(lastEntryMax):
			return true
		}
	}
	if err := current.Close(); err != nil { // of a node that was killed anything may be left undone
		n.t.Logf("the killed node: %v", err)
	}
	cancel()
	<-over
	return false
}
