package agentprotocol

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/lane"
)

// A session is a conversation that is an agent of its own. Spawn makes one; a conversation with a run that works on
// this node is one for as long as it does.

const (
	// sessionsMax is how many sessions a node exports.
	sessionsMax = 64
	// runsLookedAt bounds the runs of a state among which those of conversations are looked for.
	runsLookedAt = 1024
	// sessionTimeout bounds the requests to nodes about a session.
	sessionTimeout = 10 * time.Second
	// expireAgainAfter is how soon a session whose lifetime is over is stopped again after an error.
	expireAgainAfter = 5 * time.Second
)

// The values of role in metadata and heartbeats.
const (
	roleSession    = "session"
	roleController = "controller"
)

// session is a session of this node.
type session struct {
	*exportedAgent
	created  time.Time
	lifetime time.Duration // 0: none
	timer    *time.Timer
	// ending orders its stops, so that each one returns after its runs were canceled.
	ending sync.Mutex
}

// sessionSet holds the sessions of this node, and what the heartbeats of other nodes say of theirs.
type sessionSet struct {
	mu      sync.Mutex
	closed  bool
	own     map[string]*session // nil: it is being registered
	other   map[string]otherSession
	skipped map[string]bool // conversations that cannot be exported, of which a log entry was written
}

var (
	errNodeClosing   = &client.Error{Code: client.CodeUnavailable, Text: "the node is closing"}
	errSessionExists = &client.Error{Code: client.CodeConflict, Text: "the session exists", Hint: "prompt it, or leave session_id out"}
	errSessionLimit  = &client.Error{Code: client.CodeLimit, Text: fmt.Sprintf("the node has %d sessions", sessionsMax), Hint: "stop one", Retry: time.Minute}
)

// addSession makes a session one of this node.
func (h *Host) addSession(s *session, description string) error {
	set := &h.sessions
	set.mu.Lock()
	if err := h.checkSession(s.name, s.spawned); err != nil {
		set.mu.Unlock()
		return err
	}
	if set.own == nil {
		set.own = map[string]*session{}
	}
	set.own[s.name] = nil
	set.mu.Unlock()
	return h.register(s, description)
}

// register registers a session that has a place among those of the node.
func (h *Host) register(s *session, description string) error {
	set := &h.sessions
	err := h.export(s.exportedAgent, description, map[string]string{"role": roleSession}, s.endpoints(s.handlePrompt)...)
	if err == nil {
		err = h.cfg.Conn.FlushTimeout(flushTimeout)
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	other, heard := set.other[s.name]
	switch {
	case err != nil:
	case set.closed:
		err = errNodeClosing
	case heard && other.excludes(s.spawned):
		err = errSessionExists
	}
	if err != nil {
		delete(set.own, s.name)
		if s.service != nil {
			err = errors.Join(err, s.service.Stop())
		}
		return err
	}
	set.own[s.name] = s
	if s.lifetime > 0 {
		s.timer = time.AfterFunc(s.lifetime, func() { h.begin(func() { h.expire(s) }) })
	}
	h.sendHeartbeat(s.exportedAgent)
	return nil
}

// checkSession returns why no session of the name may be registered. The caller holds sessions.mu.
func (h *Host) checkSession(name string, spawned bool) error {
	set := &h.sessions
	_, own := set.own[name]
	other, heard := set.other[name]
	switch {
	case set.closed:
		return errNodeClosing
	case own, heard && other.excludes(spawned), h.isAgentName(name):
		return errSessionExists
	case len(set.own) >= sessionsMax:
		return errSessionLimit
	}
	return nil
}

func (h *Host) isAgentName(name string) bool {
	return name == controllerName || slices.ContainsFunc(h.agents, func(e *exportedAgent) bool { return e.name == name })
}

// ownSession returns a session of this node.
func (h *Host) ownSession(name string) (s *session, ok bool) {
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	s = h.sessions.own[name]
	return s, s != nil
}

// ownSessions returns the sessions of this node by name.
func (h *Host) ownSessions() (list []*session) {
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(h.sessions.own)) {
		if s := h.sessions.own[name]; s != nil {
			list = append(list, s)
		}
	}
	return list
}

// removeSession ends the export of a session. Its prompts go on.
func (h *Host) removeSession(s *session) {
	h.sessions.mu.Lock()
	if h.sessions.own[s.name] == s {
		delete(h.sessions.own, s.name)
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	h.sessions.mu.Unlock()
	if err := s.service.Stop(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		h.cfg.Logger.Warn("the service of a session was not stopped", "session", s.name, "error", err)
	}
}

// leaving returns all agents, and exports no further session.
func (h *Host) leaving() []*exportedAgent {
	all := h.lasting()
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	h.sessions.closed = true // a session that is being registered stops itself
	for _, s := range h.sessions.own {
		if s == nil {
			continue
		}
		all = append(all, s.exportedAgent)
		if s.timer != nil {
			s.timer.Stop()
		}
	}
	return all
}

// lasting returns the agents that are no sessions.
func (h *Host) lasting() []*exportedAgent {
	all := slices.Clone(h.agents)
	if h.controller != nil {
		all = append(all, h.controller)
	}
	return all
}

// exported returns all agents at work for callers.
func (h *Host) exported() []*exportedAgent {
	all := h.lasting()
	for _, s := range h.ownSessions() {
		all = append(all, s.exportedAgent)
	}
	return all
}

// expire stops a session whose lifetime is over. It tries again until its runs are canceled.
func (h *Host) expire(s *session) {
	for h.ctx.Err() == nil {
		err := h.stopSession(h.ctx, s, "the lifetime of its session is over")
		if err == nil {
			return
		}
		h.cfg.Logger.Warn("the runs of a session were not canceled", "session", s.name, "error", err)
		select {
		case <-time.After(expireAgainAfter):
		case <-h.ctx.Done():
		}
	}
}

// stopSession cancels the runs of a session of this node and ends it. A prompt whose run begins now cancels it itself.
// After an error the session goes on, so that the stop can be repeated.
func (h *Host) stopSession(ctx context.Context, s *session, why string) error {
	s.ending.Lock()
	defer s.ending.Unlock()
	if s.isStopped() {
		return nil
	}
	s.setStopped(true)
	if err := h.cancelConversation(ctx, s.name, why); err != nil {
		s.setStopped(false)
		return err
	}
	h.removeSession(s)
	return nil
}

// cancelConversation cancels the runs of a conversation that have not ended, those that wait first. Model calls are
// aborted: nobody waits for what they return.
func (h *Host) cancelConversation(ctx context.Context, id, why string) error {
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	c, err := h.cfg.Client.Conversations().Get(ctx, id)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code == client.CodeNotFound { // it has no run
		return nil
	}
	errs := []error{err}
	for _, r := range slices.Backward(c.Runs) {
		if r.Status == lane.Active || r.Status == lane.Waiting {
			_, err := h.cfg.Client.Cancel(ctx, client.CancelRequest{RunID: r.ID, Why: why, Now: true, WaitMS: -1})
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// followConversations exports the conversations with a run that works on this node, until the end.
func (h *Host) followConversations() {
	tick := time.NewTicker(h.cfg.Heartbeat)
	defer tick.Stop()
	for {
		if err := h.exportConversations(); err != nil && h.ctx.Err() == nil {
			h.cfg.Logger.Debug("running conversations were not read", "error", err)
		}
		select {
		case <-tick.C:
		case <-h.ctx.Done():
			return
		}
	}
}

// exportConversations makes sessions of the conversations with a run that works on this node, and ends those of others.
func (h *Host) exportConversations() error {
	ctx, cancel := context.WithTimeout(h.ctx, sessionTimeout)
	defer cancel()
	running := map[string]client.RunInfo{}
	for _, state := range []client.RunState{client.RunLive, client.RunParked} {
		list, err := h.cfg.Client.ListRuns(ctx, client.ListRequest{State: state, Limit: runsLookedAt})
		if err != nil {
			return fmt.Errorf("agentprotocol: %w", err)
		}
		for _, r := range list {
			if r.Conversation != "" && r.Node == h.cfg.Node {
				running[r.Conversation] = r
			}
		}
	}
	for _, s := range h.ownSessions() {
		switch r, works := running[s.name]; {
		case s.spawned:
		case works:
			s.setWorking(r)
		default:
			h.removeSession(s)
		}
		delete(running, s.name)
	}
	maps.DeleteFunc(running, func(id string, _ client.RunInfo) bool { return h.isSpawnedElsewhere(id) })
	for _, id := range slices.Sorted(maps.Keys(running)) {
		h.exportConversation(ctx, id, running[id])
	}
	return nil
}

// exportConversation makes a session of a conversation. Its prompts continue it with the agent and the directory of the
// run that works.
func (h *Host) exportConversation(ctx context.Context, id string, running client.RunInfo) {
	h.sessions.mu.Lock()
	err := h.checkSession(id, false)
	h.sessions.mu.Unlock()
	var info client.RunInfo
	if err == nil {
		info, err = h.cfg.Client.Describe(ctx, running.RunID)
	}
	if err == nil {
		s := &session{exportedAgent: &exportedAgent{name: id, task: client.RunRequest{Conversation: id}, working: running}, created: time.Now()}
		if d := info.Description; d != nil {
			s.task.Agent, s.task.Dir = d.Root, d.Workspace
		}
		err = h.addSession(s, "The conversation "+id)
	}
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	if err == nil || h.sessions.skipped[id] || h.ctx.Err() != nil {
		return
	}
	if len(h.sessions.skipped) >= instancesMax || h.sessions.skipped == nil {
		h.sessions.skipped = map[string]bool{}
	}
	h.sessions.skipped[id] = true
	h.cfg.Logger.Warn("a running conversation is not exported", "conversation", id, "error", err)
}
