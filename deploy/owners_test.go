package deploy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/node"
)

// ownerSite is a site with a node and the owners alice and bob.
type ownerSite struct {
	*testSite
	model   string
	clients map[string]*client.Client
	run     string // of alice, which asks a person
	waiting string // the run that ownedVerbs adds to the conversation of run
}

// startOwnerSite starts a run of alice in her conversation "notes", which waits for an answer, and a schedule of hers.
func startOwnerSite(t *testing.T) *ownerSite {
	t.Helper()
	s := &ownerSite{testSite: startSite(t), clients: map[string]*client.Client{}}
	if err := node.SetupServer(t.Context(), node.Config{Bus: s.connectOptions("setup")}, 1); err != nil {
		t.Fatal(err)
	}
	trusted := t.TempDir()
	path := filepath.Join(trusted, "model.yaml")
	if err := os.WriteFile(path, []byte("default: [{calls: [{name: ask_human, args: {question: Which one}}]}, {text: \"{{last}}\"}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.model = "script/" + path
	h, err := node.Start(t.Context(), node.Config{Name: "n1", Trust: []string{trusted}, Bus: s.connectOptions("node"), ServiceBus: bus.Options{NKey: s.seeds["service"]}, Profile: bus.ServerSync,
		System: bus.Options{NKey: s.seeds["system"]}, ResumeAll: true, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, who := range []string{"alice", "bob", "client"} {
		c, err := client.Dial(s.connectOptions(who), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		s.clients[who] = c
	}
	s.run = s.begin("alice", client.RunRequest{Conversation: "notes"})
	if _, err := s.clients["alice"].Run(t.Context(), client.RunRequest{RunID: "nightly", Prompt: "ask", Model: s.model, Every: "0 3 * * *"}); err != nil {
		t.Fatal(err)
	}
	return s
}

// begin begins a run that asks a person, and waits until it does.
func (s *ownerSite) begin(who string, r client.RunRequest) string {
	s.t.Helper()
	r.RunID, r.Prompt, r.Model = client.NewID(), "ask", s.model
	if _, err := s.clients[who].Run(s.t.Context(), r); err != nil {
		s.t.Fatal(err)
	}
	if info, err := s.clients[who].Wait(s.t.Context(), r.RunID); err != nil || info.State != client.RunParked {
		s.t.Fatalf("%+v, %v; want it parked", info, err)
	}
	return r.RunID
}

// ask sends a request with the rights of a user, under the name of an owner; "": as an operator. It returns the code of the
// refusal and its remedy; "denied" if the server does not let the user publish it.
func (s *ownerSite) ask(who, as, verb string, request any) (code, hint string, data []byte) {
	s.t.Helper()
	denied := make(chan error, 1)
	o := s.connectOptions(who)
	o.InboxPrefix = bus.InboxPrefix(bus.RoleClient)
	if who != "client" {
		o.InboxPrefix = bus.OwnerInbox(who)
	}
	o.Extra = []nats.Option{nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err })}
	nc, err := bus.Connect(o)
	if err != nil {
		s.t.Fatal(err)
	}
	defer nc.Close()
	n, err := (names.Names{}).As(as)
	if err != nil {
		s.t.Fatal(err)
	}
	subject, err := n.CommandSubject(verb)
	body, jsonErr := json.Marshal(request)
	if err = errors.Join(err, jsonErr); err != nil {
		s.t.Fatal(err)
	}
	inbox, replies := nc.NewRespInbox(), make(chan *nats.Msg, 1)
	_, err = nc.ChanSubscribe(inbox, replies)
	if err == nil {
		err = nc.PublishRequest(subject, inbox, body)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	select {
	case err := <-denied:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			s.t.Fatal(err)
		}
		return "denied", "", nil
	case m := <-replies:
		return m.Header.Get("Nats-Service-Error-Code"), m.Header.Get(client.HintHeader), m.Data
	case <-ctx.Done():
		s.t.Fatalf("%s %s as %q: no reply", who, verb, as)
		return "", "", nil
	}
}

// ownedVerb is a verb with a request about what alice owns.
type ownedVerb struct {
	verb    string
	request any
	own     string // the code that alice gets: a request may be wrong in another way, but is not refused as a foreigner's
}

// ownedVerbs are all verbs that are about one run, conversation or schedule. The last ones end or remove something.
func (s *ownerSite) ownedVerbs() []ownedVerb {
	run, id := s.run, client.NewID
	s.waiting = id()
	return []ownedVerb{
		{"get", client.GetRequest{RunID: run}, ""},
		{"get", client.GetRequest{RunID: run, Describe: true}, ""},
		{"events", client.EventsRequest{RunID: run}, ""},
		{"transcript", client.TranscriptRequest{RunID: run}, ""},
		{"export", client.ExportRequest{RunID: run}, ""},
		{"logs", client.LogsRequest{RunID: run}, ""},
		{"blob", client.BlobRequest{RunID: run, Blob: "x"}, client.CodeBad},
		{"context", client.ContextRequest{RunID: run}, ""},
		{"backlog", client.BacklogRequest{RunID: run}, ""},
		{"permissions", client.PermissionsRequest{RunID: run}, ""},
		{"attach", client.AttachRequest{RunID: run, Data: []byte("x")}, client.CodeConflict},
		{"recall", client.RecallRequest{RunID: run}, client.CodeBad},
		{"run", client.RunRequest{RunID: run, Resume: true}, ""},
		{"run", client.RunRequest{RunID: id(), Prompt: "p", Model: s.model, Fork: run}, ""},
		{"run", client.RunRequest{RunID: id(), Prompt: "p", Model: s.model, Fork: run + "@root:1"}, client.CodeBad},
		{"run", client.RunRequest{RunID: s.waiting, Prompt: "p", Model: s.model, Conversation: "notes", Owner: "alice"}, ""},
		{"run", client.RunRequest{RunID: "nightly", Prompt: "p", Model: s.model, Every: "0 3 * * *"}, ""},
		{"conversations", client.ConversationsRequest{Conversation: "notes"}, ""},
		{"lane", client.LaneRequest{Conversation: "notes", RunID: run, Action: client.LaneDrop}, client.CodeConflict},
		{"schedules", map[string]string{"schedule_id": "nightly"}, ""},
		{"steer", client.SteerRequest{RunID: run, Request: id(), Text: "t"}, ""},
		{"budget", client.BudgetRequest{RunID: run, Request: id(), Patch: true, Limits: spec.RunLimits{Tokens: 500_000}}, ""},
		{"policy", client.PolicyRequest{RunID: run, Request: id()}, ""},
		{"permissions", client.PermissionsRequest{RunID: run, Request: id(), Deny: []string{"Bash(git push:*)"}}, ""},
		{"answer", client.AnswerRequest{RunID: run, Request: id(), Query: "1-0.1", Decision: spec.TextOnly, Text: "red"}, ""},
		{"cancel", client.CancelRequest{RunID: run, Request: id()}, ""},
		{"delete", client.DeleteRequest{RunID: run, Conversation: "other"}, ""},
		{"delete", client.DeleteRequest{Conversation: "notes"}, ""},
		{"delete", client.DeleteRequest{Schedule: "nightly"}, ""},
	}
}

// settle ends the run of the conversation "notes", if a verb deletes the conversation.
func (s *ownerSite) settle(v ownedVerb) {
	s.t.Helper()
	if r, ok := v.request.(client.DeleteRequest); !ok || r.Conversation != "notes" {
		return
	}
	if _, err := s.clients["client"].Cancel(s.t.Context(), client.CancelRequest{RunID: s.waiting, WaitMS: 30_000}); err != nil && !client.IsRefused(err) {
		s.t.Errorf("cancel: %v", err)
	}
}

// TestAttackOtherOwners: what a client of another owner asks about a run, its conversation or its schedule is refused with
// the remedy, the owner and an operator may do it, and the server refuses a forged name.
//
//behaviour:shows E3
func TestAttackOtherOwners(t *testing.T) {
	s := startOwnerSite(t)
	for _, v := range s.ownedVerbs() {
		if code, hint, _ := s.ask("bob", "bob", v.verb, v.request); code != client.CodeForbidden || !strings.Contains(hint, "its owner can do this, or an operator") {
			t.Errorf("another owner: %s %+v: %q, %q", v.verb, v.request, code, hint)
		}
		for _, forged := range []string{"", "alice"} {
			if code, _, _ := s.ask("bob", forged, v.verb, v.request); code != "denied" {
				t.Errorf("bob as %q: %s: %q; want the server to refuse it", forged, v.verb, code)
			}
		}
		s.settle(v)
		if code, _, data := s.ask("alice", "alice", v.verb, v.request); code != v.own {
			t.Errorf("the owner: %s %+v: %q %s; want %q", v.verb, v.request, code, data, v.own)
		}
	}
}

// Verbs about the runs of all owners are refused to owners.
func TestAttackVerbsOfOperators(t *testing.T) {
	s := startOwnerSite(t)
	for verb, request := range map[string]any{"prune": client.PruneRequest{DryRun: true}, "drain": client.DrainRequest{Node: "n1", Undo: true}, "restore": client.RestoreRequest{RunID: client.NewID()}} {
		if code, hint, _ := s.ask("alice", "alice", verb, request); code != client.CodeForbidden || !strings.Contains(hint, "troupe.cmd.>") {
			t.Errorf("%s: %q, %q", verb, code, hint)
		}
		if code, _, _ := s.ask("client", "", verb, request); code == client.CodeForbidden {
			t.Errorf("%s: %q for an operator", verb, code)
		}
	}
	request := client.RunRequest{RunID: "pushes", Prompt: "p", Model: s.model, On: "bob.push"}
	if code, hint, _ := s.ask("alice", "alice", "run", request); code != client.CodeForbidden || !strings.Contains(hint, "alice") {
		t.Errorf("the trigger of another owner: %q, %q", code, hint)
	}
}

// An operator may do with every run what its owner may.
func TestOperatorsMayDoWhatOwnersMay(t *testing.T) {
	s := startOwnerSite(t)
	for _, v := range s.ownedVerbs() {
		s.settle(v)
		if code, _, data := s.ask("client", "", v.verb, v.request); code != v.own {
			t.Errorf("%s %+v: %q %s; want %q", v.verb, v.request, code, data, v.own)
		}
	}
}

// Lists have what belongs to the owner only, and an operator sees all. The run of an operator belongs to no owner; one in the
// conversation of an owner belongs to that owner.
func TestListsOfOwners(t *testing.T) {
	s := startOwnerSite(t)
	bobs, operators := s.begin("bob", client.RunRequest{Conversation: "other"}), s.begin("client", client.RunRequest{})
	joined := client.NewID()
	if _, err := s.clients["client"].Run(t.Context(), client.RunRequest{RunID: joined, Prompt: "p", Model: s.model, Conversation: "notes", Owner: "alice"}); err != nil {
		t.Fatal(err)
	}
	for who, want := range map[string]struct{ runs, conversations, questions []string }{
		"alice":  {[]string{s.run, joined}, []string{"notes"}, []string{s.run}},
		"bob":    {[]string{bobs}, []string{"other"}, []string{bobs}},
		"client": {[]string{s.run, bobs, operators, joined}, []string{"notes", "other"}, []string{s.run, bobs, operators}},
	} {
		c := s.clients[who]
		runs, err := c.List(t.Context())
		asked, questionErr := c.Questions(t.Context())
		talks, talkErr := c.Conversations().List(t.Context(), client.ConversationsRequest{})
		schedules, scheduleErr := client.Schedules{Client: c}.List(t.Context())
		if err := errors.Join(err, questionErr, talkErr, scheduleErr); err != nil {
			t.Fatal(err)
		}
		checkSet(t, who+" sees the runs", want.runs, runs, func(i client.RunInfo) string { return i.RunID })
		checkSet(t, who+" sees the questions of", want.questions, asked, func(q client.Question) string { return q.RunID })
		checkSet(t, who+" sees the conversations", want.conversations, talks, func(i client.ConversationInfo) string { return i.Conversation })
		if has := len(schedules) > 0; has != (who != "bob") {
			t.Errorf("%s sees the schedules %+v", who, schedules)
		}
	}
	for run, want := range map[string]string{s.run: "alice", bobs: "bob", operators: "", joined: "alice"} {
		if info, err := s.clients["client"].Get(t.Context(), run); err != nil || info.Owner != want {
			t.Errorf("the owner of %s is %q, %v; want %q", run, info.Owner, err, want)
		}
	}
}

func checkSet[T any](t *testing.T, what string, want []string, list []T, name func(T) string) {
	t.Helper()
	var got []string
	for _, x := range list {
		got = append(got, name(x))
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("%s %v, want %v", what, got, want)
	}
}

// A fork that an operator makes belongs to the owner of its original, whether it begins with all logs or with a history.
func TestForksBelongToTheOwnerOfTheOriginal(t *testing.T) {
	s := startOwnerSite(t)
	for _, from := range []string{s.run, s.run + "@0", s.run + "@root:0"} {
		fork := client.NewID()
		if _, err := s.clients["client"].Run(t.Context(), client.RunRequest{RunID: fork, Fork: from, Prompt: "go on"}); err != nil {
			t.Errorf("%s: %v", from, err)
			continue
		}
		if info, err := s.clients["client"].Get(t.Context(), fork); err != nil || info.Owner != "alice" {
			t.Errorf("the fork of %s belongs to %q, %v", from, info.Owner, err)
		}
		if code, _, _ := s.ask("alice", "alice", "events", client.EventsRequest{RunID: fork}); code != "" {
			t.Errorf("the owner reads the fork of %s: %q", from, code)
		}
		if code, _, _ := s.ask("bob", "bob", "get", client.GetRequest{RunID: fork}); code != client.CodeForbidden {
			t.Errorf("another owner reads the fork of %s: %q", from, code)
		}
	}
}

// What an operator sends into the conversation of an owner would belong to that owner, so the request must name the owner;
// a message and a schedule alike.
func TestOperatorsNameTheOwnerOfAConversation(t *testing.T) {
	s := startOwnerSite(t)
	s.begin("client", client.RunRequest{Conversation: "plans"})
	r := client.RunRequest{RunID: client.NewID(), Prompt: "of the operator", Model: s.model, Conversation: "notes"}
	timed, own := r, r
	timed.Every, own.Conversation, own.Owner = "0 3 * * *", "plans", "alice"
	for _, r := range []client.RunRequest{r, timed, own} {
		code, hint, data := s.ask("client", "", "run", r)
		if code != client.CodeConflict || r.Owner == "" && (!strings.Contains(hint, "--owner alice") || !strings.Contains(string(data), "belongs to alice")) {
			t.Errorf("%+v: %q, %q: %s", r, code, hint, data)
		}
	}
	for owner, want := range map[string]string{"bob": client.CodeConflict, "No One": client.CodeBad} {
		r.Owner = owner
		if code, _, data := s.ask("client", "", "run", r); code != want {
			t.Errorf("the owner %q: %q %s, want %q", owner, code, data, want)
		}
	}
	if code, _, _ := s.ask("client", "", "get", client.GetRequest{RunID: r.RunID}); code != client.CodeNotFound {
		t.Errorf("a refused request left a run: %q", code)
	}
	r.Owner = "alice"
	if code, _, data := s.ask("bob", "bob", "run", r); code != client.CodeForbidden {
		t.Errorf("an owner names another: %q %s", code, data)
	}
	if code, _, data := s.ask("client", "", "run", r); code != "" {
		t.Errorf("an operator names the owner: %q %s", code, data)
	}
	if info, err := s.clients["alice"].Get(t.Context(), r.RunID); err != nil || info.Owner != "alice" {
		t.Errorf("%+v, %v", info, err)
	}
}

// The rights of a run are narrowed under the verified name of its owner, whatever the request says.
func TestOwnersNarrowTheirRuns(t *testing.T) {
	s := startOwnerSite(t)
	request := client.PermissionsRequest{RunID: s.run, Request: client.NewID(), Deny: []string{"Bash(git push:*)"}, By: "ann"}
	if code, _, data := s.ask("alice", "alice", "permissions", request); code != "" {
		t.Fatalf("%q %s", code, data)
	}
	var by string
	err := s.clients["alice"].Events(t.Context(), s.run, nil, true, func(e client.Event, raw []byte) error {
		if by = string(raw); strings.Contains(by, "git push") {
			return client.ErrStop
		}
		return nil
	})
	if err != nil || !strings.Contains(by, `"by":"alice"`) {
		t.Errorf("the event is %s, %v", by, err)
	}
	if _, _, data := s.ask("alice", "alice", "permissions", client.PermissionsRequest{RunID: s.run}); !strings.Contains(string(data), `"by":"alice"`) {
		t.Errorf("the permissions are %s", data)
	}
}

// An owner who has used up the changes of the rights of a run leaves those of operators.
func TestAttackOwnerUsesUpNarrowings(t *testing.T) {
	s := startOwnerSite(t)
	narrow := func(who, as string, i int) (code string, data []byte) {
		code, _, data = s.ask(who, as, "permissions", client.PermissionsRequest{RunID: s.run, Request: client.NewID(), Deny: []string{fmt.Sprintf("Bash(x%d:*)", i)}, By: "alice"})
		return code, data
	}
	for i := range 64 {
		if code, data := narrow("alice", "alice", i); code != "" {
			t.Fatalf("change %d: %q %s", i, code, data)
		}
	}
	if code, data := narrow("alice", "alice", 64); code != client.CodeBad || !strings.Contains(string(data), "at most 64 times") {
		t.Errorf("one more: %q %s", code, data)
	}
	if code, data := narrow("client", "", 65); code != "" {
		t.Errorf("an operator: %q %s", code, data)
	}
}

// An owner who has used up the room for rules leaves a part of it to operators.
func TestAttackOwnerUsesUpRoomForRules(t *testing.T) {
	s := startOwnerSite(t)
	code, n := "", 0
	var data []byte
	rules := func() (list []string) {
		for i := range 50 {
			list = append(list, fmt.Sprintf("Bash(%s%d-%d:*)", strings.Repeat("x", 120), n, i))
		}
		return list
	}
	for ; code == "" && n < 20; n++ {
		code, _, data = s.ask("alice", "alice", "permissions", client.PermissionsRequest{RunID: s.run, Request: client.NewID(), Deny: rules()})
	}
	if code != client.CodeBad || !strings.Contains(string(data), "bytes of permission rules") {
		t.Fatalf("after %d changes: %q %s", n, code, data)
	}
	if code, _, data := s.ask("client", "", "permissions", client.PermissionsRequest{RunID: s.run, Request: client.NewID(), Deny: rules()}); code != "" {
		t.Errorf("an operator: %q %s", code, data)
	}
}

// The run of a schedule belongs to the owner of the schedule, and the name under which an owner answers is verified.
func TestOwnersAreCarried(t *testing.T) {
	s := startOwnerSite(t)
	alice := s.clients["alice"]
	if _, err := alice.Run(t.Context(), client.RunRequest{RunID: "pushes", Prompt: "p", Model: s.model, On: "alice.push"}); err != nil {
		t.Fatal(err)
	}
	fired := s.subscribeFired("alice")
	if err := fired.conn.Publish("troupe.trigger.alice.push", []byte("v1")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := s.nextFired(fired)
	if info, err := alice.Wait(ctx, run); err != nil || info.Owner != "alice" {
		t.Errorf("the run of the schedule: %+v, %v", info, err)
	}
	if code, _, _ := s.ask("bob", "bob", "get", client.GetRequest{RunID: run}); code != client.CodeForbidden {
		t.Errorf("another owner reads the run of the schedule: %q", code)
	}
	if err := alice.Answer(ctx, client.AnswerRequest{RunID: s.run, Query: "1-0.1", Decision: spec.TextOnly, Text: "red", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	by := ""
	err := alice.Events(ctx, s.run, nil, true, func(e client.Event, raw []byte) error {
		if e.Kind != event.KindQueryAnswered {
			return nil
		}
		by = string(raw)
		return client.ErrStop
	})
	if err != nil || !strings.Contains(by, `"by":"alice"`) {
		t.Errorf("the answer is by %s, %v", by, err)
	}
}
