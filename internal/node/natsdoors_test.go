package node

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
)

// natsDoor is a way to ask a node over NATS.
type natsDoor struct {
	name, subject string
	// malformed is a message that is refused with 400, and what the error says.
	malformed, says string
	// foreign is a request about the run of alice, by bob; "": only operators may publish at the subject.
	foreign string
}

func natsDoors(run string) []natsDoor {
	about := `{"run_id":"` + run + `"`
	return []natsDoor{
		{"a verb of operators", "troupe.cmd.cancel", `{"run_id":`, "does not decode", ""},
		{"cancel", "troupe.cmd.as.bob.cancel", `{"run_id":`, "does not decode", about + `}`},
		{"get", "troupe.cmd.as.bob.get", `[]`, "does not decode", about + `}`},
		{"steer", "troupe.cmd.as.bob.steer", `{"text":`, "does not decode", about + `,"text":"stop"}`},
		{"answer", "troupe.cmd.as.bob.answer", `{"query":`, "does not decode", about + `,"query":"1-0.1","decision":"text","text":"x"}`},
		{"run", "troupe.cmd.as.bob.run", `{"prompt":`, "does not decode", about + `,"prompt":"x"}`},
		{"a prompt", promptSubject, `{"prompt":`, "not JSON", ""},
		{"the controller", "agents.spawn.troupe.ops.control", `{"agent":`, "JSON", ""},
	}
}

// TestAttackEveryNATSDoor: each way to ask a node over NATS refuses a missing or wrong credential, one without the right, what is
// too large or malformed, and the run of another owner, with a clear error, and nothing changes. NATS has no Host and no
// Origin.
func TestAttackEveryNATSDoor(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, w, alice, _, run := startOwnersNode(t, func(c *Config) { c.AgentsOnBus = &AgentsOnBus{Owner: "ops"} })
	user, password := h.embedded.Credential(bus.RoleClient)
	for name, as := range map[string]nats.Option{"none": nats.Name("x"), "a wrong password": nats.UserInfo(user, "x"+password), "another user": nats.UserInfo("x", password),
		"the token of HTTP": nats.Token(w.token)} {
		if nc, err := nats.Connect(h.URL(), as, nats.NoReconnect()); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				nc.Close()
			}
		}
	}
	d := &denialLog{refused: map[string]bool{}, done: make(chan string, 64)}
	observer, nc := connectRole(t, h, bus.RoleObserver, nats.ErrorHandler(d.recordDenial)), connectRole(t, h, bus.RoleClient)
	var before, after struct{ State, Owner string }
	alice.get("/api/v1/runs/"+run, 200, &before)
	for _, door := range natsDoors(run) {
		ask := func(body, code, says string) {
			reply, err := nc.RequestWithContext(testContext(t), door.subject, []byte(body))
			if err != nil {
				t.Errorf("%s %.80q: %v", door.name, body, err)
				return
			}
			all := reply.Header.Get("Nats-Service-Error") + string(reply.Data)
			if got := reply.Header.Get("Nats-Service-Error-Code"); got != code || !strings.Contains(all, says) {
				t.Errorf("%s %.80q: %s %s; want %s with %q", door.name, body, got, all, code, says)
			}
		}
		ask(door.malformed, "400", door.says)
		ask("\xff\xfe", "400", "")
		if _, err := nc.RequestWithContext(testContext(t), door.subject, make([]byte, nc.MaxPayload()+1)); !errors.Is(err, nats.ErrMaxPayload) {
			t.Errorf("%s: more than a message may have: %v", door.name, err)
		}
		if door.foreign != "" {
			ask(door.foreign, "403", "does not belong to bob")
		}
		if err := observer.PublishRequest(door.subject, observer.NewInbox(), []byte(door.malformed)); err != nil {
			t.Error(err)
		}
		waitUntil(t, door.name+" refuses an observer", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.refused[strings.ToLower(door.subject)] })
	}
	if alice.get("/api/v1/runs/"+run, 200, &after); after != before || after.State != "parked" || after.Owner != "alice" {
		t.Errorf("the run was %+v, and is %+v", before, after)
	}
}
