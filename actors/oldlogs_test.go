package actors_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// Logs of every form that was ever released replay for ever, to the same
// decisions: testdata/mailboxes/FORM holds runs of that form, each with what
// every step of every log made of it. A new form is recorded beside the old ones
//
//	go test ./actors -run TestRecordLogs -record form-1
//
// and nothing is ever recorded over. What is compared leaves out zero values and names
// no Go type or field, so that a new field with a meaning of zero changes nothing, and
// neither does a type that moves to another package or gets another name. A form that was
// released is never removed; one that was not may be removed and recorded again.
var record = flag.String("record", "", "record runs as this form, under testdata/mailboxes")

const mailboxes = "testdata/mailboxes"

// TestRecordLogs records a new form, when it is asked for one.
func TestRecordLogs(t *testing.T) {
	if *record == "" {
		return // TestOldLogs reads what was recorded
	}
	if err := names.CheckToken(*record); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(mailboxes, *record)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatalf("a form is recorded once: %v", err)
	}
	for name, run := range recordings {
		post := run(t)
		var b bytes.Buffer
		addresses, err := post.Addresses(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range addresses {
			err := post.Read(t.Context(), at, 0, 0, func(m mailbox.Message) error {
				return json.NewEncoder(&b).Encode(recordedLine{At: at, Stamp: m.At, Data: m.Data})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name+".log"), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".want"), []byte(replayLogs(t, b.Bytes())), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// recordedLine is one entry of a recorded log.
type recordedLine struct {
	At    mailbox.Address `json:"at"`
	Stamp int64           `json:"ms"`
	Data  []byte          `json:"data"`
}

// TestOldLogs: every step of every recorded log decides what it decided when it
// was recorded, and tells observers the same (P10, FM25).
//
//behaviour:shows F4
func TestOldLogs(t *testing.T) {
	logs, err := filepath.Glob(filepath.Join(mailboxes, "*", "*.log"))
	if err != nil || len(logs) < len(recordings) {
		t.Fatalf("%d recorded runs, %v", len(logs), err)
	}
	for _, path := range logs {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(path, mailboxes+"/"), ".log"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(strings.TrimSuffix(path, ".log") + ".want")
			if err != nil {
				t.Fatal(err)
			}
			got, expected := strings.Split(replayLogs(t, data), "\n"), strings.Split(string(want), "\n")
			for i := range max(len(got), len(expected)) {
				if i >= len(got) || i >= len(expected) || got[i] != expected[i] {
					t.Fatalf("line %d: this program makes of the log\n%s\nwhat was made of it is\n%s\n"+
						"Only a form that no release knows may be removed and recorded again.", i+1, linesAround(got, i), linesAround(expected, i))
				}
			}
		})
	}
}

func linesAround(lines []string, i int) string {
	return strings.Join(lines[min(max(0, i-3), len(lines)):min(i+2, len(lines))], "\n")
}

// replayLogs reads recorded logs as somebody who only watches, and writes down what
// every step decided and what is left at the end.
func replayLogs(t *testing.T, data []byte) string {
	t.Helper()
	var b strings.Builder
	readers := map[mailbox.Address]*activation.LogReader{}
	tapes := map[mailbox.Address]*tapedMachine{}
	var order []mailbox.Address
	scan := bufio.NewScanner(bytes.NewReader(data))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var e recordedLine
		if err := json.Unmarshal(scan.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		l := readers[e.At]
		if l == nil {
			tapes[e.At] = newTaped(e.At, &b)
			l = activation.NewLogReader(e.At, "", mailbox.Epoch{}, tapes[e.At])
			readers[e.At] = l
			order = append(order, e.At)
			fmt.Fprintf(&b, "%s\n", e.At)
		}
		r := l.Next(mailbox.Message{To: e.At, At: e.Stamp, Place: l.N + 1, Data: e.Data})
		if r.Err != nil {
			fmt.Fprintf(&b, "  %d not counted\n", r.N)
		}
		for _, told := range activation.EventsOf(e.At, "", "", r.N, l.At, r.Events) {
			fmt.Fprintf(&b, "  %d * %s %s turn %d %s\n", r.N, told.ID, told.Kind, told.Turn, wireHash(t, told.Data))
		}
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	for _, at := range order {
		fmt.Fprintf(&b, "%s at the end, after %d entries, %s: %s\n", at, readers[at].N, readers[at].Phase, tapes[at].lastState())
	}
	return b.String()
}

// tapedMachine is a machine that writes down what it decides.
type tapedMachine struct {
	activation.Machine
	agent *activation.Agent
	super *activation.Supervisor
	to    *strings.Builder
}

func newTaped(at mailbox.Address, to *strings.Builder) *tapedMachine {
	if at.Agent() == mailbox.Super {
		s := &activation.Supervisor{Addr: at, Watch: true}
		return &tapedMachine{Machine: s, super: s, to: to}
	}
	a := &activation.Agent{Addr: at, Watch: true}
	return &tapedMachine{Machine: a, agent: a, to: to}
}

func (m *tapedMachine) Step(f activation.Fact) activation.Stepped {
	out := m.Machine.Step(f)
	fmt.Fprintf(m.to, "  %d %s %s\n", f.N, f.Kind, f.From)
	for _, l := range out.Messages {
		fmt.Fprintf(m.to, "  %d > %s %s %.8x\n", f.N, l.To, l.Kind, sha256.Sum256(l.Body))
	}
	for _, w := range out.Effects {
		fmt.Fprintf(m.to, "  %d ! %s %s\n", f.N, effectWord(w), digestValue(w))
	}
	return out
}

// lastState is the last state.
func (m *tapedMachine) lastState() string {
	if m.agent != nil {
		s := m.agent.State
		return fmt.Sprintf("%s %s, %d turns, %d messages, state %s", s.Phase, s.Outcome.Reason, s.Turn, len(s.History), digestValue(s))
	}
	s := m.super.State
	var members []supervisor.Member
	s.Members(func(m supervisor.Member) { members = append(members, m) })
	return fmt.Sprintf("%s %s, %d members, state %s", s.Phase, s.Outcome.Reason, len(members), digestValue([]any{s, members, s.Result()}))
}

// TestEveryRecordingHasALog: a new recording is recorded.
func TestEveryRecordingHasALog(t *testing.T) {
	for name := range recordings {
		if logs, err := filepath.Glob(filepath.Join(mailboxes, "*", name+".log")); err != nil || len(logs) == 0 {
			t.Errorf("no run %s was recorded: %v", name, err)
		}
	}
}
