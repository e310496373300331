package agentprotocol

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/clip"
)

// The controller of sessions takes the requests spawn, list and stop, in the form of the controllers that come with the
// protocol. They are no part of the protocol itself.

const (
	controllerName = "control"
	verbSpawn      = "spawn"
	verbList       = "list"
	verbStop       = "stop"
	// unknownAfter is how long a node that does not know a session waits before it says so: another node may have it.
	unknownAfter = time.Second
)

// controllerHelp answers prompts to the controller.
const controllerHelp = "This agent starts, lists and stops sessions: conversations that are agents of their own. Send JSON to its endpoints:\n" +
	`spawn {"cwd": "/srv/repos/a", "agent": "assistant", "session_id": "plans", "model": "…", "allowed_tools": ["Read"], "permission_mode": "default", "max_turns": 20, "max_lifetime_s": 1800}` +
	" (all optional), list with an empty payload, stop " + `{"session_id": "plans"}` + "."

// controller serves the requests spawn, list and stop.
type controller struct {
	host     *Host
	set      *sessionSet
	sessions *sessionKeeper
	agent    *exportedAgent // nil: it is not exported yet
	// denialSlots bounds the stops of sessions that other nodes may have.
	denialSlots chan struct{}
}

// export makes the controller an agent for callers.
func (c *controller) export() error {
	e := &exportedAgent{name: controllerName}
	own := []endpoint{{verbSpawn, c.handleControl(c.spawn, nil), queueGroup}, {verbList, c.handleControl(c.listSessions, nil), queueGroup},
		// All nodes take it: the one that has the session answers.
		{verbStop, c.handleControl(c.stop, c.isElsewhere), ""}}
	err := c.host.export(e, "Starts, lists and stops sessions", map[string]string{"role": roleController}, append(e.endpoints(e.handleHelp), own...)...)
	if err != nil {
		return fmt.Errorf("agentprotocol: %s: %w", controllerName, err)
	}
	c.agent = e
	return nil
}

// handleHelp answers a prompt to the controller.
func (e *exportedAgent) handleHelp(r micro.Request) {
	if !bus.CanAnswer(r.Reply()) {
		return
	}
	out := &replyStream{conn: e.host.cfg.Conn, subject: r.Reply(), redact: e.host.cfg.Redact, logger: e.host.cfg.Logger}
	defer out.end()
	if _, failed := e.host.checkSender(r.Headers().Get(senderHeader), r.Subject(), r.Data()); failed != nil {
		out.fail(*failed)
		return
	}
	out.send(chunkStatus, statusAck)
	out.sendText(controllerHelp)
}

// errSilent says that another node answers.
var errSilent = errors.New("agentprotocol: another node answers")

// isElsewhere reports whether a request is about a session that this node does not have.
func (c *controller) isElsewhere(data []byte) bool {
	var r struct {
		SessionID string `json:"session_id"`
	}
	if decodeObject(data, &r) != nil || names.CheckToken(r.SessionID) != nil {
		return false // every node may say that it is malformed
	}
	_, own := c.set.find(r.SessionID)
	return !own
}

// handleControl serves a request to the controller in a goroutine of its own. caller names a verified sender. A node
// that is busy or closing is silent about a request that elsewhere reports as one for another node.
func (c *controller) handleControl(do func(ctx context.Context, caller string, data []byte) (any, error), elsewhere func(data []byte) bool) func(micro.Request) {
	verbSlots := make(chan struct{}, PromptsAtOnce) // not those of prompts: a node that answers many can still be told to stop
	return func(r micro.Request) {
		if !bus.CanAnswer(r.Reply()) {
			return
		}
		answer := func(header nats.Header, v any) {
			if err := c.host.cfg.Conn.PublishMsg(&nats.Msg{Subject: r.Reply(), Header: header, Data: c.host.cfg.Redact(encode(v))}); err != nil {
				c.host.cfg.Logger.Debug("a request to the controller was not answered", "error", err)
			}
		}
		refuse := func(p problem) {
			text := strings.Join(strings.Fields(string(c.host.cfg.Redact([]byte(p.Message)))), " ")
			answer(nats.Header{micro.ErrorCodeHeader: {p.code}, micro.ErrorHeader: {clip.Text(text, errorHeaderMax)}}, p)
		}
		if len(r.Data()) > c.host.payloadMax {
			refuse(refusalOf(badEnvelope("", "the payload has %d bytes, at most %d are accepted", len(r.Data()), c.host.payloadMax)))
			return
		}
		caller, failed := c.host.checkSender(r.Headers().Get(senderHeader), r.Subject(), r.Data())
		if failed != nil {
			refuse(*failed)
			return
		}
		slots, deny := verbSlots, refuse
		if elsewhere != nil && elsewhere(r.Data()) {
			slots, deny = c.denialSlots, func(problem) {}
		}
		select {
		case slots <- struct{}{}:
		default:
			deny(busyProblem)
			return
		}
		begun := c.host.begin(func() {
			defer func() { <-slots }()
			defer func() {
				if bug := recover(); bug != nil {
					c.host.cfg.Logger.Error("a request to the controller met a bug", "panic", bug, "stack", string(debug.Stack()))
					deny(bugProblem)
				}
			}()
			v, err := do(c.host.ctx, caller, r.Data())
			switch {
			case errors.Is(err, errSilent):
			case err != nil:
				refuse(refusalOf(err))
			default:
				answer(nil, v)
			}
		})
		if !begun {
			<-slots
			deny(closingProblem)
		}
	}
}

// decodeObject reads a JSON object; an empty payload is an empty one.
func decodeObject(data []byte, into any) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return badEnvelope("docs/agentprotocol.md has the fields", "the payload is no JSON object of the request: %v", err)
	}
	return nil
}

// stop ends a session. All nodes get the request: the one that has the session answers, and the others say that there
// is none only if none has been heard of.
func (c *controller) stop(ctx context.Context, caller string, data []byte) (any, error) {
	var r struct {
		SessionID string `json:"session_id"`
	}
	if err := decodeObject(data, &r); err != nil {
		return nil, err
	}
	if names.CheckToken(r.SessionID) != nil {
		return nil, badEnvelope(`send {"session_id": "…"}`, "session_id is %.80q", r.SessionID)
	}
	s, ok := c.set.find(r.SessionID)
	if !ok {
		return nil, c.denySession(ctx, r.SessionID)
	}
	if err := c.sessions.stopSession(ctx, s, "its session was stopped by "+cmp.Or(caller, callerName)); err != nil {
		return nil, err
	}
	return map[string]any{"ok": true, "session_id": s.name}, nil
}

// denySession is the answer about a session that this node does not have.
func (c *controller) denySession(ctx context.Context, name string) error {
	c.set.mu.Lock()
	other, heard := c.set.other[name]
	if heard {
		other.stopping = true
		c.set.other[name] = other
	}
	c.set.mu.Unlock()
	if heard && !other.isOffline() {
		return errSilent
	}
	wait := time.NewTimer(unknownAfter)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	return &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("there is no session %.80q", name), Hint: "the request list shows them"}
}
