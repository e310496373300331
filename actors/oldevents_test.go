package actors_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/test/golden"
	"github.com/troupe-run/troupe/mailbox"
)

// TestOldEvents compares the events of every recorded log with NAME.events beside
// it: one line of JSON for each event as observers get it, in the order of the log,
// of the supervisor and of all agents. NAME.want has the same events by id, kind,
// turn and a hash of their data; here the data can be read.
//
// Whatever makes the events of a step must make these: two ways are the same if
// each passes this test and TestEventsOfSeeds of test/sim.
func TestOldEvents(t *testing.T) {
	logs, err := filepath.Glob(filepath.Join(mailboxes, "*", "*.log"))
	if err != nil || len(logs) < len(recordings) {
		t.Fatalf("%d recorded runs, %v", len(logs), err)
	}
	for _, path := range logs {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, strings.TrimSuffix(path, ".log")+".events", eventsOf(t, data))
	}
}

// eventsOf reads recorded logs as an observer does and returns the events.
func eventsOf(t *testing.T, data []byte) string {
	t.Helper()
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	readers := map[mailbox.Address]*activation.LogReader{}
	scan := bufio.NewScanner(bytes.NewReader(data))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var e recordedLine
		if err := json.Unmarshal(scan.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		l := readers[e.At]
		if l == nil {
			l = activation.NewLogReader(e.At, "", mailbox.Epoch{}, newTaped(e.At, &strings.Builder{}).Machine)
			readers[e.At] = l
		}
		r := l.Next(mailbox.Message{To: e.At, At: e.Stamp, Place: l.N + 1, Data: e.Data})
		for _, event := range activation.EventsOf(e.At, "", "", r.N, l.At, r.Events) {
			if err := out.Encode(event); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
