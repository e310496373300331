package troupe_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/model"
)

// silentModel never answers: the run of each call stays live.
type silentModel struct {
	asked atomic.Int64
	all   int64
	full  chan struct{}
}

func (m *silentModel) Complete(ctx context.Context, _ model.Request, _ func(model.Delta)) (model.Reply, error) {
	if m.asked.Add(1) == m.all {
		close(m.full)
	}
	<-ctx.Done()
	return model.Reply{}, ctx.Err()
}

// startsAtOnce is how many runs may be asked for, and not have come to their model.
const startsAtOnce = 32

// BenchmarkLiveRuns is the memory of runs that wait for a model: KB of the heap, and of
// all that the process has from the system, for each. Run it with -benchtime 2000x.
func BenchmarkLiveRuns(b *testing.B) {
	m := &silentModel{all: int64(b.N), full: make(chan struct{})}
	n, err := troupe.Start(context.Background(), troupe.Config{Agents: []troupe.Agent{{Name: "a", Description: "Waits."}}, MaxLiveRuns: b.N,
		Models: map[string]model.Client{"own/silent": m}, Model: "own/silent"})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := n.Close(); err != nil {
			b.Error(err)
		}
	}()
	heap, system := memoryUse()
	ctx, cancel := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for i := range b.N {
		callers.Go(func() {
			_, _ = n.Run(ctx, troupe.Task{Prompt: "wait"}) // it is canceled at the end
		})
		for m.asked.Load() < int64(i-startsAtOnce) {
			<-time.After(time.Millisecond)
		}
	}
	<-m.full
	heapNow, systemNow := memoryUse()
	cancel()
	callers.Wait()
	b.ReportMetric(float64(heapNow-heap)/float64(b.N)/1024, "heap-KB/run")
	b.ReportMetric(float64(systemNow-system)/float64(b.N)/1024, "sys-KB/run")
}

func memoryUse() (heap, system uint64) {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapInuse + s.StackInuse, s.Sys - s.HeapReleased
}
