package agentprotocol

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// The states of an exported agent in heartbeats.
const (
	stateIdle    = "idle"    // it answers no prompt
	stateBusy    = "busy"    // it answers one or more
	stateWaiting = "waiting" // all of them wait for a person
)

// heartbeat is the payload of heartbeats and of replies to status requests. The first six fields are of the protocol.
type heartbeat struct {
	Agent      string  `json:"agent"`
	Owner      string  `json:"owner"`
	Session    string  `json:"session"`
	InstanceID string  `json:"instance_id"`
	Time       string  `json:"ts"`
	IntervalS  float64 `json:"interval_s"`

	// Role is what the instance is, if it is no agent of the node: roleSession or roleController.
	Role string `json:"role,omitempty"`
	// Spawned says that spawn started the session: no other node exports one of the name.
	Spawned bool   `json:"spawned,omitempty"`
	Node    string `json:"node"`
	State   string `json:"state"`
	Prompts int    `json:"prompts"` // that it answers now
	// RunID is the newest run of these, the tokens are its. A conversation that answers no prompt has the run that works.
	RunID       string `json:"run_id,omitempty"`
	TokensUsed  int64  `json:"tokens_used,omitempty"`
	TokensLimit int64  `json:"tokens_limit,omitempty"`
}

const (
	// beatBytesMax and beatTextMax bound a heartbeat, and each text of it.
	beatBytesMax, beatTextMax = 4096, names.TokenBytesMax + 1
	// intervalMin is the shortest interval that counts, intervalMax the longest that is accepted.
	intervalMin, intervalMax = time.Second, 24 * time.Hour
	// instancesMax bounds the instances whose heartbeats are followed.
	instancesMax = 4096
)

// readHeartbeat reads a heartbeat of an agent of this program, whose session is the name in the subject.
func readHeartbeat(subject string, data []byte) (b heartbeat, ok bool) {
	b, ok = readForeignBeat(subject, data)
	name := subject[strings.LastIndexByte(subject, '.')+1:]
	return b, ok && cmp.Or(b.Session, name) == name
}

// readForeignBeat reads a heartbeat, which must be about the owner of its subject. ok is false for one that is malformed,
// forged or above its limits.
func readForeignBeat(subject string, data []byte) (b heartbeat, ok bool) {
	tokens := strings.Split(subject, ".")
	if len(tokens) != 5 || len(data) > beatBytesMax || json.Unmarshal(data, &b) != nil || b.Owner != tokens[3] {
		return b, false
	}
	for _, text := range []string{b.Agent, b.Owner, b.Session, b.InstanceID, b.Time, b.Role, b.Node, b.State, b.RunID} {
		if len(text) > beatTextMax {
			return b, false
		}
	}
	return b, b.InstanceID != "" && b.IntervalS > 0 && b.IntervalS <= intervalMax.Seconds()
}

// interval is the interval in which the next heartbeat comes.
func (b heartbeat) interval() time.Duration {
	return max(time.Duration(b.IntervalS*float64(time.Second)), intervalMin)
}

// heardBeat is what is kept of a heartbeat.
type heardBeat interface {
	isOffline() bool
	heardAt() time.Time
}

// withBeat keeps a heartbeat. If there is no room, those that are offline go, or else the one that was heard longest ago.
func withBeat[B heardBeat](kept map[string]B, key string, b B) map[string]B {
	if kept == nil {
		kept = map[string]B{}
	}
	if _, known := kept[key]; !known && len(kept) >= instancesMax {
		maps.DeleteFunc(kept, func(_ string, k B) bool { return k.isOffline() })
		if len(kept) >= instancesMax {
			delete(kept, slices.MinFunc(slices.Collect(maps.Keys(kept)), func(x, y string) int { return kept[x].heardAt().Compare(kept[y].heardAt()) }))
		}
	}
	kept[key] = b
	return kept
}

// beat makes the heartbeat of this moment.
func (e *exportedAgent) beat() heartbeat {
	c, info := e.host.cfg, e.service.Info()
	b := heartbeat{Agent: c.Names.Prefix(), Owner: c.Owner, Session: e.name, Role: info.Metadata["role"], Spawned: e.spawned, InstanceID: info.ID, Time: time.Now().UTC().Format(time.RFC3339),
		IntervalS: c.Heartbeat.Seconds(), Node: c.Node, State: stateIdle}
	e.mu.Lock()
	defer e.mu.Unlock()
	b.Prompts = len(e.live)
	if b.Prompts == 0 && e.working.RunID != "" {
		b.State, b.RunID = stateBusy, e.working.RunID
		if e.working.State == client.RunParked {
			b.State = stateWaiting
		}
	}
	for i, p := range e.live {
		run, waiting, tokens, limit := p.state()
		switch {
		case !waiting:
			b.State = stateBusy
		case i == 0:
			b.State = stateWaiting
		}
		b.RunID, b.TokensUsed, b.TokensLimit = run, tokens, limit
	}
	return b
}

// sendHeartbeats sends the heartbeats of all agents until the end.
func (h *Host) sendHeartbeats() {
	tick := time.NewTicker(h.cfg.Heartbeat)
	defer tick.Stop()
	for {
		for _, e := range h.exported() {
			h.sendHeartbeat(e)
		}
		select {
		case <-tick.C:
		case <-h.ctx.Done():
			return
		}
	}
}

func (h *Host) sendHeartbeat(e *exportedAgent) {
	if err := h.cfg.Conn.Publish(e.heartbeatSubject, encode(e.beat())); err != nil {
		h.cfg.Logger.Debug("a heartbeat was not sent", "agent", e.name, "error", err)
	}
}

// sendStatus answers a status request with a heartbeat. What the request contains is ignored.
func (e *exportedAgent) sendStatus(r micro.Request) {
	if !bus.CanAnswer(r.Reply()) {
		return
	}
	if err := e.host.cfg.Conn.PublishMsg(&nats.Msg{Subject: r.Reply(), Data: encode(e.beat())}); err != nil {
		e.host.cfg.Logger.Debug("a status was not sent", "agent", e.name, "error", fmt.Errorf("status: %w", err))
	}
}
