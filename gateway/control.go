// Package gateway holds the doors of a node: the control service on NATS
// (`troupe.cmd.<verb>`), the index of runs, and what is read back from logs
// for those who ask. It decides nothing about runs: it appends commands to
// logs and folds logs.
package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// Config of the control service. All but Logger and ReadOnly are required.
type Config struct {
	// Conn answers requests. It must not be allowed to write logs: a request
	// names the subject of its own answer.
	Conn  *nats.Conn
	Names bus.Names
	Post  mailbox.Store
	Node  *actors.Node
	Runs  *Runs
	// Build makes the first entry of a run from a request, or refuses with a *client.Error.
	Build func(client.RunRequest) (supervisor.Opened, client.RunAccepted, error)
	// Name of the node.
	Name string
	// Bare leaves out of events what people, models and tools said.
	Bare   bool
	Logger *slog.Logger // default: discard
}

// Control is the running service.
type Control struct {
	cfg Config
	svc micro.Service
}

// requestTimeout bounds one request.
const requestTimeout = 12 * time.Second

// Serve answers `troupe.cmd.<verb>` until Close.
func Serve(cfg Config) (*Control, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Control{cfg: cfg}
	svc, err := micro.AddService(cfg.Conn, micro.Config{Name: "troupe", Version: version(),
		Description: "troupe node " + cfg.Name, Metadata: map[string]string{"node": cfg.Name}})
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	c.svc = svc
	for verb, serve := range map[string]func(context.Context, []byte) (any, error){
		"run": handle(c.run), "get": handle(c.get), "list": handle(c.list), "cancel": handle(c.cancel),
		"steer": handle(c.steer), "answer": handle(c.answer), "events": handle(c.events),
		"policy": handle(c.policy), "budget": handle(c.budget), "questions": handle(c.questions), "transcript": handle(c.transcript),
	} {
		subject, err := cfg.Names.Cmd(verb)
		if err == nil {
			err = svc.AddEndpoint(verb, micro.HandlerFunc(c.respond(verb, serve)), micro.WithEndpointSubject(subject))
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("gateway: %s: %w", verb, err), svc.Stop())
		}
	}
	return c, nil
}

// Close stops answering.
func (c *Control) Close() error { return c.svc.Stop() }

// semantic version of the service, for discovery.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && len(info.Main.Version) > 1 && info.Main.Version[0] == 'v' {
		return info.Main.Version[1:]
	}
	return "0.1.0"
}

// handle decodes a request strictly: an unknown field is a mistake of the
// client, and the answer names it.
func handle[R any](serve func(context.Context, R) (any, error)) func(context.Context, []byte) (any, error) {
	return func(ctx context.Context, data []byte) (any, error) {
		var r R
		if err := strict(data, &r); err != nil {
			return nil, &client.Error{Code: client.CodeBad, Text: err.Error(), Hint: "send a JSON object with the fields of docs/control.md"}
		}
		return serve(ctx, r)
	}
}

// respond answers one request in a goroutine of its own, so that a slow one
// holds up nobody.
func (c *Control) respond(verb string, serve func(context.Context, []byte) (any, error)) func(micro.Request) {
	return func(r micro.Request) {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
			defer cancel()
			reply, err := serve(ctx, r.Data())
			if err == nil {
				err = r.RespondJSON(reply)
			}
			if err != nil {
				c.refuse(verb, r, err)
			}
		}()
	}
}

func (c *Control) refuse(verb string, r micro.Request, err error) {
	var known *client.Error
	if !errors.As(err, &known) {
		known = &client.Error{Code: client.CodeInternal, Text: err.Error()}
	}
	header := micro.Headers{}
	if known.Hint != "" {
		header[client.HintHeader] = []string{known.Hint}
	}
	if err := r.Error(known.Code, known.Text, nil, micro.WithHeaders(header)); err != nil {
		c.cfg.Logger.Warn("a refusal was not delivered", "verb", verb, "error", err)
	}
}

// run opens a run. The log comes first: the index is written after it.
func (c *Control) run(ctx context.Context, r client.RunRequest) (any, error) {
	if err := bus.Token(r.RunID); err != nil {
		return nil, &client.Error{Code: client.CodeBad, Text: "run_id: " + err.Error(), Hint: "use a lower-case ULID"}
	}
	if known, ok, err := c.cfg.Runs.Get(ctx, r.RunID); err != nil {
		return nil, err
	} else if ok {
		return client.RunAccepted{RunID: r.RunID, Model: known.Model, Why: "the run exists already"}, c.cfg.Node.Resume(ctx, r.RunID)
	}
	if r.Resume {
		return nil, notFound(r.RunID)
	}
	if used, most, err := c.cfg.Post.Room(ctx); err == nil && most > 0 && used*100 > most*mailbox.RoomPercent {
		return nil, &client.Error{Code: client.CodeLimit, Text: "the logs are too full for another run", Hint: "remove old runs, or give the streams more room"}
	}
	opened, accepted, err := c.cfg.Build(r)
	if err != nil {
		return nil, err
	}
	if err := c.cfg.Node.Open(ctx, opened); err != nil {
		return nil, err
	}
	info := client.RunInfo{RunID: r.RunID, State: "live", Title: title(r.Prompt), Model: accepted.Model, Node: c.cfg.Name,
		Started: time.Now().UTC().Format(time.RFC3339)}
	return accepted, c.cfg.Runs.Put(ctx, info)
}

const titleBytes = 80

func title(prompt string) string {
	for i := range prompt {
		if i >= titleBytes {
			return prompt[:i] + "…"
		}
	}
	return prompt
}

func notFound(run string) error {
	return &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("there is no run %q", run), Hint: "`troupe list` shows the runs"}
}

// known fails unless the run is there.
func (c *Control) known(ctx context.Context, run string) (client.RunInfo, error) {
	i, ok, err := c.cfg.Runs.Get(ctx, run)
	if err == nil && !ok {
		err = notFound(run)
	}
	return i, err
}

func (c *Control) get(ctx context.Context, r client.GetRequest) (any, error) {
	info, err := c.known(ctx, r.RunID)
	if err != nil {
		return info, err
	}
	return c.fold(ctx, info)
}

// fold brings a row up to date from the supervisor's log.
func (c *Control) fold(ctx context.Context, info client.RunInfo) (client.RunInfo, error) {
	s, err := Fold(ctx, c.cfg.Post, info.RunID)
	if err != nil {
		return info, err
	}
	if s.Phase == "" {
		return info, nil // its log is gone, or not yet there: the row is all there is
	}
	result := s.Result()
	info.Result = &result
	switch {
	case s.Phase == supervisor.Over:
		info.State = "finished"
	case s.Parked > 0 && s.Pool.Held.Zero() && s.Waiting() == 0:
		info.State = "parked"
	}
	return info, nil
}

func (c *Control) list(ctx context.Context, _ struct{}) (any, error) { return c.cfg.Runs.List(ctx) }

func (c *Control) command(ctx context.Context, run, to, request, kind string, body any) (any, error) {
	if _, err := c.known(ctx, run); err != nil {
		return nil, err
	}
	if err := errors.Join(bus.Token(to), bus.Token(request)); err != nil {
		return nil, &client.Error{Code: client.CodeBad, Text: err.Error(), Hint: "agent and request_id are made of a-z, 0-9, - and _"}
	}
	return struct{}{}, c.cfg.Node.Command(ctx, mailbox.At(run, to), request, kind, body)
}

func (c *Control) cancel(ctx context.Context, r client.CancelRequest) (any, error) {
	f := agent.Canceled{Why: r.Why, Now: r.Now, Of: agent.ID(r.Agent)}
	return c.command(ctx, r.RunID, mailbox.Super, r.Request, f.Kind(), f)
}

func (c *Control) steer(ctx context.Context, r client.SteerRequest) (any, error) {
	if r.Agent == "" {
		r.Agent = string(agent.Root)
	}
	f := agent.Steered{Text: r.Text}
	return c.command(ctx, r.RunID, r.Agent, r.Request, f.Kind(), f)
}

func (c *Control) policy(ctx context.Context, r client.PolicyRequest) (any, error) {
	if err := r.Policy.Validate(); err != nil {
		return nil, &client.Error{Code: client.CodeBad, Text: err.Error()}
	}
	f := supervisor.PolicySet{Policy: r.Policy}
	return c.command(ctx, r.RunID, mailbox.Super, r.Request, f.Kind(), f)
}

func (c *Control) budget(ctx context.Context, r client.BudgetRequest) (any, error) {
	f := supervisor.LimitSet{Limits: r.Limits}
	return c.command(ctx, r.RunID, mailbox.Super, r.Request, f.Kind(), f)
}

// answer brings a person's decision to the agent that asked.
func (c *Control) answer(ctx context.Context, r client.AnswerRequest) (any, error) {
	info, err := c.known(ctx, r.RunID)
	if err != nil {
		return nil, err
	}
	if info, err = c.fold(ctx, info); err != nil {
		return nil, err
	}
	for _, a := range info.Result.Agents {
		if a.Query != nil && a.Query.Query == r.Query && (r.Agent == "" || r.Agent == string(a.ID)) {
			f := agent.Answered{Query: r.Query, Decision: r.Decision, Text: r.Text}
			return c.command(ctx, r.RunID, string(a.ID), r.Request, f.Kind(), f)
		}
	}
	return nil, &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("no open query %q in %s", r.Query, r.RunID),
		Hint: "`troupe questions` shows the open ones"}
}

// Question is one open query of a run.
type Question struct {
	RunID string     `json:"run_id"`
	Agent agent.ID   `json:"agent"`
	Query agent.Park `json:"query"`
}

func (c *Control) questions(ctx context.Context, _ struct{}) (any, error) {
	list, err := c.cfg.Runs.List(ctx)
	if err != nil {
		return nil, err
	}
	questions := []Question{}
	for _, info := range list {
		if info.State == "finished" {
			continue
		}
		info, err := c.fold(ctx, info)
		if err != nil {
			return nil, err
		}
		for _, a := range info.Result.Agents {
			if a.Query != nil {
				questions = append(questions, Question{info.RunID, a.ID, *a.Query})
			}
		}
	}
	return questions, nil
}

func strict(data []byte, into any) error {
	if len(data) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the request does not decode: %w", err)
	}
	return nil
}
