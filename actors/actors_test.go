package actors_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
)

// deadline ends a test that waits for something that does not come.
const deadline = 60 * time.Second

// testNode is a node over some Post with a scripted model, for one test.
type testNode struct {
	t      *testing.T
	node   *actors.Node
	over   chan event.Result
	mu     sync.Mutex
	events []event.Published
	seen   chan event.Published
	// onEvent is called inside the shell, before the event is kept.
	onEvent func(kind string)
	onWhole func(address, kind string)
}

func playRun(t *testing.T, post mailbox.Post, lease uint64, text string, tools ...tool.Tool) *testNode {
	t.Helper()
	sc, err := script.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return playClient(t, post, lease, sc.Client(""), tools...)
}

func playClient(t *testing.T, post mailbox.Post, lease uint64, client model.Client, tools ...tool.Tool) *testNode {
	t.Helper()
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return stageOf(t, actors.Config{
		Name: "test", Post: post, Lease: lease,
		Model: func(string) (model.Client, string, error) { return client, "m", nil },
		Tools: func(spec.Task) (*tool.Set, error) { return set, nil },
	})
}

// stageOf starts a node that is watched.
func stageOf(t *testing.T, cfg actors.Config) *testNode {
	t.Helper()
	s := &testNode{t: t, over: make(chan event.Result, 16), seen: make(chan event.Published, 4096)}
	cfg.OnResult = func(_ string, r event.Result) { s.over <- r }
	cfg.OnEvent = func(e event.Published) {
		if s.onEvent != nil {
			s.onEvent(e.Kind)
		}
		if s.onWhole != nil {
			s.onWhole(e.Run+"."+e.Agent, e.Kind)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
		s.seen <- e
	}
	var err error
	s.node, err = actors.Start(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.node.Stop)
	return s
}

// awaitResult waits for the end of the run.
func (s *testNode) awaitResult() event.Result {
	s.t.Helper()
	select {
	case r := <-s.over:
		return r
	case <-time.After(deadline):
		s.t.Fatalf("the run did not end; events: %s", s.eventKinds())
		return event.Result{}
	}
}

// awaitEvent returns the next event of a kind.
func (s *testNode) awaitEvent(kind string) event.Published {
	s.t.Helper()
	late := time.After(deadline)
	for {
		select {
		case e := <-s.seen:
			if e.Kind == kind {
				return e
			}
		case <-late:
			s.t.Fatalf("no %s; events: %s", kind, s.eventKinds())
		}
	}
}

func (s *testNode) eventKinds() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := ""
	for _, e := range s.events {
		text += "\n" + e.ID + " " + e.Kind
	}
	return text
}

func openedRun(run string, tools ...tool.Tool) supervisor.Opened {
	o := supervisor.Opened{Run: run, Goal: "do it", Root: "boss",
		Definitions: []supervisor.Definition{{Name: "boss", System: "You lead."}, {Name: "helper", System: "You help."}},
		Model:       spec.Model{Name: "script/test"}, Limits: spec.RunLimits{Tokens: 100_000}}
	for _, t := range tools {
		o.Tools = append(o.Tools, t.Spec())
	}
	return o
}

// echoTool is a tool of a class that says what it was told.
type echoTool struct {
	name  string
	class model.Class
	call  func(context.Context, tool.Call) (tool.Result, error)
}

func (e echoTool) Spec() model.ToolSpec {
	return model.ToolSpec{Name: e.name, Class: e.class, Schema: `{"type":"object"}`}
}

func (e echoTool) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	if e.call != nil {
		return e.call(ctx, c)
	}
	return tool.Result{Text: "echo " + string(c.Args)}, nil
}

var delegate = echoTool{name: "delegate", class: model.Read}

func TestARunWithOneToolEndsCompleted(t *testing.T) {
	look := echoTool{name: "look", class: model.Read}
	s := playRun(t, memory.New(memory.Config{}), 1, `
agents:
  boss:
    - calls: [{name: look, args: {at: here}}]
    - text: "found {{last}}"
`, look)
	if err := s.node.Open(context.Background(), openedRun("r1", look)); err != nil {
		t.Fatal(err)
	}
	r := s.awaitResult()
	if r.Reason != spec.Completed || r.Text != `found echo {"at":"here"}` || r.Budget.Reserved != 0 || r.Turns != 2 {
		t.Fatalf("result: %+v", r)
	}
}

//behaviour:shows H1
func TestAChildAnswersItsParentLikeATool(t *testing.T) {
	s := playRun(t, memory.New(memory.Config{}), 1, `
agents:
  boss:
    - calls: [{name: delegate, args: {agent: helper, task: one}}, {name: delegate, args: {agent: helper, task: two}}]
    - text: "heard {{result.0}} and {{result.1}}"
  helper:
    - text: "did {{task}}"
`, delegate)
	if err := s.node.Open(context.Background(), openedRun("r1", delegate)); err != nil {
		t.Fatal(err)
	}
	r := s.awaitResult()
	if r.Text != "heard did one and did two" || len(r.Agents) != 3 {
		t.Fatalf("result: %+v", r)
	}
}

// A child that is delegated to with fork hears its parent's history before its
// task, through both logs (D6).
func TestAChildBeginsWithItsParentsHistory(t *testing.T) {
	look := echoTool{name: "look", class: model.Read}
	post := memory.New(memory.Config{})
	s := playRun(t, post, 1, `
agents:
  boss:
    - calls: [{name: look, args: {at: here}}]
    - calls: [{name: delegate, args: {agent: helper, task: "check it", fork: true}}]
    - text: "heard {{last}}"
  helper:
    - text: "knows nothing"
    - text: "was asked {{task}} and {{user}}, and saw {{last}}"
`, look, delegate)
	if err := s.node.Open(context.Background(), openedRun("r1", look, delegate)); err != nil {
		t.Fatal(err)
	}
	if r := s.awaitResult(); r.Text != `heard was asked do it and check it, and saw echo {"at":"here"}` {
		t.Fatalf("result: %+v", r)
	}
	if kinds := logKinds(t, post, "r1.root-2-0"); !slices.Contains(kinds, "recalled") {
		t.Errorf("the child's log: %v", kinds)
	}
}
