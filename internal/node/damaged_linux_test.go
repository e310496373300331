package node

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// answerMax bounds one reply to a cancel or a delete of a damaged run. It is above the time
// that a request may take, and below the patience of the tests.
const answerMax = 25 * time.Second

// live is the mode of a run whose agents are in memory; noLog is the kind of damage that
// it cannot have.
const live, noLog = "live", "no log"

// notAnEntry are bytes that decode to nothing.
var notAnEntry = []byte{0xc1}

// rewriteLog replaces a log with what change makes of its entries.
func rewriteLog(t *testing.T, h *Node, at mailbox.Address, change func([][]byte) [][]byte) {
	t.Helper()
	var old [][]byte
	err := h.post.Read(testContext(t), at, 0, 0, func(m mailbox.Message) error {
		old = append(old, slices.Clone(m.Data))
		return nil
	})
	if err == nil {
		err = h.post.Purge(testContext(t), at, 0)
	}
	for _, data := range change(old) {
		if err == nil {
			_, err = mailbox.Put(testContext(t), h.post, at, data)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func loseAll([][]byte) [][]byte { return nil }

func loseHead(log [][]byte) [][]byte { return log[1:] }

func loseTail(log [][]byte) [][]byte { return log[:1+len(log)/3] }

func spoilAll([][]byte) [][]byte { return [][]byte{notAnEntry, notAnEntry} }

func spoilHead(log [][]byte) [][]byte { return append([][]byte{notAnEntry}, log[1:]...) }

func spoilMiddle(log [][]byte) [][]byte {
	log[len(log)/2] = notAnEntry
	return log
}

// appendNewer appends an entry of a form that this program does not know.
func appendNewer(log [][]byte) [][]byte {
	entry := slices.Clone(log[0])
	entry[bytes.Index(entry, []byte{'v', mailbox.Form})+1]++
	return append(log, entry)
}

// appendCrashes appends so many claims that the log counts as one that no activation gets
// through.
func appendCrashes(t *testing.T, h *Node, at mailbox.Address) {
	t.Helper()
	for i := range uint64(activation.StartsMax + 2) {
		body, err := mailbox.Marshal(agent.Resumed{Activation: "x"})
		if err != nil {
			t.Fatal(err)
		}
		start := fmt.Sprintf("x%d", i)
		data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, From: at, Epoch: mailbox.Epoch{Lease: 1, Start: i}, Start: start,
			Items: []mailbox.Item{{ID: start, Kind: "resumed", Body: body}}})
		if err == nil {
			_, err = mailbox.Put(testContext(t), h.post, at, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// damageKind is one way in which a run is damaged.
type damageKind struct {
	name string
	// outlives is how many programs may continue to run: an activation whose log turns out to
	// be newer stops acting, and no node of this release can abort the tool that it had begun.
	// The cancel counts such an agent as given up.
	outlives int
	turn     int // which sample meets it in which mode
	do       func(t *testing.T, h *Node, run string)
}

// logChanges are the ways in which one log is damaged.
var logChanges = []struct {
	name   string
	change func([][]byte) [][]byte // nil: crashes are appended
}{{"gone", loseAll}, {"without its head", loseHead}, {"without its tail", loseTail}, {"undecodable", spoilAll}, {"with an undecodable head", spoilHead},
	{"with an undecodable entry", spoilMiddle}, {"of a newer form", appendNewer}, {"crashes again and again", nil}}

// damageKinds lists what the disk, a lost row and crashes leave of a run. A kind's modes
// are given in turn, so that in each sample each log and each way is met in all modes.
func damageKinds() []damageKind {
	var kinds []damageKind
	for i, who := range []string{mailbox.Super, "root", "root-1-0"} {
		for j, way := range logChanges {
			kind := damageKind{name: "log of " + who + " " + way.name, turn: i + j, do: func(t *testing.T, h *Node, run string) {
				rewriteLog(t, h, mailbox.At(run, who), way.change)
			}}
			if way.change == nil {
				kind.name = who + " " + way.name
				kind.do = func(t *testing.T, h *Node, run string) { appendCrashes(t, h, mailbox.At(run, who)) }
			}
			if who == "root-1-0" && way.name == "of a newer form" {
				kind.outlives = 2 // the keeper, and the program
			}
			kinds = append(kinds, kind)
		}
	}
	kinds = append(kinds,
		damageKind{name: noLog, turn: 0, do: func(t *testing.T, h *Node, run string) {
			for at := range logKinds(t, h, run) {
				rewriteLog(t, h, mailbox.At(run, at), loseAll)
			}
		}},
		damageKind{name: "no row", turn: 1, do: removeRow},
		damageKind{name: "no blobs", turn: 2, do: func(t *testing.T, h *Node, run string) {
			if err := h.blobs.Drop(testContext(t), run); err != nil {
				t.Fatal(err)
			}
		}},
		damageKind{name: "no row and no log of the supervisor", turn: 0, do: func(t *testing.T, h *Node, run string) {
			removeRow(t, h, run)
			rewriteLog(t, h, mailbox.At(run, mailbox.Super), loseAll)
		}})
	slices.SortFunc(kinds, func(a, b damageKind) int { return strings.Compare(a.name, b.name) })
	return kinds
}

// programsOf counts the processes of tools that wait for a gate.
func programsOf(t *testing.T, gate string) int { return len(programLines(t, gate)) }

// programLines are the processes of tools that wait for a gate, each with its parent.
func programLines(t *testing.T, gate string) (found []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if text, err := os.ReadFile(line); err == nil && bytes.Contains(text, []byte(gate)) { // it may have ended
			found = append(found, fmt.Sprintf("%s %.60q", line, text))
		}
	}
	return found
}

// damagedRun is a run whose agents work until their gate opens.
type damagedRun struct {
	kind     damageKind
	id, gate string
}

// damagedHost starts one run for each kind of damage and damages them. In mode "live"
// their agents work in the memory of the host, in mode "idle" a node that was restarted
// leaves them alone, and in mode "resumed" it has taken them up.
func damagedHost(t *testing.T, mode string, kinds []damageKind) (*Node, []damagedRun) {
	state := t.TempDir()
	var roots []string
	var runs []damagedRun
	var requests []client.RunRequest
	for _, kind := range kinds {
		model, gate, agents := heldFamily(t)
		roots = append(roots, agents)
		runs = append(runs, damagedRun{kind: kind, id: client.NewID(), gate: gate})
		requests = append(requests, client.RunRequest{RunID: runs[len(runs)-1].id, Model: model, Agents: agents, Agent: "boss"})
	}
	open := func(c *Config) { c.Roots = roots }
	h := startNode(t, state, open)
	c := connectClient(t, h)
	for _, r := range requests {
		beginRun(t, c, r)
	}
	for _, r := range runs {
		awaitEvents(t, c, r.id, event.KindToolStarted, 2)
	}
	restart := func(change ...func(*Config)) {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		h = startNode(t, state, append(change, open)...)
	}
	if mode != live {
		restart()
		for _, r := range runs {
			if left := programLines(t, r.gate); len(left) > 0 {
				t.Errorf("%s: programs outlive their node: %q", r.kind.name, left)
			}
		}
	}
	for _, r := range runs {
		r.kind.do(t, h, r.id)
	}
	if mode == "resumed" {
		restart(func(c *Config) { c.ResumeAll = true })
	}
	return h, runs
}

// checkBounded checks that an answer came within answerMax.
func checkBounded(t *testing.T, verb string, do func() error) error {
	t.Helper()
	began := time.Now()
	err := do()
	if took := time.Since(began); took > answerMax {
		t.Errorf("%s was answered after %v: %v", verb, took, err)
	}
	return err
}

// deleteDamagedRun deletes a run, asking again while its agents stop.
func deleteDamagedRun(t *testing.T, c *client.Client, run string) {
	t.Helper()
	waitUntil(t, "the run is deleted", func() bool {
		err := checkBounded(t, "delete", func() error {
			_, err := c.Delete(testContext(t), run)
			return err
		})
		refused := (*client.Error)(nil)
		if errors.As(err, &refused) && refused.Code == client.CodeUnavailable {
			return false
		}
		if err != nil && !(errors.As(err, &refused) && refused.Code == client.CodeNotFound) {
			t.Fatalf("delete: %v", err)
		}
		return true
	})
}

// checkNothingLeft checks that a deleted run has no entry but tombstones, no row and no program.
func checkNothingLeft(t *testing.T, h *Node, r damagedRun) {
	t.Helper()
	for at, kinds := range logKinds(t, h, r.id) {
		if kinds[0] != "closed" {
			t.Errorf("%s: of %s there is left %v", r.kind.name, at, kinds)
		}
	}
	if row, ok, err := h.runs.Get(testContext(t), r.id); err != nil || ok {
		t.Errorf("%s: the index has %+v, %v", r.kind.name, row, err)
	}
	if left := programLines(t, r.gate); len(left) > r.kind.outlives {
		t.Errorf("%s: programs of its tools run on: %q", r.kind.name, left)
	}
}

// TestAttackDamagedRunsCanBeEnded: whatever is damaged of a run, cancel with now stops
// its agents and ends it within a bounded time, and then it can be deleted.
// `make damage` tries all kinds of damage in all modes, `go test` one sample.
//
//behaviour:shows B5
func TestAttackDamagedRunsCanBeEnded(t *testing.T) {
	t.Parallel()
	chosen, again := chosenDamage(t)
	t.Logf("this sample again: -host.damage=%s", again)
	for i, mode := range damageModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			noLeaks(t)
			h, runs := damagedHost(t, mode, chosen[i])
			c := connectClient(t, h)
			t.Run("runs", func(t *testing.T) {
				for _, r := range runs {
					t.Run(r.kind.name, func(t *testing.T) {
						t.Parallel()
						cancelDamagedRun(t, h, c, r)
						deleteDamagedRun(t, c, r.id)
						checkNothingLeft(t, h, r)
					})
				}
			})
			if list, err := c.List(testContext(t)); err != nil || len(list) > 0 {
				t.Errorf("after all were deleted the list has %+v, %v", list, err)
			}
		})
	}
}

// cancelDamagedRun cancels a run and checks that it is reported as ended, and that the
// report is true.
func cancelDamagedRun(t *testing.T, h *Node, c *client.Client, r damagedRun) {
	t.Helper()
	began := time.Now()
	err := checkBounded(t, "cancel", func() error {
		reply, err := c.Cancel(testContext(t), client.CancelRequest{RunID: r.id, Now: true})
		t.Logf("after %v: %+v %v", time.Since(began).Round(time.Millisecond), reply, err)
		if err == nil && reply.Text == "" {
			t.Error("the acknowledgement says nothing")
		}
		return err
	})
	if err != nil {
		t.Errorf("cancel: %v", err)
		return
	}
	for end := time.Now().Add(answerMax); ; {
		info, err := c.Get(testContext(t), r.id)
		ended, late := err == nil && info.State == client.RunFinished && info.Result != nil, time.Now().After(end)
		if ended || late {
			running := programsOf(t, r.gate)
			if ended && running <= r.kind.outlives {
				t.Logf("ended after %v: %s %s", time.Since(began).Round(time.Millisecond), info.Result.Reason, info.Result.Detail)
				return
			}
			if late {
				t.Errorf("after the cancel: get %s %v, %d programs", info.State, err, running)
				return
			}
		}
		select {
		case <-time.After(pause):
		case <-t.Context().Done():
			return
		}
	}
}
