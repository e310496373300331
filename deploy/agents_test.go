package deploy_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/node"
)

// Under the roles of this folder a client finds the agents of a node, prompts one, answers its question and sees its
// heartbeat.
func TestAgentsOnBusUnderTheRoles(t *testing.T) {
	s := startSite(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := node.SetupServer(ctx, node.Config{Bus: s.connectOptions("setup")}, 1); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.yaml")
	if err := os.WriteFile(path, []byte("default:\n- calls: [{name: ask_human, args: {question: \"Which one?\"}}]\n- text: \"bought: {{last}}\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := node.Start(ctx, node.Config{Name: "n1", Model: "script/" + path, Bus: s.connectOptions("node"), ServiceBus: bus.Options{NKey: s.seeds["service"]}, ResumeAll: true,
		AgentsOnBus: &node.AgentsOnBus{Owner: "ops"}, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	o := s.connectOptions("client")
	o.InboxPrefix = bus.InboxPrefix(bus.RoleClient)
	nc, err := bus.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	found, err := nc.RequestWithContext(ctx, "$SRV.INFO.agents", nil)
	if err != nil || !strings.Contains(string(found.Data), `"protocol_version":"0.3"`) {
		t.Fatalf("%+v %v", found, err)
	}
	sub, err := nc.SubscribeSync(nc.NewInbox())
	if err == nil {
		err = nc.PublishRequest("agents.prompt.troupe.ops.assistant", sub.Subject, []byte("Buy one"))
	}
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			t.Fatal(err, text)
		}
		if len(m.Data) == 0 {
			break
		}
		text += string(m.Data)
		if _, rest, ok := strings.Cut(string(m.Data), `"reply_subject":"`); ok {
			subject, _, _ := strings.Cut(rest, `"`)
			if err := nc.Publish(subject, []byte("the red one")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !strings.Contains(text, "bought: ") || !strings.Contains(text, "the red one") {
		t.Errorf("the stream is %s", text)
	}
	if m, err := nc.RequestWithContext(ctx, "agents.status.troupe.ops.assistant", nil); err != nil || !strings.Contains(string(m.Data), `"interval_s":30`) {
		t.Errorf("%+v %v", m, err)
	}
}
