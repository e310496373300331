// Package agentprotocol exports the agents of a node by the Synadia Agent Protocol for NATS 0.3
// (docs/agentprotocol.md): each agent is a micro service that programs of others discover and prompt. A prompt
// becomes a run, by the same requests that every client of a node sends.
package agentprotocol

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
)

const (
	// serviceName, queueGroup and protocolVersion are words of the protocol.
	serviceName     = "agents"
	queueGroup      = "agents"
	protocolVersion = "0.3"
	// heartbeatDefault is the interval between heartbeats of an agent.
	heartbeatDefault = 30 * time.Second
	// answerTimeoutDefault is how long a run may wait for an answer of the caller.
	answerTimeoutDefault = 10 * time.Minute
	// keepAliveInterval is how often a stream shows that it is alive: callers give up after 60 s of silence.
	keepAliveInterval = 20 * time.Second
	// payloadBytesMax is the most bytes of a prompt with its attachments, unless the server passes on less.
	payloadBytesMax = 4 << 20
	// PromptsAtOnce is how many prompts a node answers at once. It refuses further ones.
	PromptsAtOnce = 64
	// agentsMax is how many agents a node exports.
	agentsMax = 64
)

// Usage is the text of the flag that exports agents.
const Usage = "export agents by the Synadia Agent Protocol for NATS (docs/agentprotocol.md): every client that may start runs may prompt them"

// Config of a Host. Conn, Client, Names, Agents and Owner are required.
type Config struct {
	// Conn answers prompts. It must not be allowed to write logs: a prompt names the subject of its own answer.
	Conn *nats.Conn
	// Client starts and follows the runs.
	Client *client.Client
	// Discovery, if it is not nil, asks the agents of other nodes who they are. It may publish at $SRV.INFO.agents.
	Discovery *nats.Conn
	Names     names.Names
	Agents    []Agent
	// CheckDir returns an error if a run that such a client starts may not have a directory. Default: the run is
	// refused, not the session.
	CheckDir func(dir string) error
	// Owner is the operator whose agents these are: a token of their subjects.
	Owner string
	// Node and Machine are the names of the node and of its machine, Version is that of the program.
	Node, Machine, Version string
	// Heartbeat is the interval between heartbeats of an agent. Default: heartbeatDefault.
	Heartbeat time.Duration
	// AnswerTimeout is how long a run may wait for an answer of the caller. Default: answerTimeoutDefault.
	AnswerTimeout time.Duration
	// Senders is what the agents require of the senders of prompts. Default: any sender.
	Senders SenderTrust
	// Redact redacts secrets in what callers get. Default: nothing is redacted.
	Redact func([]byte) []byte
	Logger *slog.Logger // default: discard
}

// Agent is an agent that is exported.
type Agent struct{ Name, Description string }

// Host exports agents: those of the node, the controller of sessions, and the sessions.
type Host struct {
	cfg         Config
	payloadMax  int
	agents      []*exportedAgent // of the node: those that are no sessions
	promptSlots chan struct{}
	nonces      nonceTable
	sessions    sessionSet
	controller  *controller
	listener    *agentListener
	ctx         context.Context
	end         context.CancelFunc

	mu       sync.Mutex // orders begin and Close
	closed   bool
	inFlight sync.WaitGroup
}

// promptRequest is a request to an agent.
type promptRequest struct {
	reply, trace    string
	sender, subject string // its header about the sender, and where it came
	data            []byte
}

// Serve exports agents until Close.
func Serve(cfg Config) (*Host, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Redact == nil {
		cfg.Redact = func(data []byte) []byte { return data }
	}
	if cfg.Heartbeat <= 0 {
		cfg.Heartbeat = heartbeatDefault
	}
	if cfg.AnswerTimeout <= 0 {
		cfg.AnswerTimeout = answerTimeoutDefault
	}
	h := &Host{cfg: cfg, payloadMax: int(min(cfg.Conn.MaxPayload(), payloadBytesMax)), promptSlots: make(chan struct{}, PromptsAtOnce)}
	h.ctx, h.end = context.WithCancel(context.Background())
	sessions := &sessionKeeper{h, &h.sessions}
	h.controller = &controller{host: h, set: &h.sessions, sessions: sessions, denialSlots: make(chan struct{}, PromptsAtOnce)}
	h.listener = &agentListener{host: h, set: &h.sessions, sessions: sessions}
	for _, a := range cfg.Agents {
		if len(h.agents) == agentsMax {
			cfg.Logger.Warn("agent not exported: the node exports as many as it may", "agent", a.Name, "limit", agentsMax)
			continue
		}
		if err := names.CheckToken(a.Name); err != nil {
			cfg.Logger.Warn("agent not exported: its name cannot be a part of a subject", "agent", a.Name, "error", err)
			continue
		}
		if a.Name == controllerName {
			cfg.Logger.Warn("agent not exported: its name is that of the controller of sessions", "agent", a.Name)
			continue
		}
		e := &exportedAgent{name: a.Name, task: client.RunRequest{Agent: a.Name}}
		if err := h.export(e, a.Description, nil, e.endpoints(e.handlePrompt)...); err != nil {
			return nil, errors.Join(fmt.Errorf("agentprotocol: %s: %w", a.Name, err), h.Close())
		}
		h.agents = append(h.agents, e)
	}
	// The server must know the endpoints before the first heartbeat.
	err := h.controller.export()
	if err == nil {
		err = h.listener.listen()
	}
	if err = errors.Join(err, cfg.Conn.Flush()); err != nil {
		return nil, errors.Join(fmt.Errorf("agentprotocol: %w", err), h.Close())
	}
	h.inFlight.Go(h.sendHeartbeats)
	h.inFlight.Go((&conversationFollower{h, &h.sessions, sessions}).followConversations)
	return h, nil
}

// Subjects lists the subjects at which the agents take prompts.
func (h *Host) Subjects() (list []string) {
	for _, a := range h.agents {
		list = append(list, a.promptSubject)
	}
	return list
}

// Close ends the export. Prompts in progress get an error; their runs go on.
func (h *Host) Close() error {
	var errs []error
	for _, a := range h.leaving() {
		errs = append(errs, a.service.Stop()) // which drains: prompts may still come
	}
	errs = append(errs, h.listener.close())
	h.end()
	h.mu.Lock()
	h.closed = true // no prompt begins from here on
	h.mu.Unlock()
	h.inFlight.Wait()
	if err := h.cfg.Conn.FlushTimeout(flushTimeout); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		errs = append(errs, fmt.Errorf("agentprotocol: %w", err))
	}
	return errors.Join(errs...)
}

// flushTimeout bounds the wait for the last messages of streams.
const flushTimeout = 5 * time.Second

// begin runs work in a goroutine; it returns false once Close has been called.
func (h *Host) begin(work func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.inFlight.Go(work)
	return true
}
