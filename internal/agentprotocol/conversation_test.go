package agentprotocol

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
)

// While a node cannot say who began the next run of a conversation, its session stays, as the prompts that callers send
// to it would find nobody. Once the node says that a spawned session began it, the export ends.
func TestAConversationStaysWhileItsRunCannotBeRead(t *testing.T) {
	t.Parallel()
	nc := connectServer(t)
	next := client.RunInfo{RunID: "r2", Conversation: "plans", Node: "a"}
	var isKnown atomic.Bool
	answer := func(verb string, reply func(m *nats.Msg) any) {
		_, err := nc.Subscribe("troupe.cmd."+verb, func(m *nats.Msg) {
			doc := reply(m)
			if doc == nil {
				refuseRequest(t, m, client.CodeNotFound)
				return
			}
			data, err := json.Marshal(doc)
			if err == nil {
				err = m.Respond(data)
			}
			if err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	answer("list", func(m *nats.Msg) any {
		var r client.ListRequest
		if err := json.Unmarshal(m.Data, &r); err != nil {
			t.Error(err)
		}
		if r.Before != "" || r.State != client.RunLive {
			return []client.RunInfo{}
		}
		return []client.RunInfo{next}
	})
	answer("get", func(*nats.Msg) any {
		if !isKnown.Load() {
			return nil
		}
		info := next
		info.Description = &client.Description{Caller: sessionCaller}
		return info
	})
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	h := serveHost(t, nc, "a")
	s := &session{exportedAgent: &exportedAgent{name: "plans", task: client.RunRequest{Conversation: "plans"}, working: client.RunInfo{RunID: "r1"}}, created: time.Now()}
	if err := h.controller.sessions.addSession(s, ""); err != nil {
		t.Fatal(err)
	}
	if err := followerOf(h).exportConversations(); err == nil {
		t.Error("nobody is told that the run was not read")
	}
	if _, ok := h.sessions.find("plans"); !ok {
		t.Fatal("the session ended because its run could not be read")
	}
	isKnown.Store(true)
	if err := followerOf(h).exportConversations(); err != nil {
		t.Error(err)
	}
	if _, ok := h.sessions.find("plans"); ok {
		t.Error("a conversation in which a spawned session works is exported")
	}
}

// followerOf is the follower of a host, to call between its ticks.
func followerOf(h *Host) *conversationFollower {
	return &conversationFollower{h, &h.sessions, h.controller.sessions}
}
