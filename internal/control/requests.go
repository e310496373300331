package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/fairqueue"
	"github.com/troupe-run/troupe/internal/control/workgroup"
	"github.com/troupe-run/troupe/internal/refuse"
)

// requestServer serves the requests that come over NATS: it orders them, calls the handler of their verb, and sends a
// reply or a refusal.
type requestServer struct {
	cfg  *Config
	work *workgroup.Group
}

// traceKey is the key of the trace context that the header of a request names.
type traceKey struct{}

// anyoneKey is the key of whether a request may be of a connection without a credential: it comes from another
// account, so the server named its reply subject, or has none, so its sender is unknown.
type anyoneKey struct{}

// newRequestHandler answers each request in its own goroutine, so that a slow request delays no
// other. Queue decides the order of the requests.
func (s *requestServer) newRequestHandler(verb string, serve verbHandler) func(micro.Request) {
	requests := fairqueue.New()
	return func(r micro.Request) {
		owner := s.cfg.Names.ParseOwner(r.Subject())
		if err := s.checkReply(owner, r.Reply()); err != nil {
			s.cfg.Logger.Debug("a request is not served", "verb", verb, "error", err)
			return
		}
		var t *fairqueue.Ticket
		t = fairqueue.NewTicket(owner, r.Reply(), fairqueue.SizeOf(r), func() {
			if !s.work.Start(func() { defer requests.Leave(t); s.serveOne(verb, serve, r) }) {
				requests.Leave(t)
				s.sendRefusal(verb, r, refuse.ErrClosing)
			}
		}, func() { s.sendRefusal(verb, r, refuse.ErrBusy) })
		// While the logs cannot be written, the copy of a request that waits for them is served: it
		// is refused at once, with the reason.
		if name := r.Headers().Get(client.AskHeader); name != "" && len(name) <= askNameMax && r.Reply() != "" && s.cfg.checkWritable() == nil {
			t.Ask = r.Reply() + " " + name
		}
		requests.Enter(t)
	}
}

// askNameMax is the most bytes of the name of a request; one with a longer name has none.
const askNameMax = 64

// checkReply returns why a request is dropped: no node sends anything to its reply subject, not even a refusal. An owner gets
// answers only in the inbox of that name, which others cannot read, or through a node, which asks in the name of a client of
// its HTTP server.
func (s *requestServer) checkReply(owner, reply string) error {
	if reply != "" && !bus.CanAnswer(reply) {
		return fmt.Errorf("%w: %.200q", errReply, reply)
	}
	if owner == "" || strings.HasPrefix(reply, bus.OwnerInbox(owner)+".") || strings.HasPrefix(reply, bus.NodeClientInbox+".") {
		return nil
	}
	if alone := s.cfg.Cluster == nil && strings.HasPrefix(reply, bus.InboxPrefix(bus.RoleClient)+"."); alone {
		return nil
	}
	return fmt.Errorf("%w: a request of %s must have its reply subject below %s, not %.200q", errReply, owner, bus.OwnerInbox(owner), reply)
}

// serveOne serves one request and sends its reply.
func (s *requestServer) serveOne(verb string, serve verbHandler, r micro.Request) {
	ctx, cancel := context.WithTimeout(s.work.Ctx, bounds.RequestTimeout)
	defer cancel()
	ctx = context.WithValue(ctx, traceKey{}, r.Headers().Get(client.TraceHeader))
	ctx = context.WithValue(ctx, anyoneKey{}, r.Reply() == "" || strings.HasPrefix(r.Reply(), bus.ServerInbox))
	ctx = context.WithValue(ctx, agentKey{}, r.Headers().Get(bus.AgentHeader) != "")
	ctx = context.WithValue(ctx, ownerKey{}, s.cfg.Names.ParseOwner(r.Subject()))
	reply, err := s.work.CallRecovered(ctx, verb, serve, s.cfg.Redact(r.Data()))
	var data []byte
	if err == nil {
		data, err = json.Marshal(reply)
	}
	if err == nil {
		err = s.sendReply(r, nil, data)
	}
	if err != nil {
		s.sendRefusal(verb, r, err)
	}
}

// sendReply answers without the library's help: the library's own function may only be called
// before its handler has returned.
func (s *requestServer) sendReply(r micro.Request, header nats.Header, data []byte) error {
	if r.Reply() == "" {
		return nil // the client wants no reply
	}
	if !bus.CanAnswer(r.Reply()) {
		return fmt.Errorf("%w: %q", errReply, r.Reply())
	}
	data = s.cfg.Redact(data)
	if most := s.cfg.Conn.MaxPayload(); int64(len(data)) > most {
		return &client.Error{Code: client.CodeLimit, Text: fmt.Sprintf("the reply has %d bytes, and a message at most %d", len(data), most), Hint: "`troupe events` reads a run in pages"}
	}
	return s.cfg.Conn.PublishMsg(&nats.Msg{Subject: r.Reply(), Header: header, Data: data})
}

// errReply: a request wants its reply at a subject that is not a client's inbox.
var errReply = errors.New("control: answers go to the inboxes of clients and observers only")

// sendRefusal answers a request with an error: headers for programs, and a body for people.
func (s *requestServer) sendRefusal(verb string, r micro.Request, err error) {
	known := s.cfg.newRefusal(verb, err)
	header := nats.Header{micro.ErrorCodeHeader: {known.Code}, micro.ErrorHeader: {known.Text}}
	if known.Hint != "" {
		header[client.HintHeader] = []string{known.Hint}
	}
	if known.Reason != "" {
		header[client.ReasonHeader] = []string{known.Reason}
	}
	if known.Retry > 0 {
		header[client.RetryHeader] = []string{strconv.FormatInt(known.Retry.Milliseconds(), 10)}
	}
	// `nats req --raw` shows the body only
	body, err := json.Marshal(map[string]string{"error": known.Text, "code": known.Code, "hint": known.Hint})
	if err == nil {
		err = s.sendReply(r, header, body)
	}
	if err != nil {
		s.cfg.Logger.Warn("a refusal was not delivered", "verb", verb, "error", err)
	}
}
