package node

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/test/leaks"
)

// patience is how long a test waits for what must happen.
const patience = 120 * time.Second

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// noLeaks checks at the end of the test that none of its goroutines is left. It must be
// called first: cleanups run in reverse order.
func noLeaks(t *testing.T) {
	t.Helper()
	leaks.Check(t)
}

// startNode starts a host in a state directory. Its writes are not synced: no test
// here turns the machine off.
func startNode(t testing.TB, state string, change ...func(*Config)) *Node {
	t.Helper()
	cfg := Config{StartServer: embedded.StartServer, StateDir: state, Port: embedded.FreePort, Lazy: true, Name: "host", Env: func(string) string { return "" }, requestsFromUser: true}
	for _, c := range change {
		c(&cfg)
	}
	h, err := Start(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func connectClient(t *testing.T, h *Node) *client.Client {
	t.Helper()
	c, err := h.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// connectRole is a plain connection in a role.
func connectRole(t testing.TB, h *Node, r bus.Role, options ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := h.embedded.Connect(r, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// newRepository is a small git repository to investigate.
func newRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.org/small\n\ngo 1.26\n",
		"main.go": "package main\n\nfunc main() { // FIXME: nothing yet\n\t_ = run()\n}\n\nfunc run() error { return nil }\n",
		"app.log": "2026-01-02T03:04:05Z ERROR request 1 failed\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

// writeScript writes a scripted model and returns its name.
func writeScript(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "script/" + path
}

// family is a run of a root with three children.
const family = `
agents:
  assistant:
    - calls:
        - {name: delegate, args: {agent: surveyor, task: "first"}}
        - {name: delegate, args: {agent: surveyor, task: "second"}}
        - {name: delegate, args: {agent: surveyor, task: "third"}}
    - text: "all three answered: {{last}}"
  surveyor:
    - text: "surveyed {{task}}"
`

// eventRecorder records the published events of all runs, and checks them.
type eventRecorder struct {
	t   *testing.T
	mu  sync.Mutex
	raw map[string]string // by id; deltas are only checked
	bad []string
	new chan struct{} // something was taken
}

// recordEvents subscribes to all events as an observer without a password.
func recordEvents(t *testing.T, h *Node) *eventRecorder {
	t.Helper()
	tp := &eventRecorder{t: t, raw: map[string]string{}, new: make(chan struct{}, 1)}
	nc := connectRole(t, h, bus.RoleObserver)
	if _, err := nc.Subscribe("troupe.evt.>", tp.receiveEvent); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tp.reportInvalid)
	return tp
}

func (tp *eventRecorder) receiveEvent(m *nats.Msg) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	var e client.Event
	if err := json.Unmarshal(m.Data, &e); err != nil {
		tp.bad = append(tp.bad, m.Subject+": "+err.Error())
		return
	}
	if err := control.ValidateEvent(m.Data); err != nil {
		tp.bad = append(tp.bad, m.Subject+": "+err.Error())
	}
	if want := "troupe.evt." + e.Run + "." + e.Agent + "." + e.Kind; m.Subject != want || strings.Count(want, ".") != 5 {
		tp.bad = append(tp.bad, m.Subject+" carries "+want)
	}
	if e.Seq == 0 {
		return
	}
	if old, ok := tp.raw[e.ID]; ok && old != string(m.Data) {
		tp.bad = append(tp.bad, e.ID+" was told twice, differently")
	}
	tp.raw[e.ID] = string(m.Data)
	select {
	case tp.new <- struct{}{}:
	default:
	}
}

// waitForEvents returns the events of one run, by id, once those of want are among them: the log of
// a run may be readable before its last events arrive.
func (tp *eventRecorder) waitForEvents(t *testing.T, run string, want map[string]string) map[string]string {
	t.Helper()
	late := testContext(t).Done()
	for {
		got := tp.eventsOf(run)
		missing := slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(id string) bool { _, ok := got[id]; return !ok })
		if !missing {
			return got
		}
		select {
		case <-tp.new:
		case <-late:
			return got
		}
	}
}

func (tp *eventRecorder) reportInvalid() {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	for _, b := range tp.bad {
		tp.t.Error(b)
	}
}

// eventsOf are the events of one run, by id.
func (tp *eventRecorder) eventsOf(run string) map[string]string {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	own := maps.Clone(tp.raw)
	maps.DeleteFunc(own, func(id, _ string) bool { return !strings.HasPrefix(id, run+".") })
	return own
}

// pagedEvents are the events of a run as its logs tell them, in that order.
func pagedEvents(t *testing.T, c *client.Client, run string) (ids []string, raw map[string]string) {
	t.Helper()
	raw = map[string]string{}
	err := c.Events(testContext(t), run, nil, false, func(e client.Event, data []byte) error {
		if err := control.ValidateEvent(data); err != nil {
			t.Error(err)
		}
		ids = append(ids, e.ID)
		raw[e.ID] = string(data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) != len(ids) {
		t.Errorf("%d events with %d ids", len(ids), len(raw))
	}
	return ids, raw
}

// beginRun opens a run.
func beginRun(t *testing.T, c *client.Client, r client.RunRequest) string {
	t.Helper()
	if r.RunID == "" {
		r.RunID = client.NewID()
	}
	if r.Prompt == "" {
		r.Prompt = "Investigate this directory"
	}
	ctx := testContext(t)
	_, err := c.Run(ctx, r)
	for client.Lost(err) && ctx.Err() == nil { // a machine that is busy: the same id opens one run, as the command sends it again
		_, err = c.Run(ctx, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.RunID
}

// waitFinished waits for a run and checks how it ended.
func waitFinished(t *testing.T, c *client.Client, run string, want spec.Reason) client.RunInfo {
	t.Helper()
	info, err := c.Wait(testContext(t), run)
	if err != nil {
		t.Fatal(err)
	}
	if info.State != client.RunFinished || info.Result == nil || info.Result.Reason != want || info.Result.Budget.Reserved != 0 {
		t.Fatalf("run %s: %+v, result %+v", run, info, info.Result)
	}
	return info
}

// sameEvents compares two sets of events.
func sameEvents(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if got[id] != want[id] {
			t.Errorf("%s\n got %.300s\nwant %.300s", id, got[id], want[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[id]; !ok {
			t.Errorf("%s is too much: %.300s", id, got[id])
		}
	}
}

// whereIs reads the place in an event's id.
func whereIs(t *testing.T, id string) (at string, n uint64) {
	t.Helper()
	at, rest, _ := strings.Cut(id, "#")
	number, _, _ := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return at, n
}

// limitsOf are the limits that a run was started with.
func limitsOf(t *testing.T, h *Node, run string) spec.RunLimits {
	t.Helper()
	s, err := runlog.ReplaySupervisor(testContext(t), h.post, run)
	if err != nil {
		t.Fatal(err)
	}
	return s.Run.Limits
}
