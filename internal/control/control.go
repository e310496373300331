package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
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
	"github.com/troupe-run/troupe/internal/control/retention"
	"github.com/troupe-run/troupe/internal/control/runevent"
	"github.com/troupe-run/troupe/internal/control/runimport"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/schedules"
	"github.com/troupe-run/troupe/internal/control/workgroup"
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
	Runs  *runindex.Index
	Blobs mailbox.Blobs
	// Build makes the first entry of a run from a request, or refuses with a *client.Error.
	Build func(client.RunRequest) (supervisor.Opened, client.RunAccepted, error)
	// CheckRestored refuses a run from a file that has a right which a new run would not get here; named are the files
	// that it may use. Default: no run is restored.
	CheckRestored       func(o supervisor.Opened, named client.RunRequest) error
	CheckRestoredChange func(o supervisor.Opened, named client.RunRequest, change runimport.RecordedChange) error
	// PlaceRestored returns where a run from a file goes on in the directory that named names: the directory without
	// links, and the node pool. Default: a run goes on where it was.
	PlaceRestored func(named client.RunRequest) (dir, pool string, err error)
	ForkModel     runimport.ModelChooser // default: a fork keeps the model
	FindTools     toolFinder             // default: no tool is added to live agents
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
	// LogsSynced says that an append returns when it is on the disk.
	LogsSynced bool
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

// Control is the running service: the verbs at their subjects, and what the node does in the background for runs,
// conversations and schedules.
type Control struct {
	*localRuns
	*laneVisits
	*schedules.Scheduler
	cfg       *Config
	work      *workgroup.Group
	requests  *requestServer
	parts     *parts
	answers   *storedAnswers
	retention *retention.Retention
	svc       micro.Service
}

// verbHandler serves one endpoint: a request's bytes to a reply, or an error.
type verbHandler func(context.Context, []byte) (any, error)

func (c *Control) verbHandlers() map[string]verbHandler {
	p, o := c.parts, c.parts.owners
	return map[string]verbHandler{
		"run":           handleJSON(o, p.opener.openRun),
		"get":           handleJSON(o, p.viewer.getRun),
		"list":          handleJSON(o, p.viewer.listRuns),
		"cancel":        handleJSON(o, p.canceler.cancelRun),
		"steer":         handleJSON(o, p.commander.steerAgent),
		"answer":        handleJSON(o, p.commander.answerQuery),
		"events":        handleJSON(o, p.viewer.listEvents),
		"policy":        handleJSON(o, p.commander.setPolicy),
		"budget":        handleJSON(o, p.commander.setBudget),
		"questions":     handleJSON(o, p.viewer.listQuestions),
		"transcript":    handleJSON(o, p.viewer.readTranscript),
		"nodes":         handleJSON(o, p.viewer.listNodes),
		"cluster":       handleJSON(o, p.viewer.describeCluster),
		"drain":         handleJSON(o, p.viewer.drainNodes),
		"export":        handleJSON(o, p.viewer.exportHistory),
		"recall":        handleJSON(o, p.histories.storeHistoryPart),
		"conversations": handleJSON(o, p.viewer.listConversations),
		"lane":          handleJSON(o, p.keeper.changeLane),
		"schedules":     handleJSON(o, p.schedules.List),
		"attach":        handleJSON(o, p.attachments.attachPart),
		"delete":        handleJSON(o, p.remover.deleteRun),
		"prune":         handleJSON(o, p.remover.pruneRuns),
		"logs":          handleJSON(o, p.viewer.listLogs),
		"blob":          handleJSON(o, p.viewer.readBlob),
		"restore":       handleJSON(o, p.restorer.Restore),
		"context":       handleJSON(o, p.commander.changeContext),
		"backlog":       handleJSON(o, p.commander.changeBacklog),
		"permissions":   handleJSON(o, p.commander.changePermissions),
	}
}

func newControl(cfg Config) *Control {
	p, work := newParts(&cfg), workgroup.New(cfg.logger())
	p.viewer.pages = runevent.New(runevent.Config{Store: cfg.Post, Node: cfg.Name, Work: work})
	c := &Control{
		localRuns:  &localRuns{cfg: &cfg, work: work, owners: p.owners, opener: p.opener, viewer: p.viewer, slots: make(chan struct{}, localAtOnce)},
		laneVisits: &laneVisits{cfg: &cfg, work: work, keeper: p.keeper},
		Scheduler:  schedules.NewScheduler(scheduleConfig(p), work),
		cfg:        &cfg, work: work, requests: &requestServer{&cfg, work}, parts: p,
		answers: &storedAnswers{&cfg, work, p.lookup, p.commander}, retention: retention.New(retentionConfig(p)),
	}
	cfg.laneKnown = func(conversation string) { c.LaneKnown(conversation, "") }
	cfg.roomWanted = c.retention.WakeUp
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
	svc, err := micro.AddService(cfg.Conn, micro.Config{Name: "troupe", Version: Version(),
		Description: "troupe node " + cfg.Name, Metadata: map[string]string{"node": cfg.Name}})
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	c.svc = svc
	handlers := map[string]micro.HandlerFunc{}
	for verb, serve := range c.verbHandlers() {
		handlers[verb] = c.requests.newRequestHandler(verb, serve)
		subject, err := cfg.Names.CommandSubject(verb)
		if err == nil {
			err = c.addEndpoints(verb, subject, handlers[verb])
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("control: %s: %w", verb, err), c.Close())
		}
	}
	for _, verb := range []string{"run", "restore", "permissions"} { // their requests may name paths of this machine
		here, err := cfg.Names.MachineCommand(verb, cfg.Machine)
		if err == nil {
			err = c.addEndpoints(verb+"-here", here, handlers[verb])
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
		c.work.Start(func() { c.answers.readStoredAnswers(c.work.Ctx) })
	}
	if !cfg.NoActors {
		c.work.Start(func() { c.retention.Run(c.work.Ctx) })
	}
	return c, nil
}

// addEndpoints serves a subject of operators, and that of the owners.
func (c *Control) addEndpoints(name, subject string, serve micro.HandlerFunc) error {
	err := c.svc.AddEndpoint(name, serve, micro.WithEndpointSubject(subject))
	if err == nil {
		err = c.svc.AddEndpoint(name+"-as", serve, micro.WithEndpointSubject(c.cfg.Names.OwnersSubject(subject)))
	}
	return err
}

// Close stops answering requests, and cancels those in progress.
func (c *Control) Close() error {
	err := c.svc.Stop() // which drains: requests may still come
	c.work.Close()
	return err
}

// Version is that of this program.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && len(info.Main.Version) > 1 && info.Main.Version[0] == 'v' {
		return info.Main.Version[1:]
	}
	return "0.1.0"
}
