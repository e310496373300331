// Package mcpserver offers runs and agents as tools of the Model Context Protocol: the control verbs of a
// node, and one tool for each agent.
package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/abandon"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/internal/telemetry"
)

const (
	// listMax is the most runs of list_runs, and listDefault how many there are unless the call says
	// otherwise.
	listMax     = 200
	listDefault = 20
	// waitMax is the longest that the tool run waits for the end of its run.
	waitMax = 5 * time.Minute
	// progressInterval is how often an agent's tool says how far its run is.
	progressInterval = 2 * time.Second
	// agentToolPrefix begins the names of the tools that are agents.
	agentToolPrefix = "agent_"
)

// Config of the servers.
type Config struct {
	Client  *client.Client
	Version string
	// Agents lists the agents that are offered as tools: see ListAgents.
	Agents func() []Agent
	// Dir is where a run works whose call names no directory. Default: the first root of the node.
	Dir string
	// Model is that of runs whose call names none. Default: the agent's or the node's.
	Model string
	// Prepare completes a request before it is sent; its error refuses the call. Default: requests stay as they are.
	Prepare func(*client.RunRequest) error
	// Observe gets the method of each request that was answered, the tool that it called, and how that went. Default: nothing does.
	Observe func(method, tool string, took time.Duration, failed bool)
	// Spans gets a span of each call of a tool, whose run is its child; nil: there are none.
	Spans *telemetry.Exporter
	// Answers offers the tool answer. A model calls the tools of an MCP client: with it, a model approves calls.
	Answers bool
}

// Agent is an agent that is a tool.
type Agent struct{ Name, Description string }

// ListAgents lists the agents that are tools: own, the built-in one that begins runs without a model, and those of the
// user's agent files that are exported. With the error, which names broken files, the list has the others.
func ListAgents(own ...Agent) ([]Agent, error) {
	list := slices.Clone(own)
	for _, b := range investigator.BuiltinAgents() {
		if b.Name == "coordinator" {
			list = append(list, Agent{Name: b.Name, Description: b.Description})
		}
	}
	defs, _, err := agentfile.Load(agentfile.UserDirs()...)
	for _, d := range defs {
		known := slices.ContainsFunc(list, func(a Agent) bool { return a.Name == d.Name })
		if d.Export && !known {
			list = append(list, Agent{Name: d.Name, Description: d.Description})
		}
	}
	return list, err
}

// newServer makes a server for one request, or one connection, whose context ends when the client closes it,
// with the agents of this moment. calls counts the agents' tools that are called.
func newServer(request context.Context, cfg Config, calls *sync.WaitGroup, isNodeGone func() bool) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "troupe", Title: "troupe", Version: cfg.Version}, nil)
	tools := toolNames{}
	s.AddReceivingMiddleware(cfg.traceCalls(tools))
	if cfg.Observe != nil {
		s.AddReceivingMiddleware(cfg.observer(tools))
	}
	v := verbs{cfg, calls, isNodeGone, func(do func()) func() bool { return context.AfterFunc(request, do) }}
	addTool(s, tools, &mcp.Tool{Name: "list_runs", Description: "List the runs, newest first.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, v.listRuns)
	addTool(s, tools, &mcp.Tool{Name: "run", Description: "Start a run of an agent. Returns its id, and its result if wait_seconds is given and it ends in that time."}, v.run)
	addTool(s, tools, &mcp.Tool{Name: "get", Description: "Get the state of a run and its result.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, v.get)
	addTool(s, tools, &mcp.Tool{Name: "cancel", Description: "Stop a run at its next safe boundary, or at once with now."}, v.cancel)
	if cfg.Answers {
		addTool(s, tools, &mcp.Tool{Name: "answer", Description: "Answer a question that an agent of a run asks: decision is approve, deny, skip or text."}, v.answer)
	}
	for _, a := range cfg.Agents() {
		addTool(s, tools, &mcp.Tool{Name: agentToolPrefix + a.Name, Description: "Give a task to the agent " + a.Name + ", and wait for its answer. " + a.Description}, v.agentTool(a.Name))
	}
	return s
}

// NewHandler serves the protocol over HTTP, each request for itself, so any node may answer it.
func NewHandler(cfg Config) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		return newServer(r.Context(), cfg, new(sync.WaitGroup), func() bool { return false })
	},
		&mcp.StreamableHTTPOptions{Stateless: true, DisableLocalhostProtection: true}) // the HTTP API has checked Host and Origin
}

// Serve serves the protocol on two streams. It runs until in ends or ctx is done; a cause other than context.Canceled
// means that the node is gone. The runs of agents' tools that are called then are canceled before it returns, unless no
// node is left.
func Serve(ctx context.Context, cfg Config, in io.ReadCloser, out io.WriteCloser) error {
	connection, leave := context.WithCancel(ctx)
	defer leave()
	var calls sync.WaitGroup
	isNodeGone := func() bool { return ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.Canceled) }
	shared := &lockedWriter{WriteCloser: out}
	lines := newLineFilter(endingReader{in, leave}, shared)
	err := newServer(connection, cfg, &calls, isNodeGone).Run(ctx, &mcp.IOTransport{Reader: lines, Writer: shared})
	leave()
	calls.Wait()
	return err
}

// endingReader calls a function when the stream ends: the protocol's library first waits for the calls that go on.
type endingReader struct {
	io.ReadCloser
	ended func()
}

func (r endingReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil {
		r.ended()
	}
	return n, err
}

// verbs are the control verbs as tools, for one request or connection.
type verbs struct {
	Config
	calls *sync.WaitGroup // of agents' tools
	// isNodeGone reports whether no node is left that could cancel a run.
	isNodeGone func() bool
	// onLeave calls a function when the client closes the request, unless stop is called before. The context of a tool
	// goes on then: the protocol lets a client come back for an answer, which this server does not keep.
	onLeave func(do func()) (stop func() bool)
}

type listArguments struct {
	Limit int    `json:"limit,omitempty" jsonschema:"most runs; 20 by default, at most 200"`
	State string `json:"state,omitempty" jsonschema:"live, queued, parked, finished or interrupted"`
}

type runList struct {
	Runs []client.RunInfo `json:"runs"`
}

func (v verbs) listRuns(ctx context.Context, _ *mcp.CallToolRequest, in listArguments) (*mcp.CallToolResult, any, error) {
	limit := in.Limit
	if limit <= 0 {
		limit = listDefault
	}
	list, err := v.Client.ListRuns(ctx, client.ListRequest{Limit: min(limit, listMax), State: client.RunState(in.State)})
	return nil, runList{list}, explain(err)
}

type runArguments struct {
	Prompt       string  `json:"prompt" jsonschema:"the task"`
	Agent        string  `json:"agent,omitempty" jsonschema:"name of the agent; coordinator by default"`
	Dir          string  `json:"dir,omitempty" jsonschema:"directory to work in, below a root of the node"`
	Model        string  `json:"model,omitempty" jsonschema:"PROVIDER/MODEL"`
	MaxTokens    int64   `json:"max_tokens,omitempty" jsonschema:"token limit of the whole run"`
	MaxBudgetUSD float64 `json:"max_budget_usd,omitempty" jsonschema:"money limit of the whole run"`
	RunID        string  `json:"run_id,omitempty" jsonschema:"a lower-case ULID: the same call again starts nothing"`
	WaitSeconds  int     `json:"wait_seconds,omitempty" jsonschema:"how long to wait for the result; at most 300"`
}

func (a runArguments) request() client.RunRequest {
	r := client.RunRequest{RunID: a.RunID, Prompt: a.Prompt, Agent: a.Agent, Dir: a.Dir, Model: a.Model, MaxTokens: a.MaxTokens, MaxBudgetUSD: a.MaxBudgetUSD, Outside: true}
	if r.RunID == "" {
		r.RunID = client.NewID()
	}
	return r
}

func (v verbs) run(ctx context.Context, call *mcp.CallToolRequest, in runArguments) (*mcp.CallToolResult, any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer v.onLeave(cancel)()
	asked, err := v.prepare(ctx, in.request(), call)
	if err != nil {
		return nil, nil, explain(err)
	}
	accepted, err := v.Client.Run(context.WithoutCancel(ctx), asked)
	wait := min(time.Duration(in.WaitSeconds)*time.Second, waitMax)
	if err != nil || wait <= 0 {
		return nil, accepted, explain(err)
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	info, err := v.Client.Wait(waiting, accepted.RunID)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		info, err = v.Client.Get(ctx, accepted.RunID)
	}
	return nil, info, explain(err)
}

// prepare completes a request with what the operator of the server has named, and with the trace of the call.
func (v verbs) prepare(ctx context.Context, r client.RunRequest, call *mcp.CallToolRequest) (client.RunRequest, error) {
	r.Dir, r.Model, r.Trace = cmp.Or(r.Dir, v.Dir), cmp.Or(r.Model, v.Model), requestSpan(ctx).BeginRun(r.RunID, traceOf(call))
	if v.Prepare == nil {
		return r, nil
	}
	err := v.Prepare(&r)
	return r, err
}

// traceOf returns the W3C traceparent of a call: that of its _meta, as the protocol has it, or that of the HTTP request.
func traceOf(call *mcp.CallToolRequest) string {
	trace, _ := call.Params.Meta[client.TraceHeader].(string)
	if trace == "" && call.Extra != nil {
		trace = call.Extra.Header.Get(client.TraceHeader)
	}
	return trace
}

type runName struct {
	RunID string `json:"run_id" jsonschema:"id of the run, or last"`
}

func (v verbs) get(ctx context.Context, _ *mcp.CallToolRequest, in runName) (*mcp.CallToolResult, any, error) {
	run, err := v.Client.FindRun(ctx, in.RunID)
	if err != nil {
		return nil, nil, explain(err)
	}
	info, err := v.Client.Get(ctx, run)
	return nil, info, explain(err)
}

type cancelArguments struct {
	RunID string `json:"run_id" jsonschema:"id of the run"`
	Now   bool   `json:"now,omitempty" jsonschema:"stop at once instead of at the next safe boundary"`
	Why   string `json:"why,omitempty"`
}

func (v verbs) cancel(ctx context.Context, _ *mcp.CallToolRequest, in cancelArguments) (*mcp.CallToolResult, any, error) {
	reply, err := v.Client.Cancel(ctx, client.CancelRequest{RunID: in.RunID, Now: in.Now, Why: in.Why})
	return nil, reply, explain(err)
}

type answerArguments struct {
	RunID    string `json:"run_id" jsonschema:"id of the run"`
	Query    string `json:"query" jsonschema:"id of the question, from get"`
	Decision string `json:"decision" jsonschema:"approve, deny, skip or text"`
	Text     string `json:"text,omitempty" jsonschema:"the answer, for the decision text"`
	Agent    string `json:"agent,omitempty" jsonschema:"the agent that asks; needed if several agents ask under the same query"`
}

type recorded struct {
	RunID    string `json:"run_id"`
	Recorded bool   `json:"recorded"`
}

func (v verbs) answer(ctx context.Context, _ *mcp.CallToolRequest, in answerArguments) (*mcp.CallToolResult, any, error) {
	err := v.Client.Answer(ctx, client.AnswerRequest{RunID: in.RunID, Agent: in.Agent, Query: in.Query, Decision: spec.Decision(in.Decision), Text: in.Text})
	return nil, recorded{in.RunID, err == nil}, explain(err)
}

type taskArguments struct {
	Task string `json:"task" jsonschema:"what the agent is to do"`
	Dir  string `json:"dir,omitempty" jsonschema:"directory to work in, below a root of the node"`
}

// agentTool is the tool that is an agent: it says how far its run is, and cancels it if the caller goes away.
func (v verbs) agentTool(name string) mcp.ToolHandlerFor[taskArguments, any] {
	return func(ctx context.Context, call *mcp.CallToolRequest, in taskArguments) (*mcp.CallToolResult, any, error) {
		v.calls.Add(1)
		defer v.calls.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer v.onLeave(cancel)()
		asked, err := v.prepare(ctx, client.RunRequest{RunID: client.NewID(), Prompt: in.Task, Agent: name, Dir: in.Dir, Outside: true}, call)
		if err != nil {
			return nil, nil, explain(err)
		}
		accepted, err := v.Client.Run(context.WithoutCancel(ctx), asked) // a run that was accepted must be known
		if err != nil && !client.IsRefused(err) {
			v.abandon(asked.RunID) // a node may have accepted it
		}
		if err != nil {
			return nil, nil, explain(err)
		}
		abandoned := make(chan struct{})
		stay := context.AfterFunc(ctx, func() { defer close(abandoned); v.abandon(accepted.RunID) })
		defer func() {
			if !stay() {
				<-abandoned
			}
		}()
		stop, err := v.reportProgress(ctx, call, accepted.RunID)
		if err != nil {
			return nil, nil, explain(err)
		}
		info, err := v.Client.Wait(ctx, accepted.RunID)
		stop()
		if err != nil {
			return nil, nil, explain(err)
		}
		return agentResult(info), nil, nil
	}
}

// agentResult is the answer of an agent, or what its run waits for.
func agentResult(info client.RunInfo) *mcp.CallToolResult {
	r := info.Result
	if r == nil {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("[run %s is %s, and its result is not known: the tool get shows it]", info.RunID, info.State)}}, IsError: true}
	}
	text := r.Text
	if r.Partial || r.IsError {
		text += fmt.Sprintf("\n\n[run %s ended as %s; this is partial]", info.RunID, r.Reason)
	}
	for _, a := range r.Agents {
		if a.Query != nil && info.State == client.RunParked {
			text += fmt.Sprintf("\n\n[run %s waits for a person: %s; a person answers with: troupe answer %s %s approve|deny|skip|TEXT --agent %s]", info.RunID, a.Query.Question, info.RunID, a.Query.Query, a.ID)
		}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: r.IsError}
}

// reportProgress tells the caller, if it asked for that, how many turns the agents of a run have ended.
func (v verbs) reportProgress(ctx context.Context, call *mcp.CallToolRequest, run string) (stop func(), err error) {
	token := call.Params.GetProgressToken()
	if token == nil {
		return func() {}, nil
	}
	turns := make(chan struct{}, 1)
	unwatch, err := v.Client.WatchRun(run, func(e client.Event) {
		if e.Kind == event.KindTurnFinished {
			select {
			case turns <- struct{}{}:
			default: // one is waiting to be told
			}
		}
	})
	if err != nil {
		return nil, err
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		told := time.Time{}
		for n := 1; ; n++ {
			select {
			case <-turns:
			case <-done:
				return
			}
			if time.Since(told) < progressInterval && n > 1 {
				continue
			}
			told = time.Now()
			// A caller that does not listen is found by its request.
			_ = call.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(n), Message: "run " + run + ": a turn has ended"})
		}
	}()
	return func() { unwatch(); close(done); <-ended }, nil
}

// abandon cancels the run of a caller that has gone away.
func (v verbs) abandon(run string) {
	if v.isNodeGone() {
		return
	}
	// no client is left to read the error
	_ = abandon.Run(context.Background(), v.Client, run, "the MCP client has gone away")
}

// explain returns the text that a model reads of an error: what failed, and what to do.
func explain(err error) error {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Hint != "" {
		return fmt.Errorf("%w: %s", err, refused.Hint)
	}
	return err
}
