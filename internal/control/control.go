// Package control holds the entry points of a node: the control service on NATS
// (`troupe.cmd.<verb>`), the index of runs, and the queries that read logs for clients. It
// decides nothing about runs: it appends commands to logs and replays logs.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// Config of the control service. Conn, Names, Post, Node, Runs, Blobs, Build, Name and Machine are
// required.
type Config struct {
	// Conn answers requests. It must not be allowed to write logs: a request
	// names the subject of its own answer.
	Conn  *nats.Conn
	Names names.Names
	Post  mailbox.Store
	Node  *actors.Node
	Runs  *Runs
	Blobs mailbox.Blobs
	// Build makes the first entry of a run from a request, or refuses with a *client.Error.
	Build func(client.RunRequest) (supervisor.Opened, client.RunAccepted, error)
	// CheckRestored refuses a run from a file that has a right which a new run would not get here; named are the files
	// that it may use. Default: no run is restored.
	CheckRestored       func(o supervisor.Opened, named client.RunRequest) error
	CheckRestoredChange func(o supervisor.Opened, named client.RunRequest, change RecordedChange) error
	// PlaceRestored returns where a run from a file goes on in the directory that named names: the directory without
	// links, and the node pool. Default: a run goes on where it was.
	PlaceRestored func(named client.RunRequest) (dir, pool string, err error)
	ForkModel     modelChooser // default: a fork keeps the model
	FindTools     toolFinder   // default: no tool is added to live agents
	// ParseNarrowing reads what a request takes from live agents. Default: nothing is taken.
	ParseNarrowing func(supervisor.Opened, client.PermissionsRequest) (spec.Narrowing, error)
	// NarrowOn sends what a request takes from live agents to the nodes of a machine, in the name of an owner; "": an operator.
	// Default: this node reads the rules of all runs.
	NarrowOn func(ctx context.Context, owner, machine string, r client.PermissionsRequest) error
	// Cluster is the nodes that share the logs. nil: this node owns them alone.
	Cluster *Cluster
	// Self returns what a node that owns all logs reports about itself; its name is in Name.
	Self func() client.NodeInfo
	// Inspect describes pools, leases, streams and throttles. Default: none.
	Inspect func(context.Context) (client.ClusterInfo, error)
	// Name of the node, and of the machine: runs are also opened by requests to the
	// nodes of one machine.
	Name, Machine string
	// LogHealth describes why the node cannot write its logs: nil while it can, and has room. Default: it can.
	LogHealth func() *client.LogHealth
	// Queue describes the runs that are queued on this node. Default: none.
	Queue Queue
	// RowAdded receives a run whose row the node must write soon with Runs.Record: only the node writes
	// the index. It must not block. Default: the request writes the row.
	RowAdded func(run string)
	// NoActors says that this node runs no agents.
	NoActors bool
	// KeepsSchedules says that this node begins the runs of schedules: it stays when its own runs have ended. HoldsLog
	// reports whether it does so for a schedule; default: for all. Triggers gives it the messages of triggers.
	KeepsSchedules bool
	HoldsLog       func(mailbox.Address) bool
	Triggers       *bus.Triggers
	// RetainAge is how long a run stays after its end, and RetainBytes how much logs and blobs may hold together until the
	// oldest runs go. Default: retainAgeDefault and retainBytesDefault; a negative one is no limit.
	RetainAge   time.Duration
	RetainBytes int64
	// LogsStored measures logs that are in several parts, and reports whether a log is in the fullest
	// one. Default: Post.Room is of all logs. BlobRoom measures the blobs of a run, or with run ""
	// all. Default: blobs are not counted.
	LogsStored func(context.Context) (bytes uint64, inFullest func(mailbox.Address) bool, err error)
	BlobRoom   func(ctx context.Context, run string) (used, most uint64, err error)
	// BlobStrays calls each for every run that has blobs and that known does not know. It is set with BlobRoom.
	BlobStrays func(ctx context.Context, known func(run string) bool, each func(run string, bytes uint64, newest time.Time)) error
	// Publish publishes an event to observers. It must not block. Default: events are dropped.
	Publish func(event.Published)
	// Answers are the answers that wait for a node. Default: none do.
	Answers jetstream.Consumer
	// Now is the clock by which runs are old. Default: time.Now.
	Now func() time.Time
	// Redact redacts secrets in requests and replies. Default: nothing is redacted.
	Redact func([]byte) []byte
	Logger *slog.Logger // default: discard

	// laneKnown visits a lane in the background.
	laneKnown func(conversation string)
	// roomWanted is called when a new run finds no room.
	roomWanted func()
}

// Control is the running service.
type Control struct {
	cfg       *Config
	runs      *opener
	views     *viewer
	svc       micro.Service
	retention *retention
	// visits are the lanes that are advanced in the background.
	visits laneVisits
	// schedules are those that this node looks after.
	schedules scheduleVisits

	ctx         context.Context // of all requests
	endRequests context.CancelFunc
	inFlight    sync.WaitGroup // requests
	local       chan struct{}  // a slot for each run that a caller in this process opens

	mu sync.Mutex // orders begin and Close
}

// requestTimeout bounds one request.
const requestTimeout = 12 * time.Second

// verbHandler serves one endpoint: a request's bytes to a reply, or an error.
type verbHandler func(context.Context, []byte) (any, error)

func (c *Control) verbHandlers() map[string]verbHandler {
	l := c.runs.lookup
	return map[string]verbHandler{
		"run": handleJSON(l, c.runs.openRun), "get": handleJSON(l, c.views.getRun), "list": handleJSON(l, c.views.listRuns), "cancel": handleJSON(l, c.runs.cancelRun),
		"steer": handleJSON(l, c.runs.steerAgent), "answer": handleJSON(l, c.runs.answerQuery), "events": handleJSON(l, c.views.listEvents),
		"policy": handleJSON(l, c.runs.setPolicy), "budget": handleJSON(l, c.runs.setBudget), "questions": handleJSON(l, c.views.listQuestions), "transcript": handleJSON(l, c.views.readTranscript),
		"nodes": handleJSON(l, c.views.listNodes), "cluster": handleJSON(l, c.views.describeCluster), "drain": handleJSON(l, c.views.drainNodes), "export": handleJSON(l, c.views.exportHistory), "recall": handleJSON(l, c.runs.storeHistoryPart),
		"conversations": handleJSON(l, c.views.listConversations), "lane": handleJSON(l, c.runs.changeLane), "schedules": handleJSON(l, c.views.listSchedules),
		"attach": handleJSON(l, c.runs.attachPart), "delete": handleJSON(l, c.runs.deleteRun), "prune": handleJSON(l, c.runs.pruneRuns),
		"logs": handleJSON(l, c.views.listLogs), "blob": handleJSON(l, c.views.readBlob), "restore": handleJSON(l, c.runs.restoreRun), "context": handleJSON(l, c.runs.changeContext), "backlog": handleJSON(l, serveBacklog(c.runs.commander)), "permissions": handleJSON(l, servePermissions(c.runs.commander)),
	}
}

func newControl(cfg Config) *Control {
	runs := newOpener(&cfg)
	c := &Control{cfg: &cfg, runs: runs, views: &viewer{lookup: runs.lookup}, local: make(chan struct{}, localAtOnce)}
	c.views.pages = &eventPages{start: c.startRequest, ctx: func() context.Context { return c.ctx }, panicked: c.logPanic}
	cfg.laneKnown = func(conversation string) { c.LaneKnown(conversation, "") }
	c.retention = newRetention(runs.remover)
	cfg.roomWanted = c.retention.wakeUp
	return c
}

// Serve answers `troupe.cmd.<verb>` until Close.
func Serve(cfg Config) (*Control, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Redact == nil {
		cfg.Redact = func(data []byte) []byte { return data }
	}
	if cfg.Publish == nil {
		cfg.Publish = func(event.Published) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := newControl(cfg)
	c.ctx, c.endRequests = context.WithCancel(context.Background())
	svc, err := micro.AddService(cfg.Conn, micro.Config{Name: "troupe", Version: Version(),
		Description: "troupe node " + cfg.Name, Metadata: map[string]string{"node": cfg.Name}})
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	c.svc = svc
	handlers := map[string]micro.HandlerFunc{}
	for verb, serve := range c.verbHandlers() {
		handlers[verb] = c.newRequestHandler(verb, serve)
		subject, err := cfg.Names.CommandSubject(verb)
		if err == nil {
			err = addEndpoints(c, verb, subject, handlers[verb])
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("control: %s: %w", verb, err), c.Close())
		}
	}
	for _, verb := range []string{"run", "restore", "permissions"} { // their requests may name paths of this machine
		here, err := cfg.Names.MachineCommand(verb, cfg.Machine)
		if err == nil {
			err = addEndpoints(c, verb+"-here", here, handlers[verb])
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("control: %s: %w", verb, err), c.Close())
		}
	}
	// The server must know the endpoints before the node reports that it is up.
	if err := cfg.Conn.Flush(); err != nil {
		return nil, errors.Join(fmt.Errorf("control: %w", err), c.Close())
	}
	if cfg.Answers != nil {
		c.startRequest(func() { c.readStoredAnswers(c.ctx) })
	}
	if !cfg.NoActors {
		c.startRequest(func() { c.retention.run(c.ctx) })
	}
	return c, nil
}

// addEndpoints serves a subject of operators, and that of the owners.
func addEndpoints(c *Control, name, subject string, serve micro.HandlerFunc) error {
	err := c.svc.AddEndpoint(name, serve, micro.WithEndpointSubject(subject))
	if err == nil {
		err = c.svc.AddEndpoint(name+"-as", serve, micro.WithEndpointSubject(c.cfg.Names.OwnersSubject(subject)))
	}
	return err
}

// Close stops answering requests, and cancels those in progress.
func (c *Control) Close() error {
	err := c.svc.Stop() // which drains: requests may still come
	c.endRequests()
	// A caller that holds the lock may begin, and a later one sees the end: no request begins
	// during the wait.
	c.mu.Lock()
	c.mu.Unlock() //nolint:staticcheck // empty on purpose, see above
	c.inFlight.Wait()
	return err
}

// Version is that of this program.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && len(info.Main.Version) > 1 && info.Main.Version[0] == 'v' {
		return info.Main.Version[1:]
	}
	return "0.1.0"
}

// newRequestHandler answers each request in its own goroutine, so that a slow request delays no
// other. fairQueue decides the order of the requests.
func (c *Control) newRequestHandler(verb string, serve verbHandler) func(micro.Request) {
	requests := newFairQueue()
	return func(r micro.Request) {
		owner := c.cfg.Names.ParseOwner(r.Subject())
		if err := c.checkReply(owner, r.Reply()); err != nil {
			c.cfg.Logger.Debug("a request is not served", "verb", verb, "error", err)
			return
		}
		var t *requestTicket
		t = newTicket(owner, r.Reply(), requestSize(r), func() {
			if !c.startRequest(func() { defer requests.leave(t); c.serveOne(verb, serve, r) }) {
				requests.leave(t)
				c.sendRefusal(verb, r, errClosing)
			}
		}, func() { c.sendRefusal(verb, r, errBusy) })
		// While the logs cannot be written, the copy of a request that waits for them is served: it
		// is refused at once, with the reason.
		if name := r.Headers().Get(client.AskHeader); name != "" && len(name) <= askNameMax && r.Reply() != "" && c.runs.checkWritable() == nil {
			t.ask = r.Reply() + " " + name
		}
		requests.enter(t)
	}
}

// askNameMax is the most bytes of the name of a request; one with a longer name has none.
const askNameMax = 64

// serveOne serves one request and sends its reply.
func (c *Control) serveOne(verb string, serve verbHandler, r micro.Request) {
	ctx, cancel := context.WithTimeout(c.ctx, requestTimeout)
	defer cancel()
	ctx = context.WithValue(ctx, traceKey{}, r.Headers().Get(client.TraceHeader))
	ctx = context.WithValue(ctx, anyoneKey{}, r.Reply() == "" || strings.HasPrefix(r.Reply(), bus.ServerInbox))
	ctx = context.WithValue(ctx, agentKey{}, r.Headers().Get(bus.AgentHeader) != "")
	ctx = context.WithValue(ctx, ownerKey{}, c.cfg.Names.ParseOwner(r.Subject()))
	reply, err := c.callRecovered(ctx, verb, serve, c.cfg.Redact(r.Data()))
	var data []byte
	if err == nil {
		data, err = json.Marshal(reply)
	}
	if err == nil {
		err = c.sendReply(r, nil, data)
	}
	if err != nil {
		c.sendRefusal(verb, r, err)
	}
}

// traceKey is the key of the trace context that the header of a request names.
type traceKey struct{}

// anyoneKey is the key of whether a request may be of a connection without a credential: it comes from another
// account, so the server named its reply subject, or has none, so its sender is unknown.
type anyoneKey struct{}

var errBusy = &client.Error{Code: client.CodeLimit, Text: "too many requests of this verb at once", Hint: "ask again in a moment", Retry: retryAfter}

var errClosing = &client.Error{Code: client.CodeUnavailable, Text: "this node is closing", Hint: "ask again: another node answers"}

// startRequest runs work in a goroutine; it returns false once Close has been called.
func (c *Control) startRequest(work func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.inFlight.Go(work)
	return true
}

var errPanic = errors.New("control: internal error; the node's log has the details")

func (c *Control) logPanic(verb string, what any) {
	c.cfg.Logger.Error("request handler panicked", "verb", verb, "panic", what, "stack", string(debug.Stack()))
}

// callRecovered turns a panic into an error: a request must not end the node.
func (c *Control) callRecovered(ctx context.Context, verb string, serve verbHandler, data []byte) (reply any, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.logPanic(verb, p)
			err = errPanic
		}
	}()
	return serve(ctx, data)
}

// sendReply answers without the library's help: the library's own function may only be called
// before its handler has returned.
func (c *Control) sendReply(r micro.Request, header nats.Header, data []byte) error {
	if r.Reply() == "" {
		return nil // the client wants no reply
	}
	if !bus.CanAnswer(r.Reply()) {
		return fmt.Errorf("%w: %q", errReply, r.Reply())
	}
	data = c.cfg.Redact(data)
	if most := c.cfg.Conn.MaxPayload(); int64(len(data)) > most {
		return &client.Error{Code: client.CodeLimit, Text: fmt.Sprintf("the reply has %d bytes, and a message at most %d", len(data), most), Hint: "`troupe events` reads a run in pages"}
	}
	return c.cfg.Conn.PublishMsg(&nats.Msg{Subject: r.Reply(), Header: header, Data: data})
}

// errReply: a request wants its reply at a subject that is not a client's inbox.
var errReply = errors.New("control: answers go to the inboxes of clients and observers only")

// errorBytesMax is the maximum size of an error's text in a reply: the text may quote the
// request.
const errorBytesMax = 4 << 10

// toClientError finds the code of an error: what the client can do about it.
func toClientError(err error) *client.Error {
	var known *client.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, mailbox.ErrTooLarge), errors.Is(err, mailbox.ErrMalformed):
		return &client.Error{Code: client.CodeBad, Text: err.Error(), Hint: fmt.Sprintf("a request must fit an entry of %d bytes", mailbox.EntryBytesMax)}
	case errors.Is(err, mailbox.ErrFull), bus.IsFull(err):
		return &client.Error{Code: client.CodeLimit, Text: err.Error(), Hint: roomHint}
	case bus.IsUnavailable(err), errors.Is(err, context.Canceled), errors.Is(err, mailbox.ErrClosed):
		return &client.Error{Code: client.CodeUnavailable, Text: err.Error(), Hint: "ask again"}
	}
	return &client.Error{Code: client.CodeInternal, Text: err.Error()}
}
