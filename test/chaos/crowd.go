package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
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

// runObservers is the process of watchers: it connects them, prints ready and, when its input ends,
// what they saw.
func runObservers(o options) error {
	var server, subject, kind, pages string
	var n int
	if _, err := fmt.Sscanf(o.look, "%s %s %d %s %s", &server, &subject, &n, &kind, &pages); err != nil {
		return err
	}
	w := &observerConns{over: make(chan struct{})}
	err := w.connect(server, subject, n, kind, pages)
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

// connect connects n watchers of a kind.
func (w *observerConns) connect(server, subject string, n int, kind, pages string) error {
	u, err := url.Parse(server)
	if err != nil {
		return err
	}
	if kind == crowdPages {
		return w.openPages(u, n, pages)
	}
	for i := range n {
		c, r, err := connectObserver(u, subject)
		if err != nil {
			return fmt.Errorf("watcher %d: %w", i+1, err)
		}
		w.keep(c)
		switch kind {
		case crowdSlow:
			w.wait.Go(func() { w.readSlowly(c, u, subject) })
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

// connectObserver connects to a server as the user that its URL names, and subscribes.
func connectObserver(server *url.URL, subject string) (net.Conn, *bufio.Reader, error) {
	password, _ := server.User.Password()
	hello, err := json.Marshal(map[string]any{"verbose": false, "pedantic": false, "lang": "chaos", "version": "1", "protocol": 1,
		"user": server.User.Username(), "pass": password})
	if err != nil {
		return nil, nil, err
	}
	c, err := net.DialTimeout("tcp", server.Host, watcherDial)
	if err != nil {
		return nil, nil, err
	}
	r := bufio.NewReaderSize(c, 64<<10)
	_, err = fmt.Fprintf(c, "CONNECT %s\r\nSUB %s 1\r\nPING\r\n", hello, subject)
	for line := ""; err == nil && !strings.HasPrefix(line, "PONG"); {
		if line, err = r.ReadString('\n'); strings.HasPrefix(line, "-ERR") {
			err = fmt.Errorf("the server says %s", strings.TrimSpace(line))
		}
	}
	if err != nil {
		_ = c.Close() // it is of no use
		return nil, nil, err
	}
	return c, r, nil
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
func (w *observerConns) readSlowly(c net.Conn, server *url.URL, subject string) {
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
		again, _, err := connectObserver(server, subject)
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
