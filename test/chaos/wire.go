package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Ways in which a wire can be cut.
const (
	whole  = ""
	silent = "silent" // both ends receive nothing any more, without an error
	deaf   = "deaf"   // the dialing end receives nothing any more; what it sends arrives
	mute   = "mute"   // the other way round
)

// wire is a proxy between a dialing end and a listening end.
type wire struct {
	net.Listener
	to string

	mu    sync.Mutex
	mend  *sync.Cond
	cut   string
	over  bool
	conns map[net.Conn]struct{}
	wait  sync.WaitGroup
}

// newWire makes a wire to a port.
func newWire(port int) (*wire, error) {
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return nil, err
	}
	w := &wire{Listener: l, to: fmt.Sprintf("%s:%d", loopback, port), conns: map[net.Conn]struct{}{}}
	w.mend = sync.NewCond(&w.mu)
	w.wait.Go(w.serve)
	return w, nil
}

func (w *wire) port() int { return w.Addr().(*net.TCPAddr).Port }

func (w *wire) serve() {
	for {
		near, err := w.Accept()
		if err != nil {
			return
		}
		w.wait.Go(func() { w.carry(near) })
	}
}

// carry carries one connection. While the wire is cut, the dialing end gets nothing, not even a
// refusal.
func (w *wire) carry(near net.Conn) {
	if !w.hold(near) {
		return
	}
	w.pass(mute)
	far, err := net.Dial("tcp", w.to)
	if err != nil || !w.hold(far) {
		w.drop(near)
		return
	}
	var both sync.WaitGroup
	both.Go(func() { w.copy(far, near, mute) })
	both.Go(func() { w.copy(near, far, deaf) })
	both.Wait()
}

// copy carries one direction, unless it is cut.
func (w *wire) copy(to, from net.Conn, direction string) {
	defer w.drop(to, from)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			w.pass(direction)
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				w.pass(direction)
			}
			return
		}
	}
}

// pass waits until a direction is whole.
func (w *wire) pass(direction string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.over && (w.cut == silent || w.cut == direction) {
		w.mend.Wait()
	}
}

// set cuts the wire, or mends it.
func (w *wire) set(cut string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	w.mend.Broadcast()
}

func (w *wire) hold(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		_ = c.Close() // it is of no use any more
		return false
	}
	w.conns[c] = struct{}{}
	return true
}

func (w *wire) drop(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		_ = c.Close() // the other direction may have been faster
		delete(w.conns, c)
	}
}

func (w *wire) close() {
	w.mu.Lock()
	w.over = true
	for c := range w.conns {
		_ = c.Close()
	}
	w.mend.Broadcast()
	w.mu.Unlock()
	_ = w.Close() // ends serve
	w.wait.Wait()
}

// wires are all of a scenario: from each server to each other one, and from each
// node to each server. A nil one is no wires.
type wires struct {
	mu     sync.Mutex
	routes map[[2]string]*wire
	nodes  map[[2]string]*wire
	list   []*natsServer
}

// lay makes the wires between the servers.
func (s *servers) lay() (*wires, error) {
	w := &wires{routes: map[[2]string]*wire{}, nodes: map[[2]string]*wire{}, list: s.list}
	for _, from := range s.list {
		for _, to := range s.list {
			if from == to {
				continue
			}
			one, err := newWire(to.route)
			if err != nil {
				w.close()
				return nil, err
			}
			w.routes[[2]string{from.name, to.name}] = one
		}
	}
	return w, nil
}

// route returns the port at which one server reaches another.
func (w *wires) route(from, to *natsServer) int {
	if w == nil {
		return to.route
	}
	return w.routes[[2]string{from.name, to.name}].port()
}

// client returns the port at which a node reaches a server; other clients have no wires.
func (w *wires) client(node string, to *natsServer) int {
	if w == nil || node == "" {
		return to.client
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	ends := [2]string{node, to.name}
	if w.nodes[ends] == nil {
		one, err := newWire(to.client)
		if err != nil {
			return nowhere // the node will report that nothing listens there
		}
		w.nodes[ends] = one
	}
	return w.nodes[ends].port()
}

// nowhere is a port at which nothing listens.
const nowhere = 1

// ends returns the wires that end at one name, and at another if that is given.
func (w *wires) ends(of map[[2]string]*wire, who, other string) (list []*wire) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ends, one := range of {
		if (ends[0] == who || ends[1] == who) && (other == "" || ends[0] == other || ends[1] == other) {
			list = append(list, one)
		}
	}
	return list
}

func (w *wires) close() {
	if w == nil {
		return
	}
	for _, all := range []map[[2]string]*wire{w.routes, w.nodes} {
		for _, one := range all {
			one.close()
		}
	}
}
