package dispatcher

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// A mailbox does not wait for a worker that is blocked, although no further one is scheduled.
func TestAnotherWorkerRunsWhatWaitsForABlockedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(t.Context())
		block, ran := make(chan struct{}), make(chan int, 2)
		p.Schedule(func() {
			p.Schedule(func() { ran <- 1; <-block })
			p.Schedule(func() { ran <- 2 })
			<-block
		})
		if got := []int{<-ran, <-ran}; !slices.Equal(got, []int{1, 2}) {
			t.Error(got)
		}
		close(block)
	})
}

// A mailbox that a running one wakes waits for the same worker.
func TestARunningWorkerRunsWhatItSchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(t.Context())
		done := make(chan int)
		p.Schedule(func() {
			p.Schedule(func() { p.mu.Lock(); defer p.mu.Unlock(); done <- p.running })
		})
		if n := <-done; n != 1 {
			t.Errorf("%d workers run", n)
		}
	})
}

func TestEveryMailboxRunsOnce(t *testing.T) {
	p := New(t.Context())
	const many, each = 200, 50
	var all sync.WaitGroup
	var counts [many]int
	all.Add(many * each)
	for i := range many {
		var next func()
		next = func() {
			if counts[i]++; counts[i] < each {
				p.Schedule(next)
			}
			all.Done()
		}
		go p.Schedule(next)
	}
	all.Wait()
	for i, n := range counts {
		if n != each {
			t.Errorf("mailbox %d ran %d times", i, n)
		}
	}
}

func TestWorkersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := New(ctx)
		p.Schedule(func() { cancel() })
		synctest.Wait() // the bubble ends only if all workers have ended
		p.Schedule(func() { t.Error("ran after the end") })
		synctest.Wait()
	})
}

func TestQueueKeepsOrder(t *testing.T) {
	var q runQueue
	var got []int
	next, popped := 0, 0
	for round := range 200 {
		for range round % 7 {
			i := next
			q.push(func() { got = append(got, i) })
			next++
		}
		for range round % 6 {
			if run, ok := q.pop(); ok {
				run()
				popped++
			}
		}
		if q.len() != next-popped {
			t.Fatalf("round %d: %d wait, not %d", round, q.len(), next-popped)
		}
	}
	if !slices.IsSorted(got) || len(got) != popped || cap(q.all) > 4*(next-popped)+16 {
		t.Errorf("%d of %d in a queue of %d: %v", len(got), next, cap(q.all), got)
	}
}
