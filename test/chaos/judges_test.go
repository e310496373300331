package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/activation"
)

// The judges of the scenarios, fed with what they must find and with what they must not.

// judged is what a judge finds.
func judged(judge func(*testCluster)) []string {
	t := &testCluster{}
	judge(t)
	return t.found.list
}

// finding checks that a judge finds what holds a text, or nothing where that is "".
func finding(t *testing.T, name, text string, found []string) {
	t.Helper()
	if text == "" && len(found) > 0 || text != "" && !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, text) }) {
		t.Errorf("%s: found %q, want %q", name, found, text)
	}
}

// TestJudgeOfFullStreams: who has something to write says within ten seconds that it
// cannot, and nobody says that it can again; nothing begins.
func TestJudgeOfFullStreams(t *testing.T) {
	gone := time.Now()
	two := []string{"n1", "n2"}
	said := func(w *expectation, node, kind string, after time.Duration) {
		w.noteReport(node, "logs."+kind, gone.Add(after))
	}
	for name, c := range map[string]struct {
		told func(w *expectation)
		s    stillness
		find string
	}{
		"both say so":     {func(w *expectation) { said(w, "n2", "unavailable", 6*time.Second) }, stillness{waiting: two}, ""},
		"one has no need": {func(*expectation) {}, stillness{waiting: two[:1]}, ""},
		"one never does":  {func(*expectation) {}, stillness{waiting: two}, "[n2] have waited to write"},
		"one is late":     {func(w *expectation) { said(w, "n2", "unavailable", 11*time.Second) }, stillness{waiting: two}, "after 11s"},
		"one takes it back": {func(w *expectation) {
			said(w, "n2", "unavailable", 5*time.Second)
			said(w, "n2", "available", 6*time.Second)
		}, stillness{waiting: two}, "n2 said that it can write again"},
		"a tool begins":    {func(*expectation) {}, stillness{tools: 1}, "1 tools were begun"},
		"a model is asked": {func(*expectation) {}, stillness{calls: 2}, "2 model calls were begun"},
	} {
		w := newExpectation()
		said(w, "n2", "unavailable", -time.Minute) // before; it is over
		said(w, "n2", "available", -time.Second)
		w.discardEarlier(gone)
		said(w, "n1", "unavailable", 5*time.Second)
		c.told(w)
		_, bad := w.listProblems(c.s)
		finding(t, name, c.find, bad)
	}
	w := newExpectation()
	said(w, "n1", "unavailable", -time.Second)
	w.discardEarlier(gone)
	if last, bad := w.listProblems(stillness{waiting: two[:1]}); last != 0 || len(bad) > 0 {
		t.Errorf("who cannot write already need not say it again: %v %v", last, bad)
	}
}

// TestNodeStatusMayComeFromItsLog: an event is published once, and the observer may be disconnected.
func TestNodeStatusMayComeFromItsLog(t *testing.T) {
	const cannot, can = "msg=\"journal_unavailable: …\"\n", "msg=\"the logs can be written again\"\n"
	if writesAgain("") || writesAgain(cannot) || writesAgain(cannot+can+cannot) || !writesAgain(cannot+can) {
		t.Error("what a node logged last is not what counts")
	}
}

func TestTheJudgeOfSlowDisks(t *testing.T) {
	for name, c := range map[string]struct {
		expired    int
		base, most int64
		find       string
	}{
		"nothing":       {0, 1 << 20, 1<<20 + slowGrowth, ""},
		"a lease ends":  {1, 1 << 20, 1 << 20, "1 leases ended"},
		"a node grows":  {0, 1 << 20, 1<<21 + slowGrowth, "a node grew"},
		"none measured": {0, 0, 0, "could be measured"},
	} {
		finding(t, name, c.find, judged(func(t *testCluster) { (&slowDisk{t}).judgeLeases(c.expired, c.base, c.most) }))
	}
}

func TestTheJudgeOfWatchers(t *testing.T) {
	const base = 1 << 20
	second := []time.Duration{time.Second}
	alone := measurement{took: second, rounds: second, server: time.Second, nodes: time.Second}
	good := measurement{kind: crowdStopped, watchers: 10, took: second, rounds: second, rss: base, saw: observerCounts{Read: 1}, events: 100, server: time.Second, nodes: time.Second}
	for name, c := range map[string]struct {
		change func(*measurement)
		find   string
	}{
		"nothing":               {func(*measurement) {}, ""},
		"runs are slow":         {func(s *measurement) { s.rounds = []time.Duration{1300 * time.Millisecond} }, "1.30 times as long before 10 stopped watchers"},
		"readers cost":          {func(s *measurement) { s.kind, s.rounds = crowdReaders, []time.Duration{1300 * time.Millisecond} }, ""},
		"readers cost too much": {func(s *measurement) { s.kind, s.rounds = crowdReaders, []time.Duration{3 * time.Second} }, "3.00 times as long before 10 readers"},
		"copies are dear":       {func(s *measurement) { s.server += 1000 * (copyCost + time.Microsecond) }, "a copy of an event for one of 10 stopped watchers took"},
		"the nodes pay":         {func(s *measurement) { s.nodes *= 2 }, "a run took the nodes 2s before 10 stopped watchers"},
		"the server grows":      {func(s *measurement) { s.rss += watchersGrowth + 1<<20 }, "the server grew"},
		"slow ones are cut off": {func(s *measurement) { s.kind, s.saw.Cut = crowdSlow, 1 }, ""},
		"readers are cut off":   {func(s *measurement) { s.kind, s.saw.Cut = crowdReaders, 1 }, "1 of them were cut off"},
		"pages are cut off":     {func(s *measurement) { s.kind, s.saw.Cut = crowdPages, 1 }, "1 of them were cut off"},
		"nobody reads":          {func(s *measurement) { s.kind, s.saw.Read = crowdPages, 0 }, "read 0 bytes"},
		"no run ended":          {func(s *measurement) { s.took = nil }, "not measured"},
		"no round was measured": {func(s *measurement) { s.rounds = nil }, "not measured"},
		"no event was seen":     {func(s *measurement) { s.events = 0 }, "not measured"},
	} {
		s := good
		c.change(&s)
		finding(t, name, c.find, judged(func(t *testCluster) { (&watcherLoad{t}).judgeLoad(s, alone, base) }))
	}
}

// TestJudgeOfSpawnStorms: a spawn storm gets what it may have, no more and no less, all of it ends,
// and what it spent is what its model was asked for.
func TestJudgeOfSpawnStorms(t *testing.T) {
	sh := stormShape{children: 1, agents: 2}
	const cost = inputTokens + outputTokens
	for name, c := range map[string]struct {
		change func(*event.Result, *replayedRun)
		asked  int
		find   string
	}{
		"nothing":                {func(*event.Result, *replayedRun) {}, 3, ""},
		"an agent too many":      {func(_ *event.Result, f *replayedRun) { f.peak.agents++ }, 3, "3 agents of 2"},
		"an agent too few":       {func(_ *event.Result, f *replayedRun) { f.peak.agents-- }, 3, "1 agents of 2"},
		"a child too many":       {func(_ *event.Result, f *replayedRun) { f.peak.children++ }, 3, "2 children of 1"},
		"too deep":               {func(_ *event.Result, f *replayedRun) { f.peak.deep++ }, 3, "11 deep of 10"},
		"not deep enough":        {func(_ *event.Result, f *replayedRun) { f.peak.deep-- }, 3, "9 deep of 10"},
		"one lives on":           {func(r *event.Result, _ *replayedRun) { r.Agents[1].Phase = "thinking" }, 3, "is thinking"},
		"a token too many":       {func(r *event.Result, _ *replayedRun) { r.Budget.Used++ }, 3, "its budget says"},
		"more than the limit":    {func(r *event.Result, _ *replayedRun) { r.Budget.Limit = 1 }, 3, "its budget says"},
		"something is held":      {func(r *event.Result, _ *replayedRun) { r.Budget.Reserved = 1 }, 3, "its budget says"},
		"a call nobody paid for": {func(*event.Result, *replayedRun) {}, 4, "its budget says"},
	} {
		r := &event.Result{}
		r.Agents = append(r.Agents, make([]event.AgentResult, 2)...)
		for i := range r.Agents {
			r.Agents[i].Phase = "done"
		}
		r.Budget.Limit, r.Budget.Used = 10*cost, 3*cost
		f := newReplayed("r")
		f.replied, f.peak = 3, peakUse{agents: 2, children: 1, deep: stormDepth}
		c.change(r, f)
		finding(t, name, c.find, judged(func(t *testCluster) { (&spawnStorms{t}).judgeStorm(1, sh, r, f, c.asked) }))
	}
	for raceOutcome, find := range map[int64]string{100: "", 101: "more is spent and held than the limit"} {
		step := &activation.Supervisor{}
		step.State.Pool = budget.Pool{Limit: budget.Limit{Tokens: 100}, Spent: budget.Amount{Tokens: raceOutcome - 50}, Held: budget.Amount{Tokens: 50}}
		f := newReplayed("r")
		f.checkStep(step)
		finding(t, "a step of its supervisor", find, f.problems)
	}
	for name, c := range map[string]struct {
		alone, beside []time.Duration
		find          string
	}{
		"twice as long":      {[]time.Duration{time.Second}, []time.Duration{2 * time.Second}, ""},
		"more than that":     {[]time.Duration{time.Second}, []time.Duration{2*time.Second + time.Millisecond}, "beside spawn storms (p99)"},
		"none ended beside":  {[]time.Duration{time.Second}, nil, "0 beside spawn storms"},
		"none ended without": {nil, []time.Duration{0}, "0 runs ended alone"},
	} {
		finding(t, name, c.find, judged(func(t *testCluster) { (&spawnStorms{t}).judgeBeside(c.alone, c.beside) }))
	}
}

// TestEveryControlFindsItsFault: each scenario has its own, and it must find each thing.
func TestEveryControlFindsItsFault(t *testing.T) {
	for _, o := range []options{{full: fullDisk}, {full: fullStreams}, {slow: time.Millisecond}, {storms: 1}, {watchers: 4}} {
		o.control = true
		o.breakOnPurpose()
		if !o.broken || o.control || len(o.expectedProblems()) == 0 {
			t.Errorf("no control: %+v", o)
		}
		var p problems
		for _, text := range o.expectedProblems() {
			if p.checkControl(o.expectedProblems()) == nil {
				t.Errorf("%q is not found, and the control is content", text)
			}
			p.add("… %s …", text)
		}
		if err := p.checkControl(o.expectedProblems()); err != nil {
			t.Error(err)
		}
	}
	o := options{nodes: 3, control: true}
	if o.breakOnPurpose(); o.broken || !o.control {
		t.Error("the control of the others is a tool that lies")
	}
}

// TestOneRequestOfEachNodeIsHeld: the others are answered.
func TestOneRequestOfEachNodeIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{}
		p.holdOne()
		var answered []string
		ask := func(node string) {
			p.waitHeld(httptest.NewRequest(http.MethodPost, "/"+node+"/v1/messages", nil))
			answered = append(answered, node)
		}
		for _, node := range []string{"n1", "n1", "n2"} {
			go ask(node)
			synctest.Wait()
		}
		if !slices.Equal(p.nodesHeld(), []string{"n1", "n2"}) || !slices.Equal(answered, []string{"n1"}) || p.countWaiting() != 2 {
			t.Errorf("held of %v, answered %v, %d wait", p.nodesHeld(), answered, p.countWaiting())
		}
		p.releaseAll()
		synctest.Wait()
		if p.countWaiting() != 0 {
			t.Errorf("%d wait", p.countWaiting())
		}
	})
}

// TestStoppedScenarioLeavesNoProcess: no process that names its directory.
func TestStoppedScenarioLeavesNoProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Fatalf("processes cannot be seen here: %v", err)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "while :; do sleep 1; done # "+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if list := listProcesses(dir); len(list) != 1 || list[0].pid != cmd.Process.Pid {
		t.Errorf("%v instead of %d", list, cmd.Process.Pid)
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	if err := endProcesses(dir); err != nil {
		t.Error(err)
	}
	<-gone
}
