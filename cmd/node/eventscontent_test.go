package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
)

// startSharedServer starts a server that nodes share.
func startSharedServer(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server is not ready")
	}
	return s.ClientURL()
}

// What is said in the run of the tests about the content of events.
const (
	saidByUser  = "buy the red one"
	saidByModel = "the price was eleven"
)

// What observers of a shared server read of a run has no text of people, models and tools, unless a flag or a setting of the node says so.
// Clients that follow the run read all texts, once, in every case.
//
//behaviour:shows I1
func TestObserversOfASharedServerReadNoTexts(t *testing.T) {
	for name, how := range map[string]struct {
		flags, env []string
		texts      bool
	}{
		"default": {},
		"flag":    {flags: []string{"--events-content", "full"}, texts: true},
		"setting": {env: []string{"TROUPE_EVENTS_CONTENT=full"}, texts: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, url := t.TempDir(), startSharedServer(t)
			script := filepath.Join(dir, "model.yaml")
			if err := os.WriteFile(script, []byte("agents: {assistant: [{text: "+saidByModel+"}]}"), 0o600); err != nil {
				t.Fatal(err)
			}
			observer, err := nats.Connect(url)
			if err != nil {
				t.Fatal(err)
			}
			defer observer.Close()
			sub, err := observer.SubscribeSync("troupe.evt.>")
			if err != nil {
				t.Fatal(err)
			}
			cmd := command(t, append([]string{"-s", url, "--trust", dir, "--durability", "lazy", "--drain-timeout", "200ms"}, how.flags...)...)
			cmd.Env = append(cmd.Env, how.env...)
			startNode(t, cmd)
			c, err := client.Dial(bus.Options{Servers: url}, "")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			texts := followRun(t, c, client.RunRequest{RunID: client.NewID(), Prompt: saidByUser, Model: "script/" + script})
			if !texts[event.KindRunStarted] || !texts[event.KindMessageAssistant] || !texts[event.KindMessageDelta] { // the last one is in no log
				t.Errorf("a client reads texts in %v", texts)
			}
			checkObserved(t, sub, how.texts)
		})
	}
}

// followRun starts a run and follows it to its end. It returns the kinds of events with a text.
func followRun(t *testing.T, c *client.Client, r client.RunRequest) map[string]bool {
	t.Helper()
	pieces := make(chan string, 1)
	stop, err := c.WatchRun(r.RunID, func(e client.Event) {
		if e.Kind == event.KindMessageDelta {
			pieces <- string(e.Data)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := c.Run(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	texts, seen := map[string]bool{}, map[string]bool{}
	err = c.Events(t.Context(), r.RunID, nil, true, func(e client.Event, raw []byte) error {
		if seen[e.ID] {
			t.Errorf("twice: %s", raw)
		}
		seen[e.ID] = true
		if strings.Contains(string(raw), saidByUser) || strings.Contains(string(raw), saidByModel) {
			texts[e.Kind] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	texts[event.KindMessageDelta] = strings.Contains(<-pieces, saidByModel)
	return texts
}

// checkObserved reads what an observer has received until the end of the run.
func checkObserved(t *testing.T, sub *nats.Subscription, texts bool) {
	t.Helper()
	read := 0
	for kind := ""; kind != event.KindRunFinished; {
		m, err := sub.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		var e client.Event
		if err := json.Unmarshal(m.Data, &e); err != nil {
			t.Fatal(err)
		}
		kind = e.Kind
		if strings.Contains(string(m.Data), saidByUser) || strings.Contains(string(m.Data), saidByModel) {
			read++
		}
		if want := map[bool]string{true: "", false: event.WithoutTexts}[texts]; e.Content != want {
			t.Errorf("content is %q, want %q: %s", e.Content, want, m.Data)
		}
	}
	if (read > 0) != texts {
		t.Errorf("an observer reads texts in %d events", read)
	}
}
