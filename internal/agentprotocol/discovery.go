package agentprotocol

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus/names"
)

// foundAgent is what a discovery says of an agent.
type foundAgent struct {
	name                  string // HARNESS/OWNER/NAME, as it was called
	subject               string // of its prompts
	payloadMax            int
	agent, owner, session string // its metadata
}

// Errors of a discovery. The task was not sent.
var (
	errVersion = errors.New("the agent speaks a version of the protocol that is not supported")
	errSigned  = errors.New("the agent takes prompts of signed senders only")
	errSubject = errors.New("the agent takes prompts at a subject at which none may be")
)

// findAgent asks all agents on the server who they are, and returns the first that has the name.
func (c *Caller) findAgent(ctx context.Context, name string) (found foundAgent, err error) {
	if _, err := names.ForeignPrompt(name); err != nil {
		return found, fmt.Errorf("%w: %w", errNobody, err)
	}
	inbox := c.conn.NewInbox()
	sub, err := c.conn.SubscribeSync(inbox)
	if err != nil {
		return found, fmt.Errorf("agentprotocol: inbox: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails only if the connection is closed
	if err := c.conn.PublishRequest("$SRV.INFO."+serviceName, inbox, nil); err != nil {
		return found, fmt.Errorf("%w: %w", errNotSent, err)
	}
	waiting, cancel := context.WithTimeout(ctx, c.discovery)
	defer cancel()
	why := errNobody
	for {
		m, err := sub.NextMsgWithContext(waiting)
		switch {
		case ctx.Err() != nil:
			return found, errNoWait
		case err != nil: // no further reply
			return found, why
		}
		found, err := c.readInfo(name, m.Data)
		if err == nil {
			return found, nil
		}
		if !errors.Is(err, errNobody) {
			why = fmt.Errorf("%w: %w", errNotSent, err)
		}
	}
}

// readInfo reads what a service says of itself. errNobody: it is another agent.
func (c *Caller) readInfo(name string, data []byte) (a foundAgent, err error) {
	// The metadata of endpoints are texts or, by other libraries, values of JSON.
	var info struct {
		Name      string
		Metadata  map[string]string
		Endpoints []struct {
			Name, Subject string
			Metadata      map[string]any
		}
	}
	if json.Unmarshal(data, &info) != nil || info.Name != serviceName {
		return a, errNobody
	}
	a = foundAgent{name: name, agent: info.Metadata["agent"], owner: info.Metadata["owner"], session: info.Metadata["session"]}
	for _, e := range info.Endpoints {
		if e.Name != names.AgentPrompt || !a.isAt(e.Subject) {
			continue
		}
		a.subject = e.Subject
		if a.payloadMax, err = parseBytes(fmt.Sprint(e.Metadata["max_payload"])); err != nil {
			a.payloadMax = payloadBytesMax // as it is unknown, the server decides
		}
		a.payloadMax = int(min(int64(a.payloadMax), c.conn.MaxPayload()))
		trust, declared := e.Metadata["min_sender_trust"]
		switch {
		case !isCompatible(info.Metadata["protocol_version"]):
			return a, fmt.Errorf("%w: %.20q", errVersion, info.Metadata["protocol_version"])
		case declared && trust != "any":
			return a, errSigned
		case !c.mayPromptAt(a.subject):
			return a, errSubject
		}
		return a, nil
	}
	return a, errNobody
}

// isAt reports whether an agent that takes prompts at a subject has the name: by the tokens of the subject, if it is
// of the default form, and else by its metadata. The first token may also be the full name of the harness.
func (a foundAgent) isAt(subject string) bool {
	want := strings.Split(a.name, "/")
	tokens := strings.Split(subject, ".")
	owner, name, harness := a.owner, a.session, ""
	if len(tokens) == 5 && tokens[0] == "agents" && tokens[1] == names.AgentPrompt {
		harness, owner, name = tokens[2], tokens[3], tokens[4]
	}
	return (want[0] == harness || want[0] == a.agent) && want[1] == owner && want[2] == name
}

// isCompatible reports whether an agent of a version of the protocol can be called: those
// before 0.3 have other subjects.
func isCompatible(version string) bool {
	major, rest, ok := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(minor)
	return ok && major == "0" && err == nil && n >= 3
}

// parseBytes reads a size such as 512KB.
func parseBytes(text string) (int, error) {
	for _, unit := range []struct {
		name  string
		bytes int
	}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"B", 1}} {
		number, ok := strings.CutSuffix(text, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > (1<<31)/unit.bytes {
			return 0, fmt.Errorf("agentprotocol: %.40q is not a size", text)
		}
		return n * unit.bytes, nil
	}
	return 0, fmt.Errorf("agentprotocol: %.40q is not a size", text)
}

// missedBeats is how many heartbeats an instance may miss before it counts as offline.
const missedBeats = 3

// liveness follows the heartbeats of all agents, by instance.
type liveness struct {
	mu        sync.Mutex
	instances map[string]instanceBeat
}

// instanceBeat is the newest heartbeat of an instance, with the tokens of its subject.
type instanceBeat struct {
	harness, name         string
	agent, owner, session string
	at                    time.Time
	interval              time.Duration
}

func newLiveness() *liveness { return &liveness{instances: map[string]instanceBeat{}} }

// add takes a heartbeat. One that is malformed is ignored. Heartbeats of an instance count only on its
// subject, so other publishers cannot impersonate it.
func (l *liveness) add(m *nats.Msg) {
	b, ok := readForeignBeat(m.Subject, m.Data)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	tokens := strings.Split(m.Subject, ".")
	l.instances = withBeat(l.instances, m.Subject+" "+b.InstanceID, instanceBeat{tokens[2], tokens[4], b.Agent, b.Owner, b.Session, time.Now(), b.interval()})
}

// isOf reports whether the instance is one of an agent. The name of an agent is in the subjects only: its session may be
// another label (section 8.3). An agent with a prompt subject of its own choice is known by its session.
func (b instanceBeat) isOf(a foundAgent) bool {
	if b.agent != a.agent || b.owner != a.owner {
		return false
	}
	if tokens := strings.Split(a.subject, "."); strings.HasPrefix(a.subject, agentSubjects) && len(tokens) == 5 {
		return b.harness == tokens[2] && b.name == tokens[4]
	}
	return cmp.Or(b.session, a.session) == a.session
}

func (b instanceBeat) isOffline() bool { return time.Since(b.at) > missedBeats*b.interval }

func (b instanceBeat) heardAt() time.Time { return b.at }

// silence returns how long ago the last heartbeat of an agent came, if all its instances that were heard are offline;
// 0: one is not, or none was ever heard.
func (l *liveness) silence(a foundAgent) (longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.instances {
		if !b.isOf(a) {
			continue
		}
		if !b.isOffline() {
			return 0
		}
		if since := time.Since(b.at); longest == 0 || since < longest {
			longest = since
		}
	}
	return longest
}
