package troupetest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/node/killable"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
)

// scriptRoute is the model that sends the replies of the script.
const scriptRoute = "script/test"

// runMax is how long a run may take, with all its crashes.
const runMax = 2 * time.Minute

// lastEntryMax is how long the entry of a crash may come after the result.
const lastEntryMax = 2 * time.Second

// readMax is how long it may take to read the events of a run that has ended.
const readMax = 30 * time.Second

// Node is a node of a test. A test uses it from one goroutine. A crash replaces the embedded Node: a test that plans
// one reads n.Client() again after Run.
type Node struct {
	*troupe.Node
	t      testing.TB
	cfg    troupe.Config
	script *script.Script // nil: there is none
	runMax time.Duration
	count  *killable.Count
	logs   *killable.Logs // of the current node
}

// Start starts a node, which the end of the test closes. The replies are a script in YAML (see package model/script),
// which plays every agent under the model "script/test"; Config.Model is that model unless cfg names another. With
// replies "" there is no script: the models are those of cfg. The node reads no environment unless cfg.Env is set, so
// that no key of the machine is used. Its logs are in a directory of the test unless cfg.StateDir is set.
func Start(t testing.TB, cfg troupe.Config, replies string) *Node {
	t.Helper()
	var s *script.Script
	if replies != "" {
		var err error
		if s, err = script.Parse([]byte(replies)); err != nil {
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
	n := &Node{t: t, cfg: cfg, script: s, runMax: runMax, count: &killable.Count{}}
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

// CrashAt plans crashes for the next Run: when the logs of the run hold the given number of entries, the node is
// killed, and another one starts on the same logs. Several numbers are several crashes; each is greater than the one
// before, and the first is at least 1: the test fails otherwise, and no crash is planned. CrashAt kills the node and
// not the process: the node appends nothing more, reads nothing of its own entries, and its tools are canceled. Run
// fails the test if the run ends with fewer entries.
func (n *Node) CrashAt(entries ...int) {
	n.t.Helper()
	last := 0
	for _, entry := range entries {
		if entry <= last {
			n.t.Errorf("CrashAt(%v): the numbers of entries must ascend, from 1", entries)
			return
		}
		last = entry
	}
	n.count.Plan(entries)
}

// Run runs a task through all planned crashes until it has ended or waits for a person, and returns its trace. Whether
// it completed is an assertion of the test: see Trace. Run fails the test if the run takes longer than two minutes, and
// if the script has no replies for an agent of the run.
func (n *Node) Run(task troupe.Task) *Trace {
	n.t.Helper()
	task.RunID = cmp.Or(task.RunID, client.NewID())
	n.count.Begin(task.RunID)
	ctx, cancel := context.WithTimeout(context.Background(), n.runMax)
	defer cancel()
	trace := &Trace{t: n.t}
	for !n.runOnce(ctx, task, trace) {
		trace.Crashes++
		n.start()
	}
	if ctx.Err() != nil {
		n.t.Errorf("run %s was canceled: it took longer than %v", task.RunID, n.runMax)
	}
	if left := n.count.End(); len(left) > 0 {
		n.t.Errorf("the run ended with %d entries, before the crash at entry %d", n.count.Entries(), left[0])
	}
	trace.Entries = n.count.Entries()
	if trace.Entries == 0 { // the task was refused
		return trace
	}
	readCtx, stop := context.WithTimeout(context.Background(), readMax)
	defer stop()
	if err := trace.readEvents(readCtx, n.Client(), task.RunID); err != nil {
		n.t.Errorf("the events of run %s: %v", task.RunID, err)
	}
	n.checkScript(trace)
	return trace
}

// checkScript fails the test if the script has no replies for an agent that it played. Such an agent ends at once, and
// the run may complete without having done anything.
func (n *Node) checkScript(trace *Trace) {
	n.t.Helper()
	if n.script == nil || len(n.script.Default) > 0 {
		return
	}
	reported := map[string]bool{}
	for _, e := range trace.Events {
		d, ok := e.Data.(event.AgentStarted)
		if !ok || d.Model != scriptRoute || len(n.script.Agents[d.Name]) > 0 || len(n.script.IDs[e.Agent]) > 0 || reported[d.Name] {
			continue
		}
		reported[d.Name] = true
		n.t.Errorf("the script has no replies for agent %q, and no default", d.Name)
	}
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
