package agentprotocol

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus/names"
)

// infoBytesMax bounds what an agent of this owner says of itself.
const infoBytesMax = 16 << 10

// otherSession is a session, or an agent, of another node.
type otherSession struct {
	beat heartbeat
	at   time.Time
	// stopping says that a stop came after that heartbeat: its node ends the session, or a heartbeat says otherwise.
	stopping bool
}

func (o otherSession) isOffline() bool { return time.Since(o.at) > missedBeats*o.beat.interval() }

func (o otherSession) heardAt() time.Time { return o.at }

// excludes reports whether the session has its name to itself. One that was spawned has a single instance: a second one
// would start runs without the fields of the spawn.
func (o otherSession) excludes(spawned bool) bool {
	if spawned {
		return !o.stopping && !o.isOffline()
	}
	return o.beat.Spawned && !o.isOffline()
}

// others returns the sessions of other nodes with a recent heartbeat, by name.
func (set *sessionSet) others() (list []heartbeat) {
	set.mu.Lock()
	defer set.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(set.other)) {
		if o := set.other[name]; o.isOffline() {
			delete(set.other, name)
		} else if set.own[name] == nil && !o.stopping {
			list = append(list, o.beat)
		}
	}
	return list
}

// isSpawnedElsewhere reports whether another node has a session that was spawned.
func (set *sessionSet) isSpawnedElsewhere(name string) bool {
	set.mu.Lock()
	defer set.mu.Unlock()
	other, heard := set.other[name]
	return heard && other.excludes(false)
}

// hearAgents notes the sessions and the agents of other nodes with the same owner, from their heartbeats.
func (h *Host) hearAgents(m *nats.Msg) {
	b, ok := readHeartbeat(m.Subject, m.Data)
	if !ok || b.Agent != h.cfg.Names.Prefix() || b.Owner != h.cfg.Owner || names.CheckToken(b.Session) != nil || b.Node == h.cfg.Node {
		return
	}
	if b.Role == roleSession {
		h.noteSession(b)
	} else {
		h.noteAgent(b)
	}
}

// noteSession notes a session of another node.
func (h *Host) noteSession(b heartbeat) {
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	if heard, known := h.sessions.other[b.Session]; known && heard.excludes(false) && !b.Spawned { // its node is about to end it
		return
	}
	h.sessions.other = withBeat(h.sessions.other, b.Session, otherSession{beat: b, at: time.Now()})
	if own := h.sessions.own[b.Session]; b.Spawned && own != nil && !own.spawned { // it was exported before this was heard
		h.begin(func() { h.removeSession(own) })
	}
}

// noteAgent notes an agent of another node. A conversation of its name stops being exported: both would share its prompts.
func (h *Host) noteAgent(b heartbeat) {
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	heard := h.sessions.agents[b.Session]
	h.sessions.agents = withBeat(h.sessions.agents, b.Session, otherSession{beat: b, at: time.Now()})
	switch own := h.sessions.own[b.Session]; {
	case own == nil:
	case !own.spawned:
		h.begin(func() { h.removeSession(own) })
	case heard.at.IsZero(): // the first sign of any agent of the name
		h.cfg.Logger.Warn("a session and an agent of another node share their prompts: they have one name", "session", b.Session, "node", b.Node)
	}
}

// isOtherAgent reports whether an agent of another node has the name. The caller holds sessions.mu.
func (set *sessionSet) isOtherAgent(name string) bool {
	a, heard := set.agents[name]
	return heard && !a.isOffline()
}

// hearInfo notes an agent of another node from its answer to a discovery.
func (h *Host) hearInfo(m *nats.Msg) {
	var info struct {
		Name, ID  string
		Metadata  map[string]string
		Endpoints []struct{ Name, Subject string }
	}
	if len(m.Data) > infoBytesMax || json.Unmarshal(m.Data, &info) != nil || info.Name != serviceName || info.Metadata["role"] == roleSession {
		return
	}
	for _, e := range info.Endpoints {
		name := e.Subject[strings.LastIndexByte(e.Subject, '.')+1:]
		subject, err := h.cfg.Names.AgentSubject(names.AgentPrompt, h.cfg.Owner, name)
		node := info.Metadata["node"]
		if err == nil && subject == e.Subject && node != h.cfg.Node && len(info.ID) <= beatTextMax && len(node) <= beatTextMax {
			h.noteAgent(heartbeat{Session: name, InstanceID: info.ID, Node: node, IntervalS: h.cfg.Heartbeat.Seconds()})
		}
	}
}
