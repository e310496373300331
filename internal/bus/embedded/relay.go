package embedded

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/troupe-run/troupe/internal/process"
)

// connRelay carries the bytes of one connection between outside and the server. Those of the port are carried in whole
// messages of the protocol, so that events of the fan-out can come between them.
type connRelay struct {
	proxy   *proxyListener
	out, in net.Conn
	waiting int           // of front
	more    chan struct{} // signals that parts has data, or that the relay is over
	closed  chan struct{} // closed with the relay
	closing sync.Once

	mu    sync.Mutex
	parts net.Buffers // for the client, in order
	paced bool        // the client receives events from the fan-out
	over  bool        // the server sends no more
}

// close ends a relay from either side.
func (r *connRelay) close() {
	r.closing.Do(func() { close(r.closed) })
	_ = r.out.Close() // undelivered bytes are discarded
	_ = r.in.Close()  // a pipe in memory: it cannot fail
}

func (r *connRelay) run() {
	defer r.proxy.removeRelay(r)
	if r.proxy.maxPending == 0 {
		r.runPlain()
		return
	}
	var sides sync.WaitGroup
	observer := newEventClient(r)
	sides.Go(func() {
		observer.forward() // either side may end at any time
		_ = r.in.Close()   // as above
	})
	sides.Go(r.drainBuffer)
	r.fillBuffer()
	sides.Wait()
	observer.unsubscribeAll()
}

// runPlain carries bytes of the socket.
func (r *connRelay) runPlain() {
	var sides sync.WaitGroup
	sides.Go(func() {
		if process.IsAgentPeer(r.out) {
			r.forwardAgent()
		} else {
			_, _ = io.Copy(r.in, r.out) // either side may end at any time
		}
		_ = r.in.Close() // as above
	})
	_, _ = io.Copy(r.out, r.in) // either side may end at any time
	r.close()
	sides.Wait()
}

// fillBuffer buffers what the server sends at once, up to the limit.
func (r *connRelay) fillBuffer() {
	in := bufio.NewReader(r.in)
	for {
		message, err := readMessage(in)
		if len(message) > 0 && !r.deliver(message, false) {
			err = net.ErrClosed
		}
		if err != nil {
			r.mu.Lock()
			r.over = true
			r.mu.Unlock()
			_ = r.out.SetWriteDeadline(time.Now().Add(relayGrace)) // fails only on a closed connection
			r.signalMore()
			return
		}
	}
}

// readMessage reads one message that a server sends: a line, and after MSG and HMSG as many bytes as it names.
func readMessage(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return line, err
	}
	size := 0
	if bytes.HasPrefix(line, []byte("MSG ")) || bytes.HasPrefix(line, []byte("HMSG ")) {
		if size, err = payloadSize(line); err != nil {
			return line, err
		}
	}
	if size == 0 {
		return line, nil
	}
	message := make([]byte, len(line)+size)
	copy(message, line)
	n, err := io.ReadFull(in, message[len(line):])
	return message[:len(line)+n], err
}

// payloadSize is how many bytes follow a line of MSG, HMSG, PUB or HPUB.
func payloadSize(line []byte) (int, error) {
	fields := bytes.Fields(line)
	n, err := strconv.ParseUint(string(fields[len(fields)-1]), 10, 31)
	return int(n) + len("\r\n"), err
}

// deliver buffers bytes for the client, and does not copy them: event says that they are of the fan-out. It returns
// false when too much waits; then the relay has ended.
func (r *connRelay) deliver(p []byte, event bool) bool {
	if !r.proxy.countPending(r, len(p)) {
		r.close()
		return false
	}
	r.mu.Lock()
	first := len(r.parts) == 0
	r.parts = append(r.parts, p)
	r.paced = r.paced || event
	r.mu.Unlock()
	if first {
		r.signalMore()
	}
	return true
}

func (r *connRelay) signalMore() {
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// drainBuffer sends what is buffered. It ends with the server's side, and then closes the connection.
func (r *connRelay) drainBuffer() {
	defer r.close()
	var delivered time.Time
	for {
		select {
		case <-r.more:
		case <-r.closed:
			return
		}
		r.mu.Lock()
		paced := r.paced
		r.mu.Unlock()
		if paced {
			r.awaitUntil(delivered.Add(r.proxy.fanOut.pause()))
		}
		r.mu.Lock()
		parts, over := r.parts, r.over
		r.parts, r.paced = nil, false
		r.mu.Unlock()
		err := r.write(parts)
		delivered = time.Now()
		if over || err != nil {
			return
		}
	}
}

func (r *connRelay) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// awaitUntil waits until a delivery is due, or the relay ends.
func (r *connRelay) awaitUntil(due time.Time) {
	wait := time.Until(due)
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.closed:
	}
}

// write sends parts to the client, which has a time for each writeMax bytes. The last parts have the time that
// fillBuffer has set.
func (r *connRelay) write(parts net.Buffers) error {
	for len(parts) > 0 {
		n, size := 0, 0
		for n < len(parts) && (n == 0 || size+len(parts[n]) <= writeMax) {
			size += len(parts[n])
			n++
		}
		batch := parts[:n:n]
		parts = parts[n:]
		if !r.isOver() {
			_ = r.out.SetWriteDeadline(time.Now().Add(StalledMax)) // as above
		}
		_, err := batch.WriteTo(r.out)
		r.proxy.countPending(r, -size)
		if err != nil {
			return err
		}
	}
	return nil
}
