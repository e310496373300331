package agentprotocol

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/troupe-run/troupe/internal/clip"
)

// The types of chunks, and the status values. The protocol defines ack; callers ignore others, which show that the
// stream is alive and which run it is of.
const (
	chunkResponse = "response"
	chunkStatus   = "status"
	chunkQuery    = "query"

	statusAck       = "ack"
	statusWorking   = "working"
	statusWaiting   = "waiting"
	statusRunPrefix = "run:"
)

const (
	// chunkTextMax is the most bytes of text in one response chunk.
	chunkTextMax = 32 << 10
	// errorHeaderMax is the most bytes of the error's description in a header.
	errorHeaderMax = 200
)

// chunk is one message of a reply.
type chunk struct {
	Type string `json:"type"`
	Data any    `json:"data"`
}

// query is the data of a query chunk.
type query struct {
	ID           string `json:"id"`
	ReplySubject string `json:"reply_subject"`
	Prompt       string `json:"prompt"`
}

// replyStream writes the reply to one prompt. Nothing follows its end.
type replyStream struct {
	conn    *nats.Conn
	subject string
	redact  func([]byte) []byte
	logger  *slog.Logger

	mu     sync.Mutex
	failed bool // only the end may follow
	ended  bool
}

// send sends a chunk.
func (s *replyStream) send(kind string, data any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.failed && !s.ended {
		s.publish(nil, s.redact(encode(chunk{kind, data})))
	}
}

// sendText sends text in as many chunks as it needs.
func (s *replyStream) sendText(text string) {
	for text != "" {
		n := min(len(text), chunkTextMax)
		for n < len(text) && n > chunkTextMax-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		s.send(chunkResponse, text[:n])
		text = text[n:]
	}
}

// fail sends the error that ends the stream. The caller ends it.
func (s *replyStream) fail(p problem) {
	text := strings.Join(strings.Fields(string(s.redact([]byte(p.Message)))), " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed || s.ended {
		return
	}
	s.failed = true
	s.publish(nats.Header{micro.ErrorCodeHeader: {p.code}, micro.ErrorHeader: {clip.Text(text, errorHeaderMax)}}, s.redact(encode(p)))
}

// end sends the terminator: a message without a byte and without a header.
func (s *replyStream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		s.publish(nil, nil)
	}
}

// publish sends a message. The caller holds mu.
func (s *replyStream) publish(header nats.Header, data []byte) {
	if err := s.conn.PublishMsg(&nats.Msg{Subject: s.subject, Header: header, Data: data}); err != nil {
		s.logger.Debug("a chunk was not sent", "error", err)
	}
}

// encode writes JSON as people read it: with < and & as they are.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // all types here encode
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
