package boxtest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/troupe-run/troupe/mailbox"
)

// orderPerAddress checks that an append made after another's done follows it in the log,
// however many other actors append elsewhere.
func orderPerAddress(t *testing.T, p mailbox.Post) {
	const writers, each = 16, 50
	c, _ := collectTail(t, p)
	var all sync.WaitGroup
	for w := range writers {
		to := mailbox.At("run", fmt.Sprintf("a%d", w))
		all.Add(1)
		var next func(i int)
		next = func(i int) {
			calls := 0
			p.Append(t.Context(), to, []byte(fmt.Sprint(i)), func(place uint64, err error) {
				if calls++; calls > 1 || err != nil {
					t.Errorf("done: call %d, %v", calls, err)
				}
				if i+1 < each && err == nil {
					go next(i + 1)
					return
				}
				all.Done()
			})
		}
		next(0)
	}
	all.Wait()
	c.awaitCount(t, writers*each)
	var want []string
	for i := range each {
		want = append(want, fmt.Sprint(i))
	}
	for w := range writers {
		at := mailbox.At("run", fmt.Sprintf("a%d", w))
		got := readEntries(t, p, at, 0, 0)
		if !slices.Equal(entryTexts(got), want) {
			t.Errorf("%s: %v", at, entryTexts(got))
		}
		compareMessages(t, c.messagesOf(at), got)
	}
}

func tailSeesAll(t *testing.T, p mailbox.Post) {
	putEntry(t, p, "run.a", "before")
	putEntry(t, p, "run.b", "before")
	c, _ := collectTail(t, p)
	const n = 300
	for i := range n {
		putEntry(t, p, mailbox.At("run", string(rune('a'+i%7))), fmt.Sprint(i))
	}
	c.awaitCount(t, n)
	for i := range 7 {
		at := mailbox.At("run", string(rune('a'+i)))
		stored := readEntries(t, p, at, 0, 0)
		if i < 2 {
			stored = stored[1:]
		}
		compareMessages(t, c.messagesOf(at), stored)
	}
}

// tailStartsAtOnce checks that a tail delivers what is appended right after Tail returned,
// and delivers nothing twice, also while appends are in flight.
func tailStartsAtOnce(t *testing.T, p mailbox.Post) {
	for i := range 20 {
		to := mailbox.At("run", fmt.Sprintf("a%d", i))
		putEntry(t, p, to, "before")
		c, stop := collectTail(t, p)
		place := putEntry(t, p, to, "after")
		c.awaitCount(t, 1)
		if got := c.messagesOf(to); got[0].Place != place {
			t.Fatalf("round %d: got %v, want place %d", i, got, place)
		}
		stop()
	}
}

func twoTails(t *testing.T, p mailbox.Post) {
	one, stop := collectTail(t, p)
	putEntry(t, p, "run.a", "1")
	two, _ := collectTail(t, p)
	putEntry(t, p, "run.a", "2")
	one.awaitCount(t, 2)
	two.awaitCount(t, 1)
	stop()
	putEntry(t, p, "run.a", "3")
	two.awaitCount(t, 2)
	if got := entryTexts(one.messagesOf("run.a")); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("one: %v", got)
	}
	if got := entryTexts(two.messagesOf("run.a")); !slices.Equal(got, []string{"2", "3"}) {
		t.Errorf("two: %v", got)
	}
}

// appendFromDeliver checks a chain of appends, each made by the delivery of the one before.
func appendFromDeliver(t *testing.T, p mailbox.Post) {
	const hops = 200
	var acks sync.WaitGroup // a delivery may be faster than the acknowledgement
	c := &tailCollector{by: map[mailbox.Address][]mailbox.Message{}}
	c.some = sync.NewCond(&c.mu)
	stop, err := p.Tail(t.Context(), func(m mailbox.Message) {
		c.recordMessage(m)
		if n := len(m.Data); n < hops {
			to := mailbox.At("run", fmt.Sprintf("a%d", n%5))
			acks.Add(1)
			p.Append(t.Context(), to, append(slices.Clone(m.Data), 'x'), func(_ uint64, err error) {
				defer acks.Done()
				if err != nil {
					t.Error(err)
				}
			})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	putEntry(t, p, "run.a", "x")
	c.awaitCount(t, hops)
	acks.Wait()
}

func stopEnds(t *testing.T, p mailbox.Post) {
	c, stop := collectTail(t, p)
	putEntry(t, p, "run.a", "1")
	c.awaitCount(t, 1)
	stop()
	putEntry(t, p, "run.a", "2")
	d, _ := collectTail(t, p)
	putEntry(t, p, "run.a", "3")
	d.awaitCount(t, 1)
	c.awaitCount(t, 1)
}

func manyAddresses(t *testing.T, p mailbox.Post) {
	const many, each = 2000, 3
	c, _ := collectTail(t, p)
	var all sync.WaitGroup
	var mu sync.Mutex
	places := map[mailbox.Address]map[uint64]bool{}
	for i := range many * each {
		to := mailbox.At(fmt.Sprintf("r%d", i%10), fmt.Sprintf("a%d", i%many))
		all.Add(1)
		p.Append(t.Context(), to, fmt.Appendf(nil, "%d", i), func(place uint64, err error) {
			defer all.Done()
			mu.Lock()
			defer mu.Unlock()
			if places[to] == nil {
				places[to] = map[uint64]bool{}
			}
			if err != nil || places[to][place] {
				t.Errorf("%s: place %d twice, or %v", to, place, err)
			}
			places[to][place] = true
		})
	}
	all.Wait()
	c.awaitCount(t, many*each)
	got, err := p.Addresses(context60(t), "")
	if err != nil || len(got) != many {
		t.Fatalf("%d addresses, %v", len(got), err)
	}
	for at, want := range places {
		tail := c.messagesOf(at)
		for i, m := range tail {
			if !want[m.Place] || i > 0 && m.Place <= tail[i-1].Place {
				t.Fatalf("%s: %v", at, tail)
			}
		}
		if len(tail) != each {
			t.Fatalf("%s: %d of %d", at, len(tail), each)
		}
	}
	for i := range 100 {
		at := mailbox.At(fmt.Sprintf("r%d", i%10), fmt.Sprintf("a%d", i))
		compareMessages(t, c.messagesOf(at), readEntries(t, p, at, 0, 0))
	}
}

// unknownBytes checks that a Post carries any bytes; only the reader interprets them.
func unknownBytes(t *testing.T, p mailbox.Post) {
	c, _ := collectTail(t, p)
	want := []string{"", "\x00", "\xdd\xff\xff\xff\xff", "NATS/1.0 100 Idle Heartbeat\r\n\r\n", "{}"}
	for _, data := range want {
		putEntry(t, p, "run.a", data)
	}
	c.awaitCount(t, len(want))
	got := readEntries(t, p, "run.a", 0, 0)
	if !slices.Equal(entryTexts(got), want) {
		t.Errorf("%q", entryTexts(got))
	}
	compareMessages(t, c.messagesOf("run.a"), got)
}
