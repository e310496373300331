package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// remote is a tool of a server.
type remote struct {
	hub     *Hub
	spec    model.ToolSpec
	dir     string
	timeout time.Duration
	find    func() (Server, error)
}

func (t *remote) Spec() model.ToolSpec { return t.spec }

func (t *remote) Limits() tool.Limits { return tool.Limits{Timeout: t.timeout} }

// Call asks the server, once: whether it may be asked again is for the class of
// the tool to say.
func (t *remote) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	def, err := t.find()
	if err != nil {
		return tool.Result{}, err
	}
	s, err := t.hub.server(def, t.dir)
	if err != nil {
		return tool.Result{}, err
	}
	defer s.leave()
	l, err := s.use(ctx)
	if err != nil {
		return tool.Result{}, passing(ctx, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.hub.life, func() { cancel(ErrClosed) })()
	listing, err := l.offers(ctx)
	if err != nil {
		return tool.Result{}, s.outcome(ctx, l, err)
	}
	o, ok := listing.find(t.spec.Name)
	if !ok || o.Spec.Description != t.spec.Description || o.Spec.Schema != t.spec.Schema {
		return tool.Result{}, fmt.Errorf("%w: %s at the server %s; it did not run. `%s` shows what is different", ErrChanged, t.spec.Name, def.Name, def.Remedy("allow"))
	}
	r, err := l.patiently(ctx, o, c)
	if err != nil {
		err = s.outcome(ctx, l, err)
	}
	r.Text = l.secrets.Values(r.Text)
	return r, err
}

// passing marks what may be better a little later.
func passing(ctx context.Context, err error) error {
	if ctx.Err() == nil && (errors.Is(err, ErrDown) || errors.Is(err, ErrStart)) {
		return tool.Transient(err)
	}
	return err
}

// undelivered is the code of an error that stands for one of the way, not of the
// server's.
const undelivered = -32005

// outcome is what an error of a session means for the call.
func (s *server) outcome(ctx context.Context, l *live, err error) error {
	var refused *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &refused) && refused.Code != undelivered && !errors.Is(err, sdk.ErrConnectionClosed):
		return fmt.Errorf("the server %s refuses the call: %s", s.def.Name, l.shown(refused.Message))
	}
	s.drop(l, err)
	return tool.Transient(fmt.Errorf("%w: %s: %s%s; what it did is unknown", ErrDied, s.def.Name, l.shown(err.Error()), l.last()))
}

// lateGrace is how long a call that is over is waited for: to tell its server,
// and to hear what it said last.
const lateGrace = 500 * time.Millisecond

// patiently does one request, and comes back when ctx ends also where the server
// does not read what it is told.
func (l *live) patiently(ctx context.Context, o Offer, c tool.Call) (r tool.Result, err error) {
	done := make(chan struct{})
	var late tool.Result
	var why error
	go func() { // ends with the write, the server or the hub
		defer close(done)
		late, why = l.call(ctx, o, c)
	}()
	select {
	case <-done:
		return late, why
	case <-ctx.Done():
	}
	timer := time.NewTimer(lateGrace)
	defer timer.Stop()
	select {
	case <-done:
		return late, why
	case <-timer.C:
		return tool.Result{}, context.Cause(ctx)
	}
}

// call does one request.
func (l *live) call(ctx context.Context, o Offer, c tool.Call) (tool.Result, error) {
	if o.Raw == "" {
		return l.read(ctx, c)
	}
	params := &sdk.CallToolParams{Name: o.Raw, Arguments: json.RawMessage(c.Args), Meta: sdk.Meta{}}
	if c.Trace != "" {
		params.Meta["traceparent"] = c.Trace
	}
	token := strconv.FormatInt(l.tokens.Add(1), 10)
	params.SetProgressToken(token)
	last := &progress{tell: c.Progress}
	l.hear.Store(token, last)
	defer l.hear.Delete(token)
	res, err := l.session.CallTool(ctx, params)
	if err != nil {
		return tool.Result{Text: last.said()}, err
	}
	return result(res), nil
}

// progressed is told what a server says of a call that is under way.
func (l *live) progressed(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
	if to, ok := l.hear.Load(fmt.Sprint(r.Params.ProgressToken)); ok {
		said := *r.Params
		said.Message = l.secrets.Values(said.Message) // before it is cut
		to.(*progress).hear(&said)
	}
}
