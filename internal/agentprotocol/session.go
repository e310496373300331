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
	agents  map[string]otherSession // of other nodes, by name
	skipped map[string]bool         // conversations that cannot be exported, of which a log entry was written
	// ofSessions are the runs that work and that spawned sessions began, by their conversation.
	ofSessions map[string]string
}

var (
	errNodeClosing   = &client.Error{Code: client.CodeUnavailable, Text: "the node is closing"}
	errSessionExists = &client.Error{Code: client.CodeConflict, Text: "the session exists", Hint: "prompt it, or leave session_id out"}
	errAgentName     = &client.Error{Code: client.CodeConflict, Text: "an agent has the name", Hint: "choose another session_id, or leave it out"}
	errSessionLimit  = &client.Error{Code: client.CodeLimit, Text: fmt.Sprintf("the node has %d sessions", sessionsMax), Hint: "stop one", Retry: time.Minute}
)

// sessionKeeper makes sessions of this node agents for callers, and ends them with their runs.
type sessionKeeper struct {
	host *Host
	set  *sessionSet
}

// addSession makes a session one of this node.
func (k *sessionKeeper) addSession(s *session, description string) error {
	set := k.set
	set.mu.Lock()
	if err := k.checkSession(s.name, s.spawned); err != nil {
		set.mu.Unlock()
		return err
	}
	if set.own == nil {
		set.own = map[string]*session{}
	}
	set.own[s.name] = nil
	set.mu.Unlock()
	return k.register(s, description)
}

// register registers a session that has a place among those of the node.
func (k *sessionKeeper) register(s *session, description string) error {
	set := k.set
	err := k.host.export(s.exportedAgent, description, map[string]string{"role": roleSession}, s.endpoints(s.handlePrompt)...)
	if err == nil {
		err = k.host.cfg.Conn.FlushTimeout(flushTimeout)
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	other, heard := set.other[s.name]
	switch {
	case err != nil:
	case set.closed:
		err = errNodeClosing
	case k.set.isOtherAgent(s.name):
		err = errAgentName
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
		s.timer = time.AfterFunc(s.lifetime, func() { k.host.begin(func() { k.expire(s) }) })
	}
	k.host.sendHeartbeat(s.exportedAgent)
	return nil
}

// checkSession returns why no session of the name may be registered. The caller holds sessions.mu.
func (k *sessionKeeper) checkSession(name string, spawned bool) error {
	set := k.set
	_, own := set.own[name]
	other, heard := set.other[name]
	switch {
	case set.closed:
		return errNodeClosing
	case k.host.isAgentName(name), k.set.isOtherAgent(name):
		return errAgentName
	case own, heard && other.excludes(spawned):
		return errSessionExists
	case len(set.own) >= sessionsMax:
		return errSessionLimit
	}
	return nil
}

func (h *Host) isAgentName(name string) bool {
	return name == controllerName || slices.ContainsFunc(h.agents, func(e *exportedAgent) bool { return e.name == name })
}

// find returns a session of this node.
func (set *sessionSet) find(name string) (s *session, ok bool) {
	set.mu.Lock()
	defer set.mu.Unlock()
	s = set.own[name]
	return s, s != nil
}

// list returns the sessions of this node by name.
func (set *sessionSet) list() (list []*session) {
	set.mu.Lock()
	defer set.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(set.own)) {
		if s := set.own[name]; s != nil {
			list = append(list, s)
		}
	}
	return list
}

// removeSession ends the export of a session. Its prompts go on.
func (k *sessionKeeper) removeSession(s *session) {
	k.set.mu.Lock()
	if k.set.own[s.name] == s {
		delete(k.set.own, s.name)
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	k.set.mu.Unlock()
	if err := s.service.Stop(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		k.host.cfg.Logger.Warn("the service of a session was not stopped", "session", s.name, "error", err)
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
	if e := h.controller.agent; e != nil {
		all = append(all, e)
	}
	return all
}

// exported returns all agents at work for callers.
func (h *Host) exported() []*exportedAgent {
	all := h.lasting()
	for _, s := range h.sessions.list() {
		all = append(all, s.exportedAgent)
	}
	return all
}

// expire stops a session whose lifetime is over. It tries again until its runs are canceled.
func (k *sessionKeeper) expire(s *session) {
	for k.host.ctx.Err() == nil {
		err := k.stopSession(k.host.ctx, s, "the lifetime of its session is over")
		if err == nil {
			return
		}
		k.host.cfg.Logger.Warn("the runs of a session were not canceled", "session", s.name, "error", err)
		select {
		case <-time.After(expireAgainAfter):
		case <-k.host.ctx.Done():
		}
	}
}

// stopSession cancels the runs of a session of this node and ends it. A prompt whose run begins now cancels it itself.
// After an error the session goes on, so that the stop can be repeated.
func (k *sessionKeeper) stopSession(ctx context.Context, s *session, why string) error {
	s.ending.Lock()
	defer s.ending.Unlock()
	if s.isStopped() {
		return nil
	}
	s.setStopped(true)
	if err := k.cancelRuns(ctx, s, why); err != nil {
		s.setStopped(false)
		return err
	}
	k.removeSession(s)
	return nil
}

// cancelRuns cancels the runs of a session that have not ended, those that wait first. Of a session that was spawned,
// these are the runs that it began: others of its conversation were there before, or are of another client. Model calls
// are aborted: nobody waits for what they return.
func (k *sessionKeeper) cancelRuns(ctx context.Context, s *session, why string) error {
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	c, err := k.host.cfg.Client.Conversations().Get(ctx, s.name)
	if hasGone(err) { // it has no run
		return nil
	}
	errs := []error{err}
	for _, r := range slices.Backward(c.Runs) {
		if r.Status != lane.Active && r.Status != lane.Waiting {
			continue
		}
		if own, err := k.isRunOf(ctx, s, r.ID); err != nil || !own {
			errs = append(errs, err)
			continue
		}
		_, err := k.host.cfg.Client.Cancel(ctx, client.CancelRequest{RunID: r.ID, Why: why, Now: true, WaitMS: -1})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// isRunOf reports whether the end of a session cancels a run of its conversation. A run whose logs cannot be read is
// canceled: nothing says that it is another's, and it must not go on unseen.
func (k *sessionKeeper) isRunOf(ctx context.Context, s *session, run string) (bool, error) {
	if !s.spawned {
		return true, nil
	}
	info, err := k.host.cfg.Client.Describe(ctx, run)
	var refused *client.Error
	switch {
	case hasGone(err):
		return false, nil
	case client.Lost(err), errors.As(err, &refused) && refused.Code == client.CodeLimit: // the next attempt may learn it
		return false, err
	case err != nil, info.Description == nil:
		return true, nil
	}
	return isSessionCaller(info.Description.Caller), nil
}

// hasGone reports whether a node refused a request because there is no such run or conversation, or no longer.
func hasGone(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && (refused.Code == client.CodeNotFound || refused.Code == client.CodeGone)
}
