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

// observerConns are connections of observers to all events: some read all, as many read
// nothing, and one reads a byte a second. They speak the protocol themselves: a
// client library would read in the background.
type observerConns struct {
	conns []net.Conn
	read  atomic.Int64
	cut   atomic.Int64 // by the server, of those that read
	over  chan struct{}
	wait  sync.WaitGroup
}

// runObservers is the process of watchers: it connects them, prints ready and, when its input ends,
// what they saw.
func runObservers(o options) error {
	var server, subject string
	var n, readers int
	if _, err := fmt.Sscanf(o.look, "%s %s %d %d", &server, &subject, &n, &readers); err != nil {
		return err
	}
	w, err := connectObservers(server, subject, n, readers)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	w.close()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(observerCounts{w.read.Load(), w.cut.Load()})
}

// connectObservers connects n watchers: some read everything, one is slow, and the rest read nothing.
func connectObservers(server string, subject string, n, readers int) (*observerConns, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	w := &observerConns{over: make(chan struct{})}
	for i := range n {
		c, r, err := connectObserver(u, subject)
		if err != nil {
			w.close()
			return nil, fmt.Errorf("watcher %d: %w", i+1, err)
		}
		w.conns = append(w.conns, c)
		switch {
		case i == 0:
			w.wait.Go(func() { w.readSlowly(c) })
		case i <= readers:
			w.wait.Go(func() { w.readAll(r) })
		}
	}
	return w, nil
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

// readSlowly reads a byte a second.
func (w *observerConns) readSlowly(c net.Conn) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-w.over:
			return
		case <-tick.C:
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			w.countBroken()
			return
		}
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
	for _, c := range w.conns {
		_ = c.Close() // the server may have
	}
	w.wait.Wait()
}
