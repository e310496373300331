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

// conversationFollower exports the conversations with a run that works on this node, for as long as it works.
type conversationFollower struct {
	host     *Host
	set      *sessionSet
	sessions *sessionKeeper
}

// followConversations exports the conversations with a run that works on this node, until the end.
func (f *conversationFollower) followConversations() {
	tick := time.NewTicker(f.host.cfg.Heartbeat)
	defer tick.Stop()
	for {
		if err := f.exportConversations(); err != nil && f.host.ctx.Err() == nil {
			f.host.cfg.Logger.Debug("running conversations were not read", "error", err)
		}
		select {
		case <-tick.C:
		case <-f.host.ctx.Done():
			return
		}
	}
}

// exportConversations makes sessions of the conversations with a run that works on this node, and ends those of others.
func (f *conversationFollower) exportConversations() error {
	ctx, cancel := context.WithTimeout(f.host.ctx, sessionTimeout)
	defer cancel()
	running := map[string]client.RunInfo{}
	for _, state := range []client.RunState{client.RunLive, client.RunParked} {
		list, err := f.host.cfg.Client.ListRuns(ctx, client.ListRequest{State: state, Limit: runsLookedAt})
		if err != nil {
			return fmt.Errorf("agentprotocol: %w", err)
		}
		for _, r := range list {
			if r.Conversation != "" && r.Node == f.host.cfg.Node && r.Owner == "" { // an owner's conversation takes no prompts of others
				running[r.Conversation] = r
			}
		}
	}
	f.set.forgetRuns(running)
	var unread []error
	for _, s := range f.set.list() {
		r, works := running[s.name]
		follows := works && r.RunID == s.workingRun()
		if works && !follows && !s.spawned {
			var err error
			if follows, err = f.mayFollow(ctx, r); err != nil { // whether it may is seen with the next pass
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
			f.sessions.removeSession(s)
		}
		delete(running, s.name)
	}
	maps.DeleteFunc(running, func(id string, r client.RunInfo) bool {
		return f.set.isSpawnedElsewhere(id) || f.set.isOfSession(r)
	})
	for _, id := range slices.Sorted(maps.Keys(running)) {
		f.exportConversation(ctx, id, running[id])
	}
	return errors.Join(unread...)
}

// mayFollow reports whether a session may go on with the next run of its conversation.
func (f *conversationFollower) mayFollow(ctx context.Context, r client.RunInfo) (bool, error) {
	info, err := f.host.cfg.Client.Describe(ctx, r.RunID)
	if err != nil {
		return false, fmt.Errorf("agentprotocol: run %s of a conversation: %w", r.RunID, err)
	}
	return !f.set.noteOfSession(info), nil
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
func (f *conversationFollower) exportConversation(ctx context.Context, id string, running client.RunInfo) {
	f.set.mu.Lock()
	err := f.sessions.checkSession(id, false)
	f.set.mu.Unlock()
	var info client.RunInfo
	if err == nil {
		info, err = f.host.cfg.Client.Describe(ctx, running.RunID)
	}
	if err == nil && f.set.noteOfSession(info) {
		return
	}
	if err == nil {
		s := &session{exportedAgent: &exportedAgent{name: id, task: client.RunRequest{Conversation: id}, working: running}, created: time.Now()}
		if d := info.Description; d != nil {
			s.task.Agent, s.task.Dir = d.Root, d.Workspace
		}
		err = f.sessions.addSession(s, "The conversation "+id)
	}
	f.set.mu.Lock()
	defer f.set.mu.Unlock()
	if err == nil || f.set.skipped[id] || f.host.ctx.Err() != nil {
		return
	}
	if len(f.set.skipped) >= instancesMax || f.set.skipped == nil {
		f.set.skipped = map[string]bool{}
	}
	f.set.skipped[id] = true
	f.host.cfg.Logger.Warn("a running conversation is not exported", "conversation", id, "error", err)
}
