package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
)

const (
	// watchersGrowth is by how many bytes the process of the server may grow because
	// of them.
	watchersGrowth = 512 << 20
	// watchRounds is how many times each crowd is measured, each time next to a measurement without one: so other work
	// of the machine affects both alike. The median of the ratios counts.
	watchRounds = 5
	// harmlessRatio is how much longer runs may take (p99) next to observers that do not keep up, and next to pages.
	// Observers that read all take their own time of the same few processors: readersRatio.
	harmlessRatio = 1.25
	readersRatio  = 2
	// The nodes may take so much more time of processors next to observers of the server, and a copy of an event for
	// one watcher so much of the server's.
	nodesCost = 1.5
	copyCost  = 5 * time.Microsecond
)

// Kinds of crowds.
const (
	crowdNone    = "none"
	crowdStopped = "stopped" // they read nothing
	crowdSlow    = "slow"    // they read a byte a second, and connect again at once when they are disconnected
	crowdReaders = "readers" // they read everything
	crowdPages   = "pages"   // they follow runs over HTTP, as open pages do
)

// measurement holds the figures measured with one kind of crowd.
type measurement struct {
	kind          string
	watchers      int
	took          []time.Duration
	rounds        []time.Duration // p99 of each round
	rss           int64
	saw           observerCounts
	server, nodes time.Duration // of processors
	observers     time.Duration
	events        int64
}

// observerCounts is what the watchers report at their end.
type observerCounts struct{ Read, Cut int64 }

func (s measurement) p99() time.Duration { return quantile(s.took, 0.99) }

// ratio is the median of how much longer runs took than in the same round without watchers.
func (s measurement) ratio(alone measurement) float64 {
	var list []float64
	for i := range min(len(s.rounds), len(alone.rounds)) {
		list = append(list, float64(s.rounds[i])/float64(max(alone.rounds[i], 1)))
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// perRun is a part of one run.
func (s measurement) perRun(all time.Duration) time.Duration {
	return all / time.Duration(max(len(s.took), 1))
}

// copyTime is the time that the server took to copy an event for one watcher.
func (s measurement) copyTime(alone measurement) time.Duration {
	copies := s.events / int64(max(len(s.took), 1)) * int64(s.watchers)
	return (s.perRun(s.server) - alone.perRun(alone.server)) / time.Duration(max(copies, 1))
}

// watcherLoad is the scenario in which many observers watch all events.
type watcherLoad struct{ *testCluster }

// run executes runs alone, and next to each kind of crowd, in turn.
func (t *watcherLoad) run() {
	runs := max(t.o.runs/watchRounds, 1)
	t.load.runBatch(warmUp / 2)
	var events atomic.Int64
	stop, err := t.client.Watch(func(client.Event) { events.Add(1) })
	if err != nil {
		t.found.add("%v", err)
		return
	}
	defer stop()
	base := t.serverMemory()
	alone := &measurement{kind: crowdNone}
	measurements := []*measurement{alone}
	for _, kind := range []string{crowdStopped, crowdSlow, crowdReaders, crowdPages} {
		measurements = append(measurements, &measurement{kind: kind, watchers: t.o.watchers})
	}
	for range watchRounds {
		for _, s := range measurements {
			before := events.Load()
			if err := t.measureRuns(s, runs); err != nil {
				t.found.add("%v", err)
				return
			}
			s.events += events.Load() - before
		}
	}
	t.checkIndex()
	for _, s := range measurements {
		s.printFigures(*alone)
	}
	for _, s := range measurements[1:] {
		t.judgeLoad(*s, *alone, base)
	}
}

// judgeLoad compares what was measured with watchers to what was measured without them. A missing
// measurement counts as a problem.
func (t *watcherLoad) judgeLoad(s, alone measurement, base int64) {
	if s.p99() == 0 || alone.p99() == 0 || base == 0 || s.events == 0 || alone.server == 0 || alone.nodes == 0 || len(s.rounds) == 0 {
		t.found.add("not measured: %v before %d %s watchers, %v without, %d bytes", s.p99(), s.watchers, s.kind, alone.p99(), base)
	}
	most := harmlessRatio
	if s.kind == crowdReaders {
		most = readersRatio
	}
	if ratio := s.ratio(alone); ratio > most {
		t.found.add("runs took %.2f times as long before %d %s watchers (p99, median of %d rounds)", ratio, s.watchers, s.kind, len(s.rounds))
	}
	if copied := s.copyTime(alone); copied > copyCost {
		t.found.add("a copy of an event for one of %d %s watchers took the server %v", s.watchers, s.kind, copied)
	}
	if was, is := alone.perRun(alone.nodes), s.perRun(s.nodes); s.kind != crowdPages && float64(is) > nodesCost*float64(was) {
		t.found.add("a run took the nodes %v before %d %s watchers, and %v without", is, s.watchers, s.kind, was)
	}
	if s.rss-base > watchersGrowth {
		t.found.add("the process of the server grew by %d MiB", (s.rss-base)>>20)
	}
	reads := s.kind == crowdReaders || s.kind == crowdPages
	if reads && (s.saw.Cut > 0 || s.saw.Read == 0) {
		t.found.add("the %s watchers read %d bytes, and %d of them were cut off", s.kind, s.saw.Read, s.saw.Cut)
	}
}

func (s *measurement) printFigures(alone measurement) {
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	fmt.Printf("%d runs before %d watchers (%s): p50 %v, p99 %v, %.2f of the p99 alone (median of %d rounds); a run took %v of the server, %v of the nodes and %v of the watchers; %d events each, %v of the server for each copy; they read %d MiB, %d were cut off; the process of the server had at most %d MiB\n",
		len(s.took), s.watchers, s.kind, ms(quantile(s.took, 0.5)), ms(s.p99()), s.ratio(alone), len(s.rounds), ms(s.perRun(s.server)), ms(s.perRun(s.nodes)), ms(s.perRun(s.observers)),
		s.events/int64(max(len(s.took), 1)), s.copyTime(alone).Round(100*time.Nanosecond), s.saw.Read>>20, s.saw.Cut, s.rss>>20)
}

// measureRuns lets some runs proceed with watchers.
func (t *watcherLoad) measureRuns(s *measurement, runs int) error {
	from := t.load.countEnded()
	kind := s.kind
	if t.o.broken && s.watchers > 0 {
		kind = crowdStopped
		t.p.setDelay(slowThought)
		defer t.p.setDelay(0)
	}
	w, err := t.startCrowd(s.watchers, kind)
	if err != nil {
		return err
	}
	over, measured := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(measured)
		for {
			s.rss = max(s.rss, t.serverMemory())
			select {
			case <-over:
				return
			case <-time.After(poll):
			}
		}
	}()
	server, nodes := t.serverTime(), t.nodes.processorTime()
	t.load.runBatch(runs)
	s.server += t.serverTime() - server
	s.nodes += t.nodes.processorTime() - nodes
	close(over)
	<-measured
	saw, err := w.stopObservers()
	s.observers += w.worked
	s.saw.Read += saw.Read
	s.saw.Cut += saw.Cut
	took := t.load.durationsBetween(from, t.load.countEnded())
	slices.Sort(took)
	s.rounds = append(s.rounds, quantile(took, 0.99))
	s.took = append(s.took, took...)
	slices.Sort(s.took)
	return err
}

// watcherNice leaves the processors to the cluster.
const watcherNice = "19"

// observerProcess is the process of the watchers. They are elsewhere in the world, and take here
// what time of the processors is left.
type observerProcess struct {
	cmd    *exec.Cmd
	in     io.Closer
	out    *bufio.Reader
	worked time.Duration
}

// startCrowd starts n watchers of a kind.
func (t *watcherLoad) startCrowd(n int, kind string) (*observerProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o := t.broker.options(bus.RoleObserver, "")
	server, _, _ := strings.Cut(o.Servers, ",")
	how, err := json.Marshal(crowdOptions{Server: server, CA: o.TLSCA, Seed: o.NKey, Subject: names.Names{}.AllEvents(), Kind: kind, N: n, Pages: t.nodes.httpURL()})
	if err != nil {
		return nil, err
	}
	c := &observerProcess{cmd: exec.Command("nice", "-n", watcherNice, self, "-look", string(how))}
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	if line, err := c.out.ReadString('\n'); err != nil || !strings.HasPrefix(line, "ready") {
		return nil, errors.Join(fmt.Errorf("watchers: %q: %w", line, err), c.in.Close(), c.cmd.Wait())
	}
	return c, nil
}

// stopObservers ends the watchers, and returns what they saw.
func (c *observerProcess) stopObservers() (s observerCounts, err error) {
	err = c.in.Close()
	err = errors.Join(err, json.NewDecoder(c.out).Decode(&s), c.cmd.Wait())
	c.worked = c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
	return s, err
}

// processorTime is how much time of processors all nodes have taken.
func (n *nodes) processorTime() (d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.list {
		d += processorTime(m.cmd.Process.Pid)
	}
	return d
}

// serverTime is how much time of processors the servers have taken.
func (t *watcherLoad) serverTime() (d time.Duration) {
	for _, pid := range t.broker.processes() {
		d += processorTime(pid)
	}
	return d
}

// serverMemory is how much memory the processes of the servers have, in bytes.
func (t *watcherLoad) serverMemory() (n int64) {
	for _, pid := range t.broker.processes() {
		n += residentMemory(pid)
	}
	return n
}

// clockTick is the unit of /proc/PID/stat.
const clockTick = 10 * time.Millisecond

// processorTime is how much time of processors a process has taken; 0 where the system does not say.
func processorTime(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	const user, system = 11, 12
	if len(fields) <= system {
		return 0
	}
	var sum time.Duration
	for _, f := range fields[user : system+1] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0
		}
		sum += time.Duration(n) * clockTick
	}
	return sum
}

// residentMemory is how much memory a process has, in bytes; 0 where the system does not say.
func residentMemory(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}
