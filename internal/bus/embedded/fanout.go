package embedded

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/troupe-run/troupe/internal/bus"
)

const (
	// pausePerObserver and deliveryPauseMax set how long a connection waits after a delivery of events for the next
	// one: pausePerObserver for each subscription of the port. A delivery wakes a goroutine and writes to a socket.
	// That costs a hundred times as much as buffering an event, so with more observers deliveries are larger and less
	// frequent.
	pausePerObserver = time.Millisecond
	deliveryPauseMax = 500 * time.Millisecond
	// subscribeWait is how long the server may take for a subscription of the fan-out.
	subscribeWait = 5 * time.Second
)

// eventFanOut serves subscriptions to events of all connections of the port. For each subject it has one subscription
// of the server, and encodes each event once for all its subscribers. The server would copy the event for each
// connection, wake three goroutines of it, and write to its socket, while the runs wait for the same processors.
type eventFanOut struct {
	dial    func() (net.Conn, error)
	secrets map[bus.Role]string
	open    bool   // connections without a credential may read events
	events  string // the prefix of their subjects
	logger  *slog.Logger

	mu       sync.Mutex
	conn     *fanOutConn // nil until it is needed
	subjects map[string]*eventSubject
	byID     map[string]*eventSubject
	last     int // id of a subject
	subs     int
	ended    sync.WaitGroup
}

func (e *Server) newFanOut() *eventFanOut {
	return &eventFanOut{dial: e.InProcessConn, secrets: e.secrets, open: e.cfg.OpenWatch || e.cfg.OpenControl,
		events: strings.TrimSuffix(e.cfg.Names.AllEvents(), ">"), logger: e.cfg.Logger}
}

// eventSubject is a subject that clients have subscribed to.
type eventSubject struct {
	name, id string
	ready    chan struct{} // closed when the server has the subscription
	subs     []*eventSub
}

// eventSub is one subscription of a client.
type eventSub struct {
	relay      *connRelay
	id         string // of the client
	subject    *eventSubject
	sent, most uint64 // events; most 0: without limit
	over       bool
}

// fanOutConn is a connection of the fan-out to the server.
type fanOutConn struct {
	net.Conn
	in *bufio.Reader

	mu      sync.Mutex      // of writes
	waiting []*eventSubject // subscriptions whose PONG has not arrived
}

// pause is how long a connection waits after a delivery for the next one.
func (f *eventFanOut) pause() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return min(time.Duration(f.subs)*pausePerObserver, deliveryPauseMax)
}

// serves reports whether a subject is one of events.
func (f *eventFanOut) serves(subject string) bool {
	return strings.HasPrefix(subject, f.events) && server.IsValidSubject(subject)
}

// subscribe begins a subscription; await waits until the server has it. It returns nil if there is no server.
func (f *eventFanOut) subscribe(r *connRelay, subject, id string) *eventSub {
	f.mu.Lock()
	if err := f.connect(); err != nil {
		f.mu.Unlock()
		f.logger.Warn("events are served by the server itself", "error", err)
		return nil
	}
	conn, s := f.conn, f.subjects[subject]
	if s == nil {
		f.last++
		s = &eventSubject{name: subject, id: fmt.Sprint(f.last), ready: make(chan struct{})}
		f.subjects[subject], f.byID[s.id] = s, s
		defer conn.ask(s)
	}
	sub := &eventSub{relay: r, id: id, subject: s}
	s.subs = append(s.subs, sub)
	f.subs++
	f.mu.Unlock()
	return sub
}

// await waits until the server has a subscription, or the client has gone.
func (f *eventFanOut) await(s *eventSub) {
	late := time.NewTimer(subscribeWait)
	defer late.Stop()
	select {
	case <-s.subject.ready:
	case <-s.relay.closed:
	case <-late.C:
		s.relay.close()
	}
}

// isOver reports whether a subscription has ended.
func (f *eventFanOut) isOver(s *eventSub) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.over
}

// limit ends a subscription after the given number of events since it began, 0: now. It reports whether it has ended.
func (f *eventFanOut) limit(s *eventSub, most uint64) bool {
	f.mu.Lock()
	s.most = most
	over := most == 0 || s.sent >= most
	var conn *fanOutConn
	if over {
		conn = f.remove(s)
	}
	f.mu.Unlock()
	if conn != nil {
		conn.send("UNSUB " + s.subject.id + "\r\n")
	}
	return over
}

// remove removes a subscription. It returns the connection to the server if that has to forget the subject. The caller
// holds the lock.
func (f *eventFanOut) remove(s *eventSub) *fanOutConn {
	subject := s.subject
	s.over = true
	i := slices.Index(subject.subs, s)
	if i < 0 {
		return nil
	}
	subject.subs = slices.Delete(subject.subs, i, i+1)
	f.subs--
	if len(subject.subs) > 0 || f.byID[subject.id] != subject {
		return nil
	}
	delete(f.subjects, subject.name)
	delete(f.byID, subject.id)
	return f.conn
}

// connect connects to the server. The caller holds the lock.
func (f *eventFanOut) connect() error {
	if f.conn != nil {
		return nil
	}
	inside, err := f.dial()
	if err != nil {
		return fmt.Errorf("embedded: fan-out: %w", err)
	}
	document, err := json.Marshal(map[string]any{"verbose": false, "pedantic": false, "headers": false, "echo": false, "protocol": 1, "lang": "go", "version": server.VERSION,
		"name": "observers", "user": string(bus.RoleClient), "pass": f.secrets[bus.RoleClient]})
	if err != nil {
		return fmt.Errorf("embedded: fan-out: %w", err)
	}
	c := &fanOutConn{Conn: inside, in: bufio.NewReaderSize(inside, 64<<10)}
	_ = c.SetDeadline(time.Now().Add(subscribeWait)) // a pipe in memory: it cannot fail
	if _, err = c.in.ReadBytes('\n'); err == nil {   // INFO
		_, err = fmt.Fprintf(c, "CONNECT %s\r\n", document)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("embedded: fan-out: %w", err), c.Close())
	}
	_ = c.SetDeadline(time.Time{}) // as above
	f.conn, f.subjects, f.byID = c, map[string]*eventSubject{}, map[string]*eventSubject{}
	f.ended.Go(func() { f.disconnect(c, f.serve(c)) })
	return nil
}

// serve handles what the server sends.
func (f *eventFanOut) serve(c *fanOutConn) error {
	for {
		message, err := readMessage(c.in)
		if err != nil {
			return err
		}
		switch {
		case bytes.HasPrefix(message, []byte("MSG ")):
			f.dispatch(message)
		case bytes.HasPrefix(message, []byte("PING")):
			c.send("PONG\r\n")
		case bytes.HasPrefix(message, []byte("PONG")):
			c.confirm()
		case bytes.HasPrefix(message, []byte("-ERR")):
			return errors.New(strings.TrimSpace(string(message)))
		}
	}
}

// dispatch buffers an event for all subscribers of its subject. Subscribers that chose the same id, as most do, share
// the bytes.
func (f *eventFanOut) dispatch(message []byte) {
	line, payload, _ := bytes.Cut(message, []byte("\r\n"))
	fields := bytes.Fields(line)
	if len(fields) != 4 { // MSG SUBJECT ID SIZE: the server sends it in no other form
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.byID[string(fields[2])]
	if s == nil {
		return // the last subscriber has just gone
	}
	var shared []byte
	sharedID := ""
	var ended []*eventSub
	for _, sub := range s.subs {
		if shared == nil || sub.id != sharedID {
			shared, sharedID = sub.message(fields[1], payload), sub.id
		}
		sub.relay.deliver(shared, true)
		if sub.sent++; sub.most > 0 && sub.sent >= sub.most {
			ended = append(ended, sub)
		}
	}
	for _, sub := range ended {
		if conn := f.remove(sub); conn != nil {
			go conn.send("UNSUB " + s.id + "\r\n") // this goroutine has to read what the server sends meanwhile
		}
	}
}

// disconnect ends all subscriptions with the connection to the server: their clients may miss events, so they must see
// that, and connect again.
func (f *eventFanOut) disconnect(c *fanOutConn, err error) {
	_ = c.Close() // a pipe in memory: it cannot fail
	f.mu.Lock()
	subjects := f.subjects
	f.conn, f.subjects, f.byID = nil, nil, nil
	var relays []*connRelay
	for _, s := range subjects {
		for _, sub := range s.subs {
			relays = append(relays, sub.relay)
		}
		f.subs -= len(s.subs)
		s.subs = nil // their clients are closed below
	}
	f.mu.Unlock()
	if len(relays) > 0 && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		f.logger.Warn("observers are disconnected: the connection of their events has ended", "observers", len(relays), "error", err)
	}
	for _, r := range relays {
		r.close()
	}
}

// close ends the connection to the server.
func (f *eventFanOut) close() {
	f.mu.Lock()
	conn := f.conn
	f.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // as above
	}
	f.ended.Wait()
}

// ask subscribes to a subject.
func (c *fanOutConn) ask(s *eventSubject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, s)
	_, _ = io.WriteString(c.Conn, "SUB "+s.name+" "+s.id+"\r\nPING\r\n") // serve notices a connection that has ended
}

// confirm notes that the server has the subscription that waits longest.
func (c *fanOutConn) confirm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) > 0 {
		close(c.waiting[0].ready)
		c.waiting = c.waiting[1:]
	}
}

// send sends a line.
func (c *fanOutConn) send(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = io.WriteString(c.Conn, line) // as above
}
