package mcpclient

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

// remoteTool is a tool of a server.
type remoteTool struct {
	hub     *Hub
	spec    model.ToolSpec
	dir     string
	timeout time.Duration
	find    func() (Server, error)
}

func (t *remoteTool) Spec() model.ToolSpec { return t.spec }

func (t *remoteTool) Limits() tool.Limits { return tool.Limits{Timeout: t.timeout} }

// Call asks the server, once: whether it may be asked again is for the class of
// the tool to say.
func (t *remoteTool) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	def, err := t.find()
	if err != nil {
		return tool.Result{}, err
	}
	s, err := t.hub.acquireServer(def, t.dir)
	if err != nil {
		return tool.Result{}, err
	}
	defer s.endCall()
	l, err := s.acquireSession(ctx)
	if err != nil {
		return tool.Result{}, markTransient(ctx, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.hub.life, func() { cancel(ErrClosed) })()
	listing, err := l.currentOffers(ctx)
	if err != nil {
		return tool.Result{}, s.sessionError(ctx, l, err)
	}
	o, ok := listing.findOffer(t.spec.Name)
	if !ok || o.Spec.Description != t.spec.Description || o.Spec.Schema != t.spec.Schema {
		return tool.Result{}, fmt.Errorf("%w: %s at the server %s; it did not run. `%s` shows the differences", ErrChanged, t.spec.Name, def.Name, def.Remedy("allow"))
	}
	r, err := l.callInTime(ctx, o, c)
	if err != nil {
		err = s.sessionError(ctx, l, err)
	}
	r.Text = l.secrets.MaskValues(r.Text)
	return r, err
}

// markTransient marks errors that a later attempt may avoid.
func markTransient(ctx context.Context, err error) error {
	if ctx.Err() == nil && (errors.Is(err, ErrDown) || errors.Is(err, ErrStart)) {
		return tool.Transient(err)
	}
	return err
}

// undelivered is the error code of a failure in transit, as opposed to an error that
// the server returned.
const undelivered = -32005

// sessionError translates an error of a session into the result of the call.
func (s *serverProcess) sessionError(ctx context.Context, l *liveSession, err error) error {
	var refused *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &refused) && refused.Code != undelivered && !errors.Is(err, sdk.ErrConnectionClosed):
		return fmt.Errorf("the server %s refuses the call: %s", s.def.Name, l.shownText(refused.Message))
	}
	s.dropSession(l, err)
	return tool.Transient(fmt.Errorf("%w: %s: %s%s; what it did is unknown", ErrDied, s.def.Name, l.shownText(err.Error()), l.lastStderr()))
}

// lateGrace is how long the client waits for a call that is over: to notify its
// server, and to receive the last progress.
const lateGrace = 500 * time.Millisecond

// callInTime does one request. It returns when ctx ends, even if the server does
// not read its input.
func (l *liveSession) callInTime(ctx context.Context, o Offer, c tool.Call) (r tool.Result, err error) {
	done := make(chan struct{})
	var late tool.Result
	var why error
	go func() { // ends with the write, the server or the hub
		defer close(done)
		late, why = l.callOnce(ctx, o, c)
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

// callOnce does one request.
func (l *liveSession) callOnce(ctx context.Context, o Offer, c tool.Call) (tool.Result, error) {
	if o.Raw == "" {
		return l.readResource(ctx, c)
	}
	params := &sdk.CallToolParams{Name: o.Raw, Arguments: json.RawMessage(c.Args), Meta: describeCall(c)}
	token := strconv.FormatInt(l.tokens.Add(1), 10)
	params.SetProgressToken(token)
	last := &callProgress{tell: c.Progress}
	l.hear.Store(token, last)
	defer l.hear.Delete(token)
	res, err := l.session.CallTool(ctx, params)
	if err != nil {
		return tool.Result{Text: last.lastProgress()}, err
	}
	reportMetrics(res.Meta, c)
	return renderResult(res), nil
}

// noteProgress receives the progress that a server reports about a call under way.
func (l *liveSession) noteProgress(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
	if to, ok := l.hear.Load(fmt.Sprint(r.Params.ProgressToken)); ok {
		said := *r.Params
		said.Message = l.secrets.MaskValues(said.Message) // before it is cut
		to.(*callProgress).noteProgress(&said)
	}
}
