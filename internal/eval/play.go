package eval

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/troupe-run/troupe/internal/orchestrator"
	"github.com/troupe-run/troupe/model"
)

// scriptedModels are the scripted models of a trial. They record the requests, and live as long as
// the trial.
type scriptedModels struct {
	clients map[string]model.Client // by route
	cancels *cancelWait
	onAsk   func(agentID string) // told of each request of an agent's turn

	mu      sync.Mutex
	prompts []string // the text of each request
}

func (c *Case) newScriptedModels() *scriptedModels {
	p := &scriptedModels{clients: map[string]model.Client{routeName: c.script.Client("")}}
	for _, route := range orchestrator.RouteNames() {
		p.clients[builtin+route] = orchestrator.New(route)
	}
	for route, s := range c.scripts {
		p.clients[route] = s.Client("")
	}
	if c.opened != nil { // the script has the replies of all models of the run
		for _, route := range c.opened.Models() {
			p.clients[route] = p.clients[routeName]
		}
	}
	return p
}

// clientFor finds the script of a route.
func (p *scriptedModels) clientFor(route string) (model.Client, string, error) {
	c, ok := p.clients[route]
	if !ok {
		return nil, "", &model.Error{Class: model.Misconfigured, Unbilled: true, Message: fmt.Sprintf("the case has no model %q", route)}
	}
	return &recordingClient{Client: c, all: p}, route, nil
}

// builtin begins the routes of clients that are no models and need no script.
const builtin = "builtin/"

type recordingClient struct {
	model.Client
	all *scriptedModels
}

// Complete plays the scripted reply and records the request.
func (p *recordingClient) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	text := promptText(req)
	p.all.mu.Lock()
	p.all.prompts = append(p.all.prompts, text)
	p.all.mu.Unlock()
	if req.Caller.ID == "" { // a summary
		return p.Client.Complete(ctx, req, emit)
	}
	wait := p.all.cancels.begin(Point{After: MockAsked, Of: req.Caller.ID}, req.Caller.ID)
	p.all.onAsk(req.Caller.ID)
	reply, err := p.Client.Complete(ctx, req, emit)
	if err == nil {
		wait(ctx)
	}
	return reply, err
}

// errorMark precedes a tool result that the model receives as an error.
const errorMark = "[error] "

// promptText returns all text of a request.
func promptText(req model.Request) string {
	var b strings.Builder
	b.WriteString(req.System + "\n" + req.Dynamic)
	for _, m := range req.Messages {
		b.WriteString("\n" + m.Text)
		for _, r := range m.Results {
			b.WriteString("\n")
			if r.Error {
				b.WriteString(errorMark)
			}
			b.WriteString(r.Text)
		}
	}
	return b.String()
}

func (p *scriptedModels) sentPrompts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.prompts
}
