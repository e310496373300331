package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// sample holds the figures of one measurement.
type sample map[figure]float64

// patience is how long one measurement may take.
const patience = 20 * time.Minute

// measure runs one workload in one column, in this process.
func measure(w workload, c column, s setup, least time.Duration, p *profiler) (result sample, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch w.shape {
	case allWaiting:
		return measureWaiting(ctx, c, s, p)
	case allFinished:
		return measureFinished(ctx, c, s)
	case allParked:
		return measureParked(ctx, c, s, p)
	}
	base, err := readStatus("VmRSS") // the program links all columns
	if err != nil {
		return nil, err
	}
	r, err := c.open(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := warmUp(ctx, w, r); err != nil {
		return nil, err
	}
	if err := p.begin(); err != nil {
		return nil, err
	}
	before, batches := readUsage(), 0
	for batches == 0 || batches < w.batches || time.Since(before.at) < least {
		if err := runBatch(ctx, r, w.agents); err != nil {
			return nil, err
		}
		batches++
	}
	after := readUsage()
	if err := p.end(); err != nil {
		return nil, err
	}
	peak, err := readStatus("VmHWM")
	if err != nil {
		return nil, err
	}
	result = before.until(after, float64(batches), float64(batches*w.agents*w.turns))
	result[addedRSS] = float64(peak-base) / (1 << 20)
	return result, nil
}

// warmUpAgents is how many agents run before a measurement of many begins.
const warmUpAgents = 50

func warmUp(ctx context.Context, w workload, r runner) error {
	if err := runBatch(ctx, r, min(w.agents, warmUpAgents)); err != nil {
		return err
	}
	runtime.GC()
	return nil
}

// runBatch runs agents at the same time.
func runBatch(ctx context.Context, r runner, agents int) error {
	if agents == 1 {
		return r.run(ctx)
	}
	var all sync.WaitGroup
	failures := make(chan error, agents)
	for range agents {
		all.Go(func() {
			if err := r.run(ctx); err != nil {
				failures <- err
			}
		})
	}
	all.Wait()
	select {
	case err := <-failures:
		return fmt.Errorf("one of %d failed agents: %w", len(failures)+1, err)
	default:
		return nil
	}
}

// usage is what the process has used so far.
type usage struct {
	at            time.Time
	cpu           time.Duration
	allocs, bytes uint64
}

func readUsage() usage {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // the call has no other argument that could be wrong
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{at: time.Now(), cpu: time.Duration(r.Utime.Nano() + r.Stime.Nano()), allocs: m.Mallocs, bytes: m.TotalAlloc}
}

// until returns all figures that follow from two readings.
func (u usage) until(v usage, batches, turns float64) sample {
	wall, cpu := v.at.Sub(u.at), v.cpu-u.cpu
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	return sample{
		wallPerTurn: micros(wall) / turns, cpuPerTurn: micros(cpu) / turns,
		wallPerChild: micros(wall) / turns, cpuPerChild: micros(cpu) / turns,
		allocsPerTurn: float64(v.allocs-u.allocs) / turns, bytesPerTurn: float64(v.bytes-u.bytes) / turns,
		allocsPerChild: float64(v.allocs-u.allocs) / turns,
		wallTotal:      micros(wall) / 1e3 / batches, cpuTotal: micros(cpu) / 1e3 / batches,
		turnsPerSecond: turns / wall.Seconds(),
	}
}

// errStatus: the kernel does not report the memory of the process.
var errStatus = errors.New("bench: /proc/self/status has no such line")

// readStatus reads a size from /proc/self/status, in bytes.
func readStatus(name string) (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("bench: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("bench: %s: %w", name, err)
		}
		return kilobytes << 10, nil
	}
	return 0, fmt.Errorf("%w: %s", errStatus, name)
}

// startsAtOnce is how many agents may have begun and not have called their model.
const startsAtOnce = 32

// measureWaiting starts agents whose model never answers, and reads the memory of all. It does
// not close the column: the process ends with it.
func measureWaiting(ctx context.Context, c column, s setup, p *profiler) (sample, error) {
	var waiting atomic.Int64
	called := make(chan struct{}, s.agents)
	s.waiting = func() {
		waiting.Add(1)
		called <- struct{}{}
	}
	r, err := c.open(ctx, s)
	if err != nil {
		return nil, err
	}
	before, err := readMemory()
	if err != nil {
		return nil, err
	}
	failures := make(chan error, s.agents)
	for i := range s.agents {
		go func() { failures <- r.run(ctx) }()
		if i >= startsAtOnce {
			if err := awaitCall(called, failures); err != nil {
				return nil, err
			}
		}
	}
	for waiting.Load() < int64(s.agents) {
		if err := awaitCall(called, failures); err != nil {
			return nil, err
		}
	}
	after, err := readMemory()
	if err != nil {
		return nil, err
	}
	if err := p.heap(); err != nil {
		return nil, err
	}
	each := float64(s.agents) * 1024
	return sample{heapPerAgent: float64(after.heap-before.heap) / each, rssPerAgent: float64(after.rss-before.rss) / each}, nil
}

func awaitCall(called <-chan struct{}, failures <-chan error) error {
	select {
	case <-called:
		return nil
	case err := <-failures:
		return fmt.Errorf("an agent did not wait: %w", err)
	}
}

// memoryUse is the memory of the process after a collection.
type memoryUse struct{ heap, rss int64 }

func readMemory() (memoryUse, error) {
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	rss, err := readStatus("VmRSS")
	return memoryUse{heap: int64(m.HeapAlloc + m.StackInuse), rss: rss}, err
}
