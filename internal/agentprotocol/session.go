package agentprotocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
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

// otherSession is a session of another node.
type otherSession struct {
	beat heartbeat
	at   time.Time
	// stopping says that a stop came after that heartbeat: its node ends the session, or a heartbeat says otherwise.
	stopping bool
}

func (o otherSession) isOffline() bool {
	return time.Since(o.at) > missedBeats*time.Duration(o.beat.IntervalS*float64(time.Second))
}

// excludes reports whether the session has its name to itself. One that was spawned has a single instance: a second one
// would start runs without the fields of the spawn.
func (o otherSession) excludes(spawned bool) bool {
	if spawned {
		return !o.stopping && !o.isOffline()
	}
	return o.beat.Spawned && !o.isOffline()
}

var (
	errSessionExists = &client.Error{Code: client.CodeConflict, Text: "the session exists", Hint: "prompt it, or leave session_id out"}
	errSessionLimit  = &client.Error{Code: client.CodeLimit, Text: fmt.Sprintf("the node has %d sessions", sessionsMax), Hint: "stop one", Retry: time.Minute}
)

// addSession registers the agent of a session.
func (h *Host) addSession(s *session, description string) error {
	set := &h.sessions
	set.mu.Lock()
	_, own := set.own[s.name]
	other, heard := set.other[s.name]
	switch {
	case set.closed:
		set.mu.Unlock()
		return &client.Error{Code: client.CodeUnavailable, Text: "the node is closing"}
	case own, heard && other.excludes(s.spawned), h.isAgentName(s.name):
		set.mu.Unlock()
		return errSessionExists
	case len(set.own) >= sessionsMax:
		set.mu.Unlock()
		return errSessionLimit
	}
	if set.own == nil {
		set.own = map[string]*session{}
	}
	set.own[s.name] = nil
	set.mu.Unlock()

	err := h.export(s.exportedAgent, description, map[string]string{"role": roleSession}, s.endpoints(s.handlePrompt)...)
	if err == nil {
		err = h.cfg.Conn.FlushTimeout(flushTimeout)
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	if err != nil || set.closed {
		delete(set.own, s.name)
		if s.service != nil {
			err = errors.Join(err, s.service.Stop())
		}
		return errors.Join(err, context.Cause(h.ctx))
	}
	set.own[s.name] = s
	if s.lifetime > 0 {
		s.timer = time.AfterFunc(s.lifetime, func() { h.begin(func() { h.expire(s) }) })
	}
	h.sendHeartbeat(s.exportedAgent)
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

// otherSessions returns the sessions of which other nodes have sent heartbeats lately, by name.
func (h *Host) otherSessions() (list []heartbeat) {
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(h.sessions.other)) {
		if o := h.sessions.other[name]; o.isOffline() {
			delete(h.sessions.other, name)
		} else if h.sessions.own[name] == nil && !o.stopping {
			list = append(list, o.beat)
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
	all := h.exported()
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	h.sessions.closed = true
	for _, s := range h.sessions.own {
		if s != nil && s.timer != nil {
			s.timer.Stop()
		}
	}
	return all
}

// exported returns all agents at work for callers.
func (h *Host) exported() []*exportedAgent {
	all := slices.Clone(h.agents)
	if h.controller != nil {
		all = append(all, h.controller)
	}
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
		if _, works := running[s.name]; !works && !s.spawned {
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

// isSpawnedElsewhere reports whether another node has a session that was spawned.
func (h *Host) isSpawnedElsewhere(name string) bool {
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	other, heard := h.sessions.other[name]
	return heard && other.excludes(false)
}

// exportConversation makes a session of a conversation. Its prompts continue it with the agent and the directory of the
// run that works.
func (h *Host) exportConversation(ctx context.Context, id string, running client.RunInfo) {
	info, err := h.cfg.Client.Describe(ctx, running.RunID)
	if err == nil {
		s := &session{exportedAgent: &exportedAgent{name: id, task: client.RunRequest{Conversation: id}}, created: time.Now()}
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

// hearSessions notes the sessions of other nodes with the same owner, from their heartbeats.
func (h *Host) hearSessions(m *nats.Msg) {
	var b heartbeat
	if json.Unmarshal(m.Data, &b) != nil || b.Role != roleSession || b.Node == h.cfg.Node || b.IntervalS <= 0 || names.CheckToken(b.Session) != nil {
		return
	}
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	heard, known := h.sessions.other[b.Session]
	switch {
	case known && heard.excludes(false) && !b.Spawned: // its node is about to end it
		return
	case !known && len(h.sessions.other) >= instancesMax:
		return
	}
	if h.sessions.other == nil {
		h.sessions.other = map[string]otherSession{}
	}
	h.sessions.other[b.Session] = otherSession{beat: b, at: time.Now()}
	if own := h.sessions.own[b.Session]; b.Spawned && own != nil && !own.spawned { // it was exported before this was heard
		h.begin(func() { h.removeSession(own) })
	}
}
