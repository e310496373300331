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
	w.wait.Go(w.acceptConns)
	return w, nil
}

func (w *wire) listenPort() int { return w.Addr().(*net.TCPAddr).Port }

func (w *wire) acceptConns() {
	for {
		near, err := w.Accept()
		if err != nil {
			return
		}
		w.wait.Go(func() { w.carryConn(near) })
	}
}

// carryConn carries one connection. While the wire is cut, the dialing end gets nothing, not even a
// refusal.
func (w *wire) carryConn(near net.Conn) {
	if !w.holdConn(near) {
		return
	}
	w.awaitWhole(mute)
	far, err := net.Dial("tcp", w.to)
	if err != nil || !w.holdConn(far) {
		w.dropConns(near)
		return
	}
	var both sync.WaitGroup
	both.Go(func() { w.copyDirection(far, near, mute) })
	both.Go(func() { w.copyDirection(near, far, deaf) })
	both.Wait()
}

// copyDirection carries one direction, unless it is cut.
func (w *wire) copyDirection(to, from net.Conn, direction string) {
	defer w.dropConns(to, from)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			w.awaitWhole(direction)
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				w.awaitWhole(direction)
			}
			return
		}
	}
}

// awaitWhole waits until a direction is whole.
func (w *wire) awaitWhole(direction string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.over && (w.cut == silent || w.cut == direction) {
		w.mend.Wait()
	}
}

// setCut cuts the wire, or mends it.
func (w *wire) setCut(cut string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	w.mend.Broadcast()
}

func (w *wire) holdConn(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		_ = c.Close() // it is of no use any more
		return false
	}
	w.conns[c] = struct{}{}
	return true
}

func (w *wire) dropConns(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		_ = c.Close() // the other direction may have been faster
		delete(w.conns, c)
	}
}

func (w *wire) closeAll() {
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

// wireMesh are all of a scenario: from each server to each other one, and from each
// node to each server. A nil one is no wires.
type wireMesh struct {
	mu     sync.Mutex
	routes map[[2]string]*wire
	nodes  map[[2]string]*wire
	list   []*natsServer
}

// layWires makes the wires between the servers.
func (s *servers) layWires() (*wireMesh, error) {
	w := &wireMesh{routes: map[[2]string]*wire{}, nodes: map[[2]string]*wire{}, list: s.list}
	for _, from := range s.list {
		for _, to := range s.list {
			if from == to {
				continue
			}
			one, err := newWire(to.route)
			if err != nil {
				w.closeAll()
				return nil, err
			}
			w.routes[[2]string{from.name, to.name}] = one
		}
	}
	return w, nil
}

// serverPort returns the port at which one server reaches another.
func (w *wireMesh) serverPort(from, to *natsServer) int {
	if w == nil {
		return to.route
	}
	return w.routes[[2]string{from.name, to.name}].listenPort()
}

// clientPort returns the port at which a node reaches a server; other clients have no wires.
func (w *wireMesh) clientPort(node string, to *natsServer) int {
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
	return w.nodes[ends].listenPort()
}

// nowhere is a port at which nothing listens.
const nowhere = 1

// wiresAt returns the wires that end at one name, and at another if that is given.
func (w *wireMesh) wiresAt(of map[[2]string]*wire, who, other string) (list []*wire) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ends, one := range of {
		if (ends[0] == who || ends[1] == who) && (other == "" || ends[0] == other || ends[1] == other) {
			list = append(list, one)
		}
	}
	return list
}

func (w *wireMesh) closeAll() {
	if w == nil {
		return
	}
	for _, all := range []map[[2]string]*wire{w.routes, w.nodes} {
		for _, one := range all {
			one.closeAll()
		}
	}
}
