package agentprotocol

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/troupe-run/troupe/client"
)

// runsLookedAt bounds the runs of a state among which those of conversations are looked for.
const runsLookedAt = 1024

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
			if r.Conversation != "" && r.Node == h.cfg.Node && r.Owner == "" { // an owner's conversation takes no prompts of others
				running[r.Conversation] = r
			}
		}
	}
	h.sessions.forgetRuns(running)
	var unread []error
	for _, s := range h.sessions.list() {
		r, works := running[s.name]
		follows := works && r.RunID == s.workingRun()
		if works && !follows && !s.spawned {
			var err error
			if follows, err = h.mayFollow(ctx, r); err != nil { // whether it may is seen with the next pass
				unread = append(unread, err)
				delete(running, s.name)
				continue
			}
		}
		switch {
		case s.spawned:
		case follows:
			s.setWorking(r)
		default:
			h.removeSession(s)
		}
		delete(running, s.name)
	}
	maps.DeleteFunc(running, func(id string, r client.RunInfo) bool {
		return h.sessions.isSpawnedElsewhere(id) || h.sessions.isOfSession(r)
	})
	for _, id := range slices.Sorted(maps.Keys(running)) {
		h.exportConversation(ctx, id, running[id])
	}
	return errors.Join(unread...)
}

// mayFollow reports whether a session may go on with the next run of its conversation.
func (h *Host) mayFollow(ctx context.Context, r client.RunInfo) (bool, error) {
	info, err := h.cfg.Client.Describe(ctx, r.RunID)
	if err != nil {
		return false, fmt.Errorf("agentprotocol: run %s of a conversation: %w", r.RunID, err)
	}
	return !h.sessions.noteOfSession(info), nil
}

// noteOfSession reports whether a spawned session began a run. The conversation of such a run is not exported: its
// prompts would lack the fields of the spawn.
func (set *sessionSet) noteOfSession(r client.RunInfo) bool {
	if d := r.Description; d == nil || !isSessionCaller(d.Caller) {
		return false
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	if set.ofSessions == nil {
		set.ofSessions = map[string]string{}
	}
	set.ofSessions[r.Conversation] = r.RunID
	return true
}

// isOfSession reports whether it is known that a spawned session began a run.
func (set *sessionSet) isOfSession(r client.RunInfo) bool {
	set.mu.Lock()
	defer set.mu.Unlock()
	return set.ofSessions[r.Conversation] == r.RunID
}

// forgetRuns forgets the runs of spawned sessions that no longer work.
func (set *sessionSet) forgetRuns(running map[string]client.RunInfo) {
	set.mu.Lock()
	defer set.mu.Unlock()
	maps.DeleteFunc(set.ofSessions, func(id, run string) bool { return running[id].RunID != run })
}

// exportConversation makes a session of a conversation, unless a spawned session began the run that works. Its prompts continue it with the agent and the directory of the
// run that works.
func (h *Host) exportConversation(ctx context.Context, id string, running client.RunInfo) {
	h.sessions.mu.Lock()
	err := h.checkSession(id, false)
	h.sessions.mu.Unlock()
	var info client.RunInfo
	if err == nil {
		info, err = h.cfg.Client.Describe(ctx, running.RunID)
	}
	if err == nil && h.sessions.noteOfSession(info) {
		return
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
