package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const watcherDial = 10 * time.Second

// observerConns are connections of observers to all events. They speak the protocol themselves: a
// client library would read in the background.
type observerConns struct {
	read atomic.Int64
	cut  atomic.Int64 // by the server
	over chan struct{}
	wait sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// crowdOptions is what the process of watchers does: N watchers of a kind connect to the server and
// subscribe to the subject, or open pages.
type crowdOptions struct {
	Server, CA, Seed string // of a server with TLS and nkeys, else the URL names the user
	Subject, Kind    string
	N                int
	Pages            string
}

// runObservers is the process of watchers: it connects them, prints ready and, when its input ends,
// what they saw.
func runObservers(o options) error {
	var how crowdOptions
	if err := json.Unmarshal([]byte(o.look), &how); err != nil {
		return err
	}
	w := &observerConns{over: make(chan struct{})}
	err := w.connect(how)
	if err == nil {
		fmt.Println("ready")
		_, err = io.Copy(io.Discard, os.Stdin)
	}
	w.close()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(observerCounts{w.read.Load(), w.cut.Load()})
}

// connect connects the watchers.
func (w *observerConns) connect(how crowdOptions) error {
	d, err := newObserverDialer(how)
	if err != nil {
		return err
	}
	if how.Kind == crowdPages {
		return w.openPages(d, how.N, how.Pages)
	}
	for i := range how.N {
		c, r, err := d.dial()
		if err != nil {
			return fmt.Errorf("watcher %d: %w", i+1, err)
		}
		w.keep(c)
		switch how.Kind {
		case crowdSlow:
			w.wait.Go(func() { w.readSlowly(c, d) })
		case crowdReaders:
			w.wait.Go(func() { w.readAll(r) })
		}
	}
	return nil
}

// keep keeps a connection until the end.
func (w *observerConns) keep(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, c)
}

// readAll reads everything.
func (w *observerConns) readAll(r io.Reader) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Read(buffer)
		w.read.Add(int64(n))
		if err != nil {
			w.countBroken()
			return
		}
	}
}

// readSlowly reads a byte a second, and connects again at once when the server has ended the connection.
func (w *observerConns) readSlowly(c net.Conn, d *observerDialer) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-w.over:
			return
		case <-tick.C:
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			continue
		}
		w.countBroken()
		again, _, err := d.dial()
		if err != nil {
			continue // the old one is of no use either: in a second
		}
		w.keep(again)
		c = again
	}
}

// countBroken counts a connection that the server ended.
func (w *observerConns) countBroken() {
	select {
	case <-w.over:
	default:
		w.cut.Add(1)
	}
}

func (w *observerConns) close() {
	close(w.over)
	w.mu.Lock()
	for _, c := range w.conns {
		_ = c.Close() // the server may have
	}
	w.mu.Unlock()
	w.wait.Wait()
}
