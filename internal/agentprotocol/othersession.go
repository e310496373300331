package agentprotocol

import (
	"encoding/json"
	"errors"
	"fmt"
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

// agentListener learns of the agents and sessions of other nodes with the same owner.
type agentListener struct {
	host     *Host
	set      *sessionSet
	sessions *sessionKeeper
	beats    *nats.Subscription // to their heartbeats
	infos    *nats.Subscription // to their answers to a discovery
}

// listen subscribes to the heartbeats, and asks who is there.
func (l *agentListener) listen() error {
	subject, err := l.host.cfg.Names.AgentSubject(names.AgentHeartbeat, l.host.cfg.Owner, controllerName)
	if err == nil {
		l.beats, err = l.host.cfg.Conn.Subscribe(strings.TrimSuffix(subject, controllerName)+"*", l.hearAgents)
	}
	if err != nil {
		return fmt.Errorf("agentprotocol: heartbeats of sessions: %w", err)
	}
	return l.discoverAgents()
}

// discoverAgents asks the agents of other nodes who they are: their heartbeats come later.
func (l *agentListener) discoverAgents() (err error) {
	if l.host.cfg.Discovery == nil {
		return nil
	}
	inbox := l.host.cfg.Discovery.NewInbox()
	l.infos, err = l.host.cfg.Discovery.Subscribe(inbox, l.hearInfo)
	if err == nil {
		err = l.host.cfg.Discovery.PublishRequest("$SRV.INFO."+serviceName, inbox, nil)
	}
	if err != nil {
		return fmt.Errorf("agentprotocol: agents of other nodes: %w", err)
	}
	return nil
}

// close ends the subscriptions.
func (l *agentListener) close() (err error) {
	for _, sub := range []*nats.Subscription{l.beats, l.infos} {
		if sub == nil {
			continue
		}
		if e := sub.Unsubscribe(); e != nil && !errors.Is(e, nats.ErrConnectionClosed) && !errors.Is(e, nats.ErrBadSubscription) {
			err = errors.Join(err, fmt.Errorf("agentprotocol: heartbeats of sessions: %w", e))
		}
	}
	return err
}

// hearAgents notes the sessions and the agents of other nodes with the same owner, from their heartbeats.
func (l *agentListener) hearAgents(m *nats.Msg) {
	b, ok := readHeartbeat(m.Subject, m.Data)
	if !ok || b.Agent != l.host.cfg.Names.Prefix() || b.Owner != l.host.cfg.Owner || names.CheckToken(b.Session) != nil || b.Node == l.host.cfg.Node {
		return
	}
	if b.Role == roleSession {
		l.noteSession(b)
	} else {
		l.noteAgent(b)
	}
}

// noteSession notes a session of another node.
func (l *agentListener) noteSession(b heartbeat) {
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	if heard, known := l.set.other[b.Session]; known && heard.excludes(false) && !b.Spawned { // its node is about to end it
		return
	}
	l.set.other = withBeat(l.set.other, b.Session, otherSession{beat: b, at: time.Now()})
	if own := l.set.own[b.Session]; b.Spawned && own != nil && !own.spawned { // it was exported before this was heard
		l.host.begin(func() { l.sessions.removeSession(own) })
	}
}

// noteAgent notes an agent of another node. A conversation of its name stops being exported: both would share its prompts.
func (l *agentListener) noteAgent(b heartbeat) {
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	heard := l.set.agents[b.Session]
	l.set.agents = withBeat(l.set.agents, b.Session, otherSession{beat: b, at: time.Now()})
	switch own := l.set.own[b.Session]; {
	case own == nil:
	case !own.spawned:
		l.host.begin(func() { l.sessions.removeSession(own) })
	case heard.at.IsZero(): // the first sign of any agent of the name
		l.host.cfg.Logger.Warn("a session and an agent of another node share their prompts: they have one name", "session", b.Session, "node", b.Node)
	}
}

// isOtherAgent reports whether an agent of another node has the name. The caller holds sessions.mu.
func (set *sessionSet) isOtherAgent(name string) bool {
	a, heard := set.agents[name]
	return heard && !a.isOffline()
}

// hearInfo notes an agent of another node from its answer to a discovery.
func (l *agentListener) hearInfo(m *nats.Msg) {
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
		subject, err := l.host.cfg.Names.AgentSubject(names.AgentPrompt, l.host.cfg.Owner, name)
		node := info.Metadata["node"]
		if err == nil && subject == e.Subject && node != l.host.cfg.Node && len(info.ID) <= beatTextMax && len(node) <= beatTextMax {
			l.noteAgent(heartbeat{Session: name, InstanceID: info.ID, Node: node, IntervalS: l.host.cfg.Heartbeat.Seconds()})
		}
	}
}
