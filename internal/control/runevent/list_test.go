package runevent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// listOf makes a list of the events of some logs, which is filled in some steps as logs grow, and packed with a limit
// after the last one.
func listOf(t *testing.T, seed uint64, logs, entries, steps, bytesMax int) (l *list, ids []string, dropped bool) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
	l = &list{}
	for i := range logs {
		l.names = append(l.names, fmt.Sprintf("r.root-1-%d", i))
	}
	next := make([]uint64, logs)
	for step := range steps {
		var batch []pastEvent
		for range entries {
			log := uint32(random.IntN(logs)) //nolint:gosec // few
			next[log]++
			for i := range 1 + random.IntN(3) {
				id := fmt.Sprintf("%s#%d.%d", l.names[log], next[log], i)
				ids = append(ids, id)
				raw, err := json.Marshal(map[string]string{"id": id, "text": strings.Repeat("word ", random.IntN(400))})
				if err != nil {
					t.Fatal(err)
				}
				batch = append(batch, pastEvent{mark{log, uint32(len(raw)), next[log]}, int64(step*100 + int(next[log])), raw}) //nolint:gosec // small
			}
		}
		l.add(batch)
		most := math.MaxInt
		if step == steps-1 {
			most = bytesMax
		}
		var err error
		if dropped, err = l.pack(most); err != nil {
			t.Fatal(err)
		}
	}
	return l, ids, dropped
}

// readPages reads the pages after a cursor as a client does.
func readPages(t *testing.T, l *list, from client.Cursor) (ids []string, last client.Cursor) {
	t.Helper()
	last = client.Cursor{}
	for at, n := range from {
		last[at] = n
	}
	for more := true; more; {
		page, err := l.page(last)
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, raw := range page.Events {
			var e struct{ ID string }
			if err := json.Unmarshal(raw, &e); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, e.ID)
			size += len(raw)
		}
		if size > pageBytes+8<<10 {
			t.Errorf("a page of %d bytes", size)
		}
		for at, n := range page.Cursor {
			last[at] = n
		}
		more = page.More
	}
	return ids, last
}

func placeOfID(t *testing.T, id string) (at string, n, i uint64) {
	t.Helper()
	at, rest, _ := strings.Cut(id, "#")
	if _, err := fmt.Sscanf(rest, "%d.%d", &n, &i); err != nil {
		t.Fatal(id, err)
	}
	return at, n, i
}

// checkOrder checks that the events of each log are in order, without any twice.
func checkOrder(t *testing.T, ids []string) {
	t.Helper()
	last := map[string][2]uint64{}
	for _, id := range ids {
		at, n, i := placeOfID(t, id)
		if was := last[at]; cmp.Or(cmp.Compare(n, was[0]), cmp.Compare(i, was[1])) <= 0 && was != [2]uint64{} {
			t.Fatalf("%s comes after %v", id, was)
		}
		last[at] = [2]uint64{n, i}
	}
}

// Pages have each event after their cursor once, from any cursor on, however the list has grown.
func TestPagesOfAListHaveEachEventOnce(t *testing.T) {
	for seed := range uint64(8) {
		l, want, _ := listOf(t, seed, 1+int(seed)*5, 400, 1+int(seed)%4, math.MaxInt)
		got, _ := readPages(t, l, nil)
		checkOrder(t, got)
		slices.Sort(want)
		if sorted := slices.Sorted(slices.Values(got)); !slices.Equal(sorted, want) {
			t.Fatalf("seed %d: %d events, want %d", seed, len(got), len(want))
		}
		if len(l.blocks) < 2 || l.packed >= 256<<10*len(l.blocks) {
			t.Errorf("seed %d: %d blocks of %d bytes", seed, len(l.blocks), l.packed)
		}
		from := client.Cursor{}
		for _, id := range got[:len(got)/2] {
			at, n, _ := placeOfID(t, id)
			from[at] = n
		}
		rest, _ := readPages(t, l, from)
		checkOrder(t, rest)
		for _, id := range want {
			at, n, _ := placeOfID(t, id)
			if slices.Contains(rest, id) != (n > from[at]) {
				t.Fatalf("seed %d: %s is wrong after the cursor", seed, id)
			}
		}
	}
}

// Of events beyond its limit a list keeps the oldest, up to the end of an entry; a list that grows drops its oldest and
// says after which cursor it has all.
func TestListKeepsToItsLimit(t *testing.T) {
	l, all, dropped := listOf(t, 1, 5, 4000, 1, 64<<10)
	got, last := readPages(t, l, nil)
	checkOrder(t, got)
	if !dropped || len(got) == 0 || len(got) >= len(all) || l.bytes() > 128<<10 {
		t.Fatalf("dropped %t: %d of %d events in %d bytes", dropped, len(got), len(all), l.bytes())
	}
	for _, id := range all {
		if at, n, _ := placeOfID(t, id); slices.Contains(got, id) != (n <= last[at]) {
			t.Fatalf("%s is wrong before the cursor after the list", id)
		}
	}

	l, all, _ = listOf(t, 2, 5, 2000, 2, math.MaxInt)
	floor := client.Cursor{}
	for len(l.blocks) > 1 {
		l.dropOldest(floor)
	}
	got, _ = readPages(t, l, floor)
	checkOrder(t, got)
	for _, id := range all {
		if at, n, _ := placeOfID(t, id); n > floor[at] && !slices.Contains(got, id) {
			t.Fatalf("%s is after the cursor and is missing", id)
		}
	}
}
