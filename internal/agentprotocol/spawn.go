package agentprotocol

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	// lifetimeDefault is the lifetime of a session whose spawn states none.
	lifetimeDefault = 30 * time.Minute
	// lifetimeMax is the longest lifetime that a spawn may state.
	lifetimeMax = 30 * 24 * time.Hour
	// dirBytesMax and modelBytesMax bound fields of a spawn; a list has them of each session.
	dirBytesMax, modelBytesMax = 4096, 256
	// allowedToolsMax and allowedBytesMax bound its allowed_tools: the entries, and the bytes of all.
	allowedToolsMax, allowedBytesMax = 256, 8 << 10
)

// sessionBytesMax is the longest id of a session, which is that of its conversation.
var sessionBytesMax = names.TokenBytesMax - len(mailbox.LaneOf("").Run())

// spawnRequest is the payload of spawn. Unknown fields have no effect.
type spawnRequest struct {
	SessionID      string   `json:"session_id"`
	Agent          string   `json:"agent"`
	Dir            string   `json:"cwd"`
	Model          string   `json:"model"`
	AllowedTools   []string `json:"allowed_tools"`
	PermissionMode string   `json:"permission_mode"`
	MaxTurns       int      `json:"max_turns"`
	LifetimeS      *float64 `json:"max_lifetime_s"`
}

// spawn starts a session.
func (c *controller) spawn(_ context.Context, caller string, data []byte) (any, error) {
	var r spawnRequest
	if err := decodeObject(data, &r); err != nil {
		return nil, err
	}
	if r.SessionID == "" {
		r.SessionID = "sess-" + client.NewID()
	}
	lifetime, err := c.checkSpawn(&r)
	if err != nil {
		return nil, err
	}
	s := &session{created: time.Now(), lifetime: lifetime, exportedAgent: &exportedAgent{name: r.SessionID, spawned: true, task: client.RunRequest{
		Conversation: r.SessionID, Agent: r.Agent, Dir: r.Dir, Model: r.Model, AllowedTools: r.AllowedTools, PermissionMode: r.PermissionMode, MaxTurns: r.MaxTurns}}}
	if err := c.sessions.addSession(s, "A session of the agent "+r.Agent); err != nil {
		return nil, err
	}
	c.host.cfg.Logger.Info("session spawned", "session", s.name, "agent", r.Agent, "by", cmp.Or(caller, callerName))
	return c.shorten(s.describe()), nil
}

// checkSpawn checks a spawn and fills in its agent. A mistake that only a run finds, such as an unknown model, is an
// error of the first prompt.
func (c *controller) checkSpawn(r *spawnRequest) (lifetime time.Duration, err error) {
	if r.Agent == "" && len(c.host.agents) > 0 {
		r.Agent = c.host.agents[0].name
	}
	known := func(name string) bool {
		return slices.ContainsFunc(c.host.agents, func(e *exportedAgent) bool { return e.name == name })
	}
	allowed := 0
	for _, rule := range r.AllowedTools {
		allowed += len(rule)
	}
	lifetime = lifetimeDefault
	if r.LifetimeS != nil {
		lifetime = time.Duration(min(*r.LifetimeS, lifetimeMax.Seconds()+1) * float64(time.Second))
	}
	switch {
	case names.CheckToken(r.SessionID) != nil || len(r.SessionID) > sessionBytesMax:
		return 0, badEnvelope(fmt.Sprintf("use at most %d of a-z, 0-9, - and _, or leave it out", sessionBytesMax), "session_id is %.80q", r.SessionID)
	case !known(r.Agent):
		return 0, &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("the node exports no agent %.80q", r.Agent), Hint: "`nats micro info agents` shows them"}
	case r.PermissionMode != "" && !slices.Contains(spec.PermissionModes, spec.PermissionMode(r.PermissionMode)):
		return 0, badEnvelope(fmt.Sprintf("one of %v", spec.PermissionModes), "permission_mode is %.80q", r.PermissionMode)
	case len(r.Dir) > dirBytesMax:
		return 0, badEnvelope(fmt.Sprintf("at most %d", dirBytesMax), "cwd has %d bytes", len(r.Dir))
	case len(r.Model) > modelBytesMax:
		return 0, badEnvelope(fmt.Sprintf("at most %d", modelBytesMax), "model has %d bytes", len(r.Model))
	case len(r.AllowedTools) > allowedToolsMax || allowed > allowedBytesMax:
		return 0, badEnvelope(fmt.Sprintf("at most %d with %d bytes", allowedToolsMax, allowedBytesMax), "allowed_tools has %d entries with %d bytes", len(r.AllowedTools), allowed)
	case r.MaxTurns < 0:
		return 0, badEnvelope("leave it out for the default", "max_turns is %d", r.MaxTurns)
	case lifetime > lifetimeMax, r.LifetimeS != nil && *r.LifetimeS != 0 && lifetime < time.Second:
		return 0, badEnvelope(fmt.Sprintf("from 1 to %.0f; 0: until it is stopped", lifetimeMax.Seconds()), "max_lifetime_s is %v", *r.LifetimeS)
	case r.Dir != "" && c.host.cfg.CheckDir != nil:
		return lifetime, c.host.cfg.CheckDir(r.Dir)
	}
	return lifetime, nil
}
