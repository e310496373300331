package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	// slowReaderMax is how long a reader may take for what the server writes; then it is disconnected.
	slowReaderMax = 10 * time.Second
	// flushPause is how long an event waits for others, which are sent together with it.
	flushPause = 10 * time.Millisecond
	// bufferMax is about how many bytes of events are written together.
	bufferMax = 64 << 10
)

// sseWriter writes server-sent events. It may be used by several goroutines.
type sseWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController

	mu         sync.Mutex
	holdHeader bool // the header is written with the first event
	started    bool
	closed     bool
	cursor     string // the newest that the reader does not have
	flush      *time.Timer
	buffer     bytes.Buffer // events that were not written yet
	err        error        // of an earlier write: the reader is gone
}

func newSSEWriter(w http.ResponseWriter) *sseWriter {
	return &sseWriter{w: w, control: http.NewResponseController(w)}
}

// begin sends the header.
func (s *sseWriter) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeHeader()
	s.write([]byte("retry: " + strconv.Itoa(reconnectMS) + "\n\n"))
	s.flushNow()
	return s.err
}

// writeHeader sends the header unless it was sent. The caller holds mu.
func (s *sseWriter) writeHeader() {
	if s.started {
		return
	}
	s.started = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would hold the events back
	s.w.WriteHeader(http.StatusOK)
}

func (s *sseWriter) isStarted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// writeEvent sends an event. Its data is one line, as JSON is.
func (s *sseWriter) writeEvent(cursor, kind string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeHeader()
	b := &s.buffer
	if cursor != "" {
		b.WriteString("id: " + cursor + "\n")
		s.cursor = ""
	}
	if kind != "" {
		b.WriteString("event: " + kind + "\n")
	}
	b.WriteString("data: ")
	if bytes.IndexByte(data, '\n') >= 0 {
		data = bytes.ReplaceAll(data, []byte("\n"), []byte("\ndata: "))
	}
	b.Write(data)
	b.WriteString("\n\n")
	if b.Len() > bufferMax {
		s.writeBuffer()
	}
	if s.flush == nil && s.err == nil {
		s.flush = time.AfterFunc(flushPause, s.flushLater)
	}
	return s.err
}

// flushAll sends all events.
func (s *sseWriter) flushAll() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushNow()
	return s.err
}

// writeBuffer writes the events that wait. The caller holds mu.
func (s *sseWriter) writeBuffer() {
	if s.buffer.Len() == 0 {
		return
	}
	s.write(s.buffer.Bytes())
	s.buffer.Reset()
}

// writeCursor sends a cursor without an event.
func (s *sseWriter) writeCursor(cursor string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeHeader()
	s.cursor = ""
	s.buffer.WriteString("id: " + cursor + "\n\n")
	s.flushNow()
	return s.err
}

// noteCursor remembers the cursor after an event that was left out.
func (s *sseWriter) noteCursor(cursor string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cursor = cursor
}

// keepAlive sends a keep-alive: the newest cursor without an event, or a comment.
func (s *sseWriter) keepAlive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := ": alive\n\n"
	if s.cursor != "" {
		line, s.cursor = "id: "+s.cursor+"\n\n", ""
	}
	s.writeHeader()
	s.buffer.WriteString(line)
	s.flushNow()
	return s.err
}

// write writes to the reader, which has a time for it. The caller holds mu.
func (s *sseWriter) write(p []byte) {
	if s.err != nil || s.closed {
		return
	}
	// A connection that cannot have a deadline is one of a test.
	_ = s.control.SetWriteDeadline(time.Now().Add(slowReaderMax))
	if _, err := s.w.Write(p); err != nil {
		s.err = fmt.Errorf("httpapi: stream: %w", err)
	}
}

// flushNow sends what was written. The caller holds mu.
func (s *sseWriter) flushNow() {
	if s.flush != nil {
		s.flush.Stop()
		s.flush = nil
	}
	s.writeBuffer()
	if s.err != nil || s.closed {
		return
	}
	if err := s.control.Flush(); err != nil {
		s.err = fmt.Errorf("httpapi: stream: %w", err)
	}
}

func (s *sseWriter) flushLater() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushNow()
}

// close ends the use of the response, which must not outlive its handler.
func (s *sseWriter) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flush != nil {
		s.flush.Stop()
	}
	s.writeBuffer()
	s.closed = true
}
