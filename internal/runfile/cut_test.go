package runfile_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
)

// readRecorded reads the recorded runs that have more than one agent or many turns.
func readRecorded(t *testing.T) map[string]runfile.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "replay", "testdata", "runs", "*", "*.jsonl"))
	if err != nil || len(paths) < 18 {
		t.Fatalf("%d recorded runs, %v", len(paths), err)
	}
	runs := map[string]runfile.File{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if runs[filepath.Base(path)], err = runfile.Read(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	return runs
}

// readWhileLive reads the logs as a client reads those of a live run: one after the other, each as it is after
// a number of the entries of the whole run.
func readWhileLive(run []mailbox.Message, when map[mailbox.Address]int) (read []mailbox.Message) {
	for i, m := range run {
		if i < when[m.To] {
			read = append(read, m)
		}
	}
	return read
}

// readTwice is two such reads, at random moments.
func readTwice(run []mailbox.Message, r *rand.Rand) (first, again []mailbox.Message) {
	var logs []mailbox.Address
	for _, m := range run {
		if !slices.Contains(logs, m.To) {
			logs = append(logs, m.To)
		}
	}
	moments := make([]int, 2*len(logs))
	for i := range moments {
		moments[i] = r.IntN(len(run) + 1)
	}
	slices.Sort(moments)
	order := slices.Concat(r.Perm(len(logs)), r.Perm(len(logs)))
	when := [2]map[mailbox.Address]int{{}, {}}
	for i, moment := range moments {
		when[i/len(logs)][logs[order[i]]] = moment
	}
	return readWhileLive(run, when[0]), readWhileLive(run, when[1])
}

// inconsistent says why logs are not a state that the run could have been in; "": they are.
func inconsistent(logs []mailbox.Message) string {
	if len(logs) == 0 {
		return ""
	}
	var broken []string
	for _, f := range verify.Logs(logs).Findings {
		broken = append(broken, f.String())
	}
	r := replay.Logs(logs, replay.Options{})
	if r.Unchecked > 0 || r.ReadErr != nil {
		broken = append(broken, fmt.Sprintf("replay: %d messages without a cause, %v", r.Unchecked, r.ReadErr))
	}
	return strings.Join(broken, "; ")
}

// TestCutIsAStateOfTheRun: whenever the logs of a live run are read, the cut is a state that the run could have
// been in; without the cut, many reads are none. A cut of a run that does not move is the whole run.
//
//behaviour:shows F5
func TestCutIsAStateOfTheRun(t *testing.T) {
	t.Parallel()
	const reads = 200
	uncut, shorter := 0, 0
	for name, f := range readRecorded(t) {
		run := slices.Clone(f.Entries)
		slices.SortStableFunc(run, func(a, b mailbox.Message) int { return a.Stamp().Compare(b.Stamp()) })
		if kept := runfile.Cut(f.Entries, f.Entries); len(kept) != len(f.Entries) {
			t.Errorf("%s: the cut of a run that is over has %d of %d entries", name, len(kept), len(f.Entries))
		}
		for seed := range uint64(reads) {
			first, again := readTwice(run, rand.New(rand.NewPCG(seed, 1)))
			kept := runfile.Cut(first, again)
			if why := inconsistent(kept); why != "" {
				t.Fatalf("%s, seed %d: %s", name, seed, why)
			}
			if len(kept) < len(first) {
				shorter++
			}
			if inconsistent(first) != "" {
				uncut++
			}
		}
	}
	if uncut < reads || shorter < uncut {
		t.Errorf("%d reads are no state of a run, %d were cut: the test shows nothing", uncut, shorter)
	}
}

// entryOf is a stored entry.
func entryOf(t *testing.T, to mailbox.Address, place uint64, e mailbox.Entry) mailbox.Message {
	t.Helper()
	e.Form = mailbox.Form
	for i := range e.Items {
		e.Items[i].Kind, e.Items[i].Body = "x", []byte{0x80}
	}
	data, err := mailbox.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return mailbox.Message{To: to, Place: place, At: int64(place), Data: data}
}

// TestCutLosesNoMessage: an actor that has recorded the acknowledgement of a message would not send it again. So
// the cut has no such record if the receiver's log in it lacks the message.
//
//behaviour:shows F5
func TestCutLosesNoMessage(t *testing.T) {
	t.Parallel()
	own := func(floor uint64, ids ...string) mailbox.Entry {
		return mailbox.Entry{From: "r.a", Start: "s", Floor: floor, Items: []mailbox.Item{{ID: ids[0]}}}
	}
	asked := entryOf(t, "r.a", 1, mailbox.Entry{Items: []mailbox.Item{{ID: "q"}}})
	acked := entryOf(t, "r.a", 3, own(1, "o1"))
	more := entryOf(t, "r.a", 4, own(1, "o2"))
	message := entryOf(t, "r.b", 2, mailbox.Entry{From: "r.a", Items: []mailbox.Item{{N: 1, I: 0}}})
	again := entryOf(t, "r.b", 5, mailbox.Entry{From: "r.a", Items: []mailbox.Item{{N: 1, I: 0}}})
	late := entryOf(t, "r.b", 6, mailbox.Entry{From: "r.a", Items: []mailbox.Item{{N: 9, I: 0}}})
	all := []mailbox.Message{asked, acked, more, message}
	for _, c := range []struct {
		name        string
		first, last []mailbox.Message
		want        []uint64
	}{
		{"nothing moves", all, all, []uint64{1, 3, 4, 2}},
		{"the receiver was read before the message came", []mailbox.Message{asked, acked, more}, all, []uint64{1}},
		{"the sender was read before its message was acknowledged", []mailbox.Message{asked}, all, []uint64{1}},
		{"a message without its cause", []mailbox.Message{message}, all, nil},
		{"a message that was sent again", all, append(slices.Clone(all), again), []uint64{1, 3, 4, 2}},
		{"the sender has lost its end", append(slices.Clone(all), late), append(slices.Clone(all), late), []uint64{1, 3, 4, 2, 6}},
	} {
		var places []uint64
		for _, m := range runfile.Cut(c.first, c.last) {
			places = append(places, m.Place)
		}
		if !slices.Equal(places, c.want) {
			t.Errorf("%s: %v, want %v", c.name, places, c.want)
		}
	}
}

// TestRedactedFileHasNoContent: no text of a run is in its redacted file, and the file is whole.
//
//behaviour:shows F5
func TestRedactedFileHasNoContent(t *testing.T) {
	t.Parallel()
	secret := "the launch code is 4711"
	for name, f := range readRecorded(t) {
		f.Blobs = map[string][]byte{mailbox.BlobRef([]byte(secret)): []byte(secret)}
		f.Entries = append(slices.Clone(f.Entries), mailbox.Message{To: f.Entries[0].To, Place: 1 << 40, At: 1, Data: []byte(secret)})
		redacted, err := runfile.Redact(f)
		if err != nil {
			t.Fatal(err)
		}
		got, err := runfile.Read(strings.NewReader(write(t, redacted)))
		if err != nil || !got.Header.Redacted || got.Header.Dump || len(got.Blobs) > 0 || len(got.Entries) != len(f.Entries) {
			t.Fatalf("%s: %v, %+v", name, err, got.Header)
		}
		for i, m := range got.Entries {
			before, err := mailbox.Decode(f.Entries[i].Data)
			after, afterErr := mailbox.Decode(m.Data)
			if afterErr != nil || err == nil && (after.From != before.From || len(after.Items) != len(before.Items)) || len(after.Hash) > 0 {
				t.Fatalf("%s: entry %d: %v %+v", name, i, afterErr, after)
			}
			for k, item := range after.Items {
				if item.ID != "" || string(item.Body) != "\x80" || item.Kind != before.Items[k].Kind || item.N != before.Items[k].N {
					t.Fatalf("%s: entry %d has %+v", name, i, item)
				}
			}
			if bytes.Contains(m.Data, []byte("launch")) {
				t.Errorf("%s: entry %d holds the secret", name, i)
			}
		}
	}
}
