package agentprotocol

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/micro"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// exportedAgent is one agent at work for callers: an agent of the node, a session, or the controller of sessions.
type exportedAgent struct {
	// name is the last token of its subjects.
	name string
	// task has the fields of the runs that prompts start: the agent and, of a session, the conversation.
	task client.RunRequest
	// spawned says that it is a session that ends by stop or its lifetime, and not with its run.
	spawned          bool
	host             *Host
	service          micro.Service
	promptSubject    string
	statusSubject    string
	heartbeatSubject string

	mu      sync.Mutex
	live    []*promptRun   // the newest last
	working client.RunInfo // of the conversation that it is; zero: none, or it was spawned
	stopped bool           // no further prompt is served
}

// endpoint is a verb at which an agent takes requests.
type endpoint struct {
	verb   string
	handle func(micro.Request)
	// group is the queue group: one instance takes each request. "": all take it.
	group string
}

// export registers the service of an agent. metadata adds to that of the protocol.
func (h *Host) export(e *exportedAgent, description string, metadata map[string]string, endpoints ...endpoint) (err error) {
	e.host = h
	if e.heartbeatSubject, err = h.cfg.Names.AgentSubject(names.AgentHeartbeat, h.cfg.Owner, e.name); err != nil {
		return err
	}
	all := map[string]string{"agent": h.cfg.Names.Prefix(), "owner": h.cfg.Owner, "session": e.name, "protocol_version": protocolVersion, "node": h.cfg.Node}
	maps.Copy(all, metadata)
	e.service, err = micro.AddService(h.cfg.Conn, micro.Config{Name: serviceName, Version: h.cfg.Version, Description: strings.Join(strings.Fields(description), " "), Metadata: all})
	if err != nil {
		return err
	}
	takes := map[string]string{"max_payload": formatBytes(h.payloadMax), "attachments_ok": strconv.FormatBool(e.name != controllerName)}
	if h.cfg.Senders != "" {
		takes["min_sender_trust"] = string(h.cfg.Senders)
	}
	for _, p := range endpoints {
		subject, err := h.cfg.Names.AgentSubject(p.verb, h.cfg.Owner, e.name)
		if err == nil {
			err = e.service.AddEndpoint(p.verb, micro.HandlerFunc(p.handle), p.options(subject, takes)...)
		}
		if err != nil {
			return errors.Join(err, e.service.Stop())
		}
		switch p.verb {
		case names.AgentPrompt:
			e.promptSubject = subject
		case names.AgentStatus:
			e.statusSubject = subject
		}
	}
	return nil
}

func (p endpoint) options(subject string, takes map[string]string) []micro.EndpointOpt {
	options := []micro.EndpointOpt{micro.WithEndpointSubject(subject), micro.WithEndpointQueueGroup(p.group)}
	if p.group == "" {
		options[1] = micro.WithEndpointQueueGroupDisabled()
	}
	if p.verb == names.AgentStatus {
		return options
	}
	return append(options, micro.WithEndpointMetadata(takes))
}

// endpoints are those that the protocol requires, with a handler of prompts.
func (e *exportedAgent) endpoints(prompt func(micro.Request)) []endpoint {
	return []endpoint{{names.AgentPrompt, prompt, queueGroup}, {names.AgentStatus, e.sendStatus, queueGroup}}
}

// formatBytes writes a size in the largest unit that divides it.
func formatBytes(n int) string {
	for _, unit := range []struct {
		name  string
		bytes int
	}{{"MB", 1 << 20}, {"KB", 1 << 10}} {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return strconv.Itoa(n/unit.bytes) + unit.name
		}
	}
	return strconv.Itoa(n) + "B"
}

// handlePrompt serves a prompt in a goroutine of its own. A prompt whose reply subject is not the inbox of a client is
// ignored: an answer elsewhere could be an entry of a log.
func (e *exportedAgent) handlePrompt(r micro.Request) {
	h := e.host
	if !bus.CanAnswer(r.Reply()) {
		h.cfg.Logger.Debug("a prompt is not served: its reply subject is not the inbox of a client", "agent", e.name, "reply", fmt.Sprintf("%.200q", r.Reply()))
		return
	}
	refuse := func(p problem) {
		out := &replyStream{conn: h.cfg.Conn, subject: r.Reply(), redact: h.cfg.Redact, logger: h.cfg.Logger}
		out.fail(p)
		out.end()
	}
	select {
	case h.promptSlots <- struct{}{}:
	default:
		refuse(busyProblem)
		return
	}
	m := promptRequest{reply: r.Reply(), trace: r.Headers().Get(client.TraceHeader), sender: r.Headers().Get(senderHeader), subject: r.Subject(), data: r.Data()}
	if !h.begin(func() { defer func() { <-h.promptSlots }(); h.servePrompt(e, m) }) {
		<-h.promptSlots
		refuse(closingProblem)
	}
}

func (e *exportedAgent) addRun(p *promptRun) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.live = append(e.live, p)
}

func (e *exportedAgent) removeRun(p *promptRun) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.live = slices.DeleteFunc(e.live, func(l *promptRun) bool { return l == p })
}

// setStopped makes the agent refuse or take further prompts.
func (e *exportedAgent) setStopped(stopped bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = stopped
}

func (e *exportedAgent) setWorking(r client.RunInfo) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.working = r
}

// workingRun is the run that works, of the conversation that it is.
func (e *exportedAgent) workingRun() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.working.RunID
}

func (e *exportedAgent) isStopped() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopped
}
