package agentprotocol

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus/names"
)

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

// isSpawnedElsewhere reports whether another node has a session that was spawned.
func (h *Host) isSpawnedElsewhere(name string) bool {
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	other, heard := h.sessions.other[name]
	return heard && other.excludes(false)
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
		maps.DeleteFunc(h.sessions.other, func(_ string, o otherSession) bool { return o.isOffline() })
		if len(h.sessions.other) >= instancesMax {
			return
		}
	}
	if h.sessions.other == nil {
		h.sessions.other = map[string]otherSession{}
	}
	h.sessions.other[b.Session] = otherSession{beat: b, at: time.Now()}
	if own := h.sessions.own[b.Session]; b.Spawned && own != nil && !own.spawned { // it was exported before this was heard
		h.begin(func() { h.removeSession(own) })
	}
}
