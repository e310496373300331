package replay_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// readRuns reads the recorded runs of every version.
func readRuns(t testing.TB) map[string]runfile.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "runs", "*", "*.jsonl"))
	if err != nil || len(paths) < 18 {
		t.Fatalf("%d recorded runs, %v", len(paths), err)
	}
	runs := map[string]runfile.File{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if runs[path], err = runfile.Read(bytes.NewReader(data)); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return runs
}

// TestRecordedRuns: this version decides what every recorded run records, and comes to its result.
//
//behaviour:shows J2
func TestRecordedRuns(t *testing.T) {
	t.Parallel()
	for path, f := range readRuns(t) {
		r := replay.Logs(f.Entries, replay.Options{})
		if err := r.Err(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if d := r.CompareResult(f.Header.Result); d != nil {
			t.Errorf("%s: %v", path, d)
		}
		if d := r.CompareState(f.Header.State); d != nil {
			t.Errorf("%s: %v", path, d)
		}
		if r.Messages == 0 || r.Answers == 0 || r.Unchecked > 0 || r.ReadErr != nil || r.Ended != (f.Header.State == "finished") {
			t.Errorf("%s: %d messages, %d answers, %d unchecked, %v, ended %v", path, r.Messages, r.Answers, r.Unchecked, r.ReadErr, r.Ended)
		}
	}
}

// TestRecordedMailboxes: the same for the logs that package actors has recorded of every form.
func TestRecordedMailboxes(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../actors/testdata/mailboxes/*/*.log")
	if err != nil || len(paths) == 0 {
		t.Fatal(len(paths), err)
	}
	for _, path := range paths {
		r := replay.Logs(readMailbox(t, path), replay.Options{})
		if err := r.Err(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func readMailbox(t *testing.T, path string) (entries []mailbox.Message) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(bytes.NewReader(data))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var line struct {
			At   mailbox.Address `json:"at"`
			MS   int64           `json:"ms"`
			Data []byte          `json:"data"`
		}
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, mailbox.Message{To: line.At, At: line.MS, Place: uint64(len(entries) + 1), Data: line.Data})
	}
	return entries
}

// mutations of the entries of a run, in place i.
var mutations = map[string]func(random *rand.Rand, log []mailbox.Message, i int) []mailbox.Message{
	"a flipped bit": func(random *rand.Rand, log []mailbox.Message, i int) []mailbox.Message {
		data := slices.Clone(log[i].Data)
		data[random.IntN(len(data))] ^= 1 << random.IntN(8)
		log[i].Data = data
		return log
	},
	"a dropped entry": func(_ *rand.Rand, log []mailbox.Message, i int) []mailbox.Message { return slices.Delete(log, i, i+1) },
	"swapped entries": func(_ *rand.Rand, log []mailbox.Message, i int) []mailbox.Message {
		for j := i + 1; j < len(log); j++ {
			if log[j].To == log[i].To {
				log[i].Data, log[j].Data = log[j].Data, log[i].Data
				break
			}
		}
		return log
	},
	"a doubled entry": func(_ *rand.Rand, log []mailbox.Message, i int) []mailbox.Message {
		return slices.Insert(log, i, log[i])
	},
}

// TestMutatedLogs: of 500 changed logs each is refused, or shows a difference, or comes to the recorded end;
// none silently comes to another.
func TestMutatedLogs(t *testing.T) {
	t.Parallel()
	runs := readRuns(t)
	paths := slices.Sorted(func(yield func(string) bool) {
		for path := range runs {
			if !yield(path) {
				return
			}
		}
	})
	kinds := slices.Sorted(func(yield func(string) bool) {
		for kind := range mutations {
			if !yield(kind) {
				return
			}
		}
	})
	random := rand.New(rand.NewPCG(18, 500))
	seen := map[string]int{}
	for n := range 500 {
		kind, path := kinds[n%len(kinds)], paths[random.IntN(len(paths))]
		f := runs[path]
		before := replay.Logs(f.Entries, replay.Options{})
		i := random.IntN(len(f.Entries))
		r := replay.Logs(mutations[kind](random, slices.Clone(f.Entries), i), replay.Options{})
		was, is := endOf(t, before), endOf(t, r)
		switch {
		case r.Err() != nil || r.CompareResult(f.Header.Result) != nil:
			seen[kind+": found"]++
		case r.CompareState(f.Header.State) != nil: // the logs of an earlier moment look like that
			seen[kind+": not the state of the file"]++
		case !bytes.Equal(was, is):
			t.Errorf("%s, %s at %d: it silently comes to\n%.600s\ninstead of\n%.600s", path, kind, i, is, was)
		default:
			seen[kind+": the same end"]++
		}
	}
	t.Log(seen)
}

// endOf is the result of a run. The name of the node of an agent is in one entry of the logs, so that nothing shows its loss
// where the run has not ended: then the file has no result.
func endOf(t *testing.T, r *replay.Run) []byte {
	t.Helper()
	result := r.Result
	if !r.Ended {
		result.Agents = slices.Clone(result.Agents)
		for i := range result.Agents {
			result.Agents[i].Node = ""
		}
	}
	data, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestADifferenceIsShown: a recorded decision that this version would not make is shown with its entry, the
// state before it, and both decisions.
func TestADifferenceIsShown(t *testing.T) {
	t.Parallel()
	f := readRuns(t)[filepath.Join("testdata", "runs", "0.1.0", "completes_within_budget.jsonl")]
	for _, c := range []struct {
		name, kind           string
		change               func(*mailbox.Item)
		recorded, now, state string
	}{
		{"a message", agent.Finish{}.Kind(), func(item *mailbox.Item) {
			item.Body = encode(t, agent.Finish{Outcome: spec.Outcome{Reason: spec.Vetoed}})
		}, "vetoed", "completed", "stopping"},
		{"a result", agent.Returned{}.Kind(), func(item *mailbox.Item) { item.Body = encode(t, agent.Returned{Call: "7-7", Attempt: 1, Text: "x"}) }, "7-7", "no earlier entry asks for call 7-7", "acting"},
		{"a reply", agent.Replied{}.Kind(), func(item *mailbox.Item) {
			item.Body = encode(t, agent.Replied{Reservation: 1, Reply: model.Reply{Message: model.Message{Text: "other"}, Stop: model.StopEnd, UsageKnown: true}})
		}, "settle", "settle", "thinking"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			log := slices.Clone(f.Entries)
			changeFirst(t, log, c.kind, c.change)
			d := replay.Logs(log, replay.Options{}).Difference
			if d == nil {
				t.Fatal("no difference")
			}
			if d.Entry == 0 || !strings.Contains(d.Recorded, c.recorded) || !strings.Contains(d.New, c.now) || !strings.Contains(d.State, c.state) {
				t.Errorf("%+v", d)
			}
		})
	}
}

// changeFirst changes the first item of a kind.
func changeFirst(t *testing.T, log []mailbox.Message, kind string, change func(*mailbox.Item)) {
	t.Helper()
	for i, m := range log {
		e, err := mailbox.Decode(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		for j := range e.Items {
			if e.Items[j].Kind != kind {
				continue
			}
			change(&e.Items[j])
			if log[i].Data, err = mailbox.Encode(e); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no %s", kind)
}

func encode(t testing.TB, body any) []byte {
	t.Helper()
	raw, err := mailbox.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestUnfinishedRun: the logs of a run that is live end at different moments; what was read is compared.
func TestUnfinishedRun(t *testing.T) {
	t.Parallel()
	for path, f := range readRuns(t) {
		for _, part := range []int{3, 2} {
			seen := map[mailbox.Address]int{}
			count := map[mailbox.Address]int{}
			for _, m := range f.Entries {
				count[m.To]++
			}
			log := slices.DeleteFunc(slices.Clone(f.Entries), func(m mailbox.Message) bool {
				seen[m.To]++
				return seen[m.To] > 1+count[m.To]*(part-1)/part
			})
			r := replay.Logs(log, replay.Options{})
			if err := r.Err(); err != nil && !r.Ended {
				t.Errorf("%s cut: %v", path, err)
			}
		}
	}
}
