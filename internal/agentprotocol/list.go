package agentprotocol

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/bus/names"
)

// sessionInfo is a session in the answers to spawn and list. Of a session of another node, a list has what heartbeats
// say.
type sessionInfo struct {
	SessionID        string   `json:"session_id"`
	Subject          string   `json:"subject"`
	HeartbeatSubject string   `json:"heartbeat_subject"`
	StatusSubject    string   `json:"status_subject"`
	InstanceID       string   `json:"instance_id"`
	Node             string   `json:"node"`
	Agent            string   `json:"agent,omitempty"`
	Dir              string   `json:"cwd,omitempty"`
	Model            string   `json:"model,omitempty"`
	AllowedTools     []string `json:"allowed_tools,omitempty"`
	PermissionMode   string   `json:"permission_mode,omitempty"`
	MaxTurns         int      `json:"max_turns,omitempty"`
	LifetimeS        float64  `json:"max_lifetime_s,omitempty"`
	RemainingS       float64  `json:"remaining_lifetime_s,omitempty"`
	Created          string   `json:"created_at,omitempty"`
	Active           bool     `json:"active_request"`
	Queued           int      `json:"queued_requests"`
	RunID            string   `json:"run_id,omitempty"`
}

// describe describes a session of this node.
func (s *session) describe() sessionInfo {
	b, t := s.beat(), s.task
	i := sessionInfo{SessionID: s.name, Subject: s.promptSubject, HeartbeatSubject: s.heartbeatSubject, StatusSubject: s.statusSubject, InstanceID: b.InstanceID, Node: b.Node,
		Agent: t.Agent, Dir: t.Dir, Model: t.Model, AllowedTools: t.AllowedTools, PermissionMode: t.PermissionMode, MaxTurns: t.MaxTurns,
		Created: s.created.UTC().Format(time.RFC3339), Active: b.State != stateIdle, Queued: max(0, b.Prompts-1), RunID: b.RunID}
	if s.lifetime > 0 {
		i.LifetimeS, i.RemainingS = s.lifetime.Seconds(), max(0, time.Until(s.created.Add(s.lifetime)).Truncate(time.Second).Seconds())
	}
	return i
}

// sessionPage answers a list: sessions in the order of their ids.
type sessionPage struct {
	Sessions []sessionInfo `json:"sessions"`
	// Total is how many there are, and Next the last one here, if the reply has no room for all.
	Total int    `json:"total,omitempty"`
	Next  string `json:"next,omitempty"`
}

// pageFieldsMax is the room for what a page has besides its sessions.
const pageFieldsMax = 512

// listSessions lists the sessions of all nodes with this owner, after one: as many as a reply has room for.
func (c *controller) listSessions(_ context.Context, _ string, data []byte) (any, error) {
	var r struct {
		After string `json:"after"`
	}
	if err := decodeObject(data, &r); err != nil {
		return nil, err
	}
	list, err := c.allSessions()
	if err != nil {
		return nil, err
	}
	page, size := sessionPage{Sessions: []sessionInfo{}}, pageFieldsMax
	for _, i := range list {
		if i.SessionID <= r.After {
			continue
		}
		i = c.shorten(i)
		if size += c.sizeOf(i); size > c.host.payloadMax {
			page.Total, page.Next = len(list), cmp.Or(lastID(page.Sessions), r.After)
			return page, nil
		}
		page.Sessions = append(page.Sessions, i)
	}
	return page, nil
}

// sizeOf is how many bytes a session takes in a list.
func (c *controller) sizeOf(i sessionInfo) int { return len(c.host.cfg.Redact(encode(i))) + len(",") }

// shorten leaves out what a reply has no room for.
func (c *controller) shorten(i sessionInfo) sessionInfo {
	if c.sizeOf(i) > c.host.payloadMax-pageFieldsMax {
		i.Dir, i.Model, i.AllowedTools = "", "", nil
	}
	return i
}

func lastID(list []sessionInfo) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1].SessionID
}

// allSessions are the sessions of all nodes with this owner, by id.
func (c *controller) allSessions() (list []sessionInfo, err error) {
	for _, s := range c.set.list() {
		list = append(list, s.describe())
	}
	for _, b := range c.set.others() {
		i := sessionInfo{SessionID: b.Session, InstanceID: b.InstanceID, Node: b.Node, Active: b.State != stateIdle, Queued: max(0, b.Prompts-1), RunID: b.RunID}
		for verb, subject := range map[string]*string{names.AgentPrompt: &i.Subject, names.AgentStatus: &i.StatusSubject, names.AgentHeartbeat: &i.HeartbeatSubject} {
			if *subject, err = c.host.cfg.Names.AgentSubject(verb, c.host.cfg.Owner, b.Session); err != nil {
				return nil, err
			}
		}
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b sessionInfo) int { return strings.Compare(a.SessionID, b.SessionID) })
	return list, nil
}
