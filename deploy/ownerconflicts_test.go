package deploy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
)

// Two owners who begin a conversation at the same moment: one of them has it, and no run of the other one is left waiting.
func TestOwnersBeginOneConversationAtOnce(t *testing.T) {
	s := startOwnerSite(t)
	echo := s.writeEcho()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range 8 {
		runs, errs := map[string]string{"alice": client.NewID(), "bob": client.NewID()}, sync.Map{}
		var both sync.WaitGroup
		for who, run := range runs {
			both.Go(func() {
				_, err := s.clients[who].Run(ctx, client.RunRequest{RunID: run, Prompt: "p", Model: echo, Conversation: fmt.Sprint("at-once-", i)})
				errs.Store(who, err)
			})
		}
		both.Wait()
		refused := 0
		for who, run := range runs {
			err, _ := errs.Load(who)
			if err != nil {
				refused++
			}
			info, waitErr := s.clients["client"].Wait(ctx, run)
			var refusal *client.Error
			switch {
			case err != nil && errors.As(waitErr, &refusal) && refusal.Code == client.CodeNotFound:
			case waitErr != nil:
				t.Fatalf("the run of %s (%v): %+v, %v", who, err, info, waitErr)
			case err != nil && (info.State != client.RunFinished || info.Result.Reason != spec.ByCancel):
				t.Errorf("the refused run of %s (%v): %+v", who, err, info)
			case err == nil && info.Result.Reason != spec.Completed:
				t.Errorf("the run of %s: %+v", who, info)
			}
		}
		if refused != 1 {
			t.Errorf("%d of two owners were refused", refused)
		}
	}
}

// A refusal names the conversation that was asked for, and not the one that it means.
func TestAttackNameOfAForeignConversation(t *testing.T) {
	s := startOwnerSite(t)
	code, hint, data := s.ask("bob", "bob", "run", client.RunRequest{RunID: client.NewID(), Prompt: "p", Model: s.model, Conversation: s.run})
	if code != client.CodeForbidden || strings.Contains(string(data)+hint, "notes") || !strings.Contains(string(data), s.run) {
		t.Errorf("%q, %q: %s", code, hint, data)
	}
}

// A request whose reply would go to the inbox of another owner gets none: nobody can write there by it.
func TestAttackReplyToAnotherOwner(t *testing.T) {
	s := startOwnerSite(t)
	connect := func(who string) *nats.Conn {
		o := s.connectOptions(who)
		o.InboxPrefix = bus.OwnerInbox(who)
		nc, err := bus.Connect(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	alice, bob := connect("alice"), connect("bob")
	inbox, err := alice.SubscribeSync("_INBOX_client_alice.>")
	if err == nil {
		err = alice.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(client.ListRequest{})
	if err == nil {
		err = bob.PublishRequest("troupe.cmd.as.bob.list", "_INBOX_client_alice.victim", body)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // later requests of the same verb are answered, so the first one is over
		if _, err := bob.Request("troupe.cmd.as.bob.list", body, patience); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := alice.Request("troupe.cmd.as.alice.list", body, patience); err != nil {
		t.Fatal(err)
	}
	for m, err := inbox.NextMsg(0); err == nil; m, err = inbox.NextMsg(0) {
		if m.Subject == "_INBOX_client_alice.victim" {
			t.Errorf("%v %s", m.Header, m.Data)
		}
	}
}
