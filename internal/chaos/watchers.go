package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-run/troupe/bus"
)

const (
	// watchersGrowth is by how many bytes the process of the server may grow because
	// of them: they are in it as well.
	watchersGrowth = 512 << 20
	// Runs may take longer (p99) by so much: because of watchers that do not read, and
	// because of those that do. Each of these gets its own copy of every event, which
	// costs time of the same few processors.
	stoppedCost = 2
	readersCost = 5
	watcherDial = 10 * time.Second
)

// watchers are connections of observers to all events: some read all, as many read
// nothing, and one reads a byte a second. They speak the protocol themselves: a
// client library would read in the background.
type watchers struct {
	conns []net.Conn
	read  atomic.Int64
	cut   atomic.Int64 // by the server
	over  chan struct{}
	wait  sync.WaitGroup
}

// watch connects n of them, of which the readers read all, one is slow, and the rest
// read nothing.
func watch(server string, subject string, n, readers int) (*watchers, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	w := &watchers{over: make(chan struct{})}
	for i := range n {
		c, r, err := observe(u.Host, subject)
		if err != nil {
			w.close()
			return nil, fmt.Errorf("watcher %d: %w", i+1, err)
		}
		w.conns = append(w.conns, c)
		switch {
		case i == 0:
			w.wait.Go(func() { w.drip(c) })
		case i <= readers:
			w.wait.Go(func() { w.swallow(r) })
		}
	}
	return w, nil
}

// observe connects and subscribes.
func observe(host, subject string) (net.Conn, *bufio.Reader, error) {
	c, err := net.DialTimeout("tcp", host, watcherDial)
	if err != nil {
		return nil, nil, err
	}
	r := bufio.NewReaderSize(c, 64<<10)
	_, err = fmt.Fprintf(c, "CONNECT {\"verbose\":false,\"pedantic\":false,\"lang\":\"chaos\",\"version\":\"1\",\"protocol\":1}\r\nSUB %s 1\r\nPING\r\n", subject)
	for line := ""; err == nil && !strings.HasPrefix(line, "PONG"); {
		if line, err = r.ReadString('\n'); strings.HasPrefix(line, "-ERR") {
			err = fmt.Errorf("the server says %s", strings.TrimSpace(line))
		}
	}
	if err != nil {
		_ = c.Close() // nobody needs it
		return nil, nil, err
	}
	return c, r, nil
}

// swallow reads all.
func (w *watchers) swallow(r io.Reader) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Read(buffer)
		w.read.Add(int64(n))
		if err != nil {
			w.broke()
			return
		}
	}
}

// drip reads a byte a second.
func (w *watchers) drip(c net.Conn) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-w.over:
			return
		case <-tick.C:
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			w.broke()
			return
		}
	}
}

// broke counts a connection that the server ended.
func (w *watchers) broke() {
	select {
	case <-w.over:
	default:
		w.cut.Add(1)
	}
}

func (w *watchers) close() {
	close(w.over)
	for _, c := range w.conns {
		_ = c.Close() // the server may have
	}
	w.wait.Wait()
}

// playWatchers has runs go on alone, before watchers of whom none reads, before as
// many of whom half do, and alone again.
func (t *theatre) playWatchers() {
	runs := t.o.runs
	t.volley(warmUp / 2)
	t.o.runs = runs
	base := rss(os.Getpid())
	alone := t.watched(0, 0)
	stopped := t.watched(t.o.watchers/2, 0)
	half := t.watched(t.o.watchers, t.o.watchers/2-1)
	again := t.watched(0, 0)
	t.indexed()
	normal := max(alone.p99, again.p99)
	t.judgeWatched(stopped, stoppedCost, normal, base)
	t.judgeWatched(half, readersCost, normal, base)
}

// judgeWatched holds what was measured before watchers against what it is without. What
// was not measured is no proof.
func (t *theatre) judgeWatched(c scene, most float64, normal time.Duration, base int64) {
	if c.p99 == 0 || normal == 0 || base == 0 {
		t.found.add("not measured: %v before %d watchers, %v without, %d bytes", c.p99, c.watchers, normal, base)
	}
	if float64(c.p99) > most*float64(normal) {
		t.found.add("runs took %v before %d watchers of whom %d read (p99), and %v without", c.p99, c.watchers, c.readers, normal)
	}
	if c.rss-base > watchersGrowth {
		t.found.add("the process of the server grew by %d MiB", (c.rss-base)>>20)
	}
	if c.cut > 0 || c.readers > 0 && c.read == 0 {
		t.found.add("the watchers read %d bytes, and %d of those that read were cut off", c.read, c.cut)
	}
}

// scene is what was measured before some watchers.
type scene struct {
	watchers, readers int
	p99               time.Duration
	rss, read, cut    int64
}

// watched has some runs go on before watchers.
func (t *theatre) watched(n, readers int) (s scene) {
	from := t.load.ended()
	reading := readers
	if t.o.broken && n > 0 {
		reading = 0
		t.p.slower(slowThought)
		defer t.p.slower(0)
	}
	w, err := watch(t.broker.options(bus.RoleObserver, "").Servers, bus.Names{}.Events(), n, reading)
	if err != nil {
		t.found.add("%v", err)
		return s
	}
	s = scene{watchers: n, readers: readers, rss: rss(os.Getpid())}
	measured := make(chan struct{})
	go func() {
		defer close(measured)
		for {
			select {
			case <-w.over:
				return
			case <-time.After(poll):
				s.rss = max(s.rss, rss(os.Getpid()))
			}
		}
	}()
	t.volley(t.o.runs)
	w.close()
	<-measured
	took := t.load.between(from, t.load.ended())
	s.p99, s.read, s.cut = part(took, 0.99), w.read.Load(), w.cut.Load()
	fmt.Printf("%d runs before %d watchers, of whom %d read all: p50 %v, p99 %v; they read %d MiB, %d of them were cut off; the process of the server and of the watchers had at most %d MiB\n",
		len(took), n, readers, part(took, 0.5), s.p99, s.read>>20, s.cut, s.rss>>20)
	return s
}

// rss is how much memory a process has, in bytes; 0 where the system does not say.
func rss(pid int) int64 {
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
