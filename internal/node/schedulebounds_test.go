package node

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/schedule"
	"github.com/troupe-run/troupe/mailbox"
)

// triggerStream is the stream of the triggers of a node.
func triggerStream(t *testing.T, h *Node) jetstream.Stream {
	t.Helper()
	js, err := jetstream.New(h.readerConn)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(testContext(t), "TROUPE_TRIGGERS")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAttackATriggerWritesNoLog: a message names the subject of its acknowledgement, and the server would publish there
// without the rights of the client: into a log, a lease, or the index. A stream that was made to acknowledge is changed.
func TestAttackATriggerWritesNoLog(t *testing.T) {
	t.Parallel()
	h := startNode(t, t.TempDir(), stays)
	c := connectClient(t, h)
	js, err := jetstream.New(h.readerConn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(testContext(t), jetstream.StreamConfig{Name: "TROUPE_TRIGGERS", Subjects: []string{"troupe.trigger.>"}, Retention: jetstream.InterestPolicy, MaxMsgSize: bus.TriggerBytesMax}); err != nil {
		t.Fatal(err)
	}
	makeSchedule(t, c, client.RunRequest{RunID: "deploys", Model: writeScript(t, echo), Prompt: "Check the deployment", On: "deploys"})
	node, forged := connectRole(t, h, bus.RoleNode), make(chan *nats.Msg, 100)
	for _, subject := range []string{"*.forged.>", "*.*.forged"} {
		if _, err := node.ChanSubscribe(subject, forged); err != nil {
			t.Fatal(err)
		}
	}
	if err := node.Flush(); err != nil {
		t.Fatal(err)
	}
	nc, again := connectRole(t, h, bus.RoleClient), nats.Header{jetstream.MsgIDHeader: {"7"}}
	for i, reply := range []string{"troupe.forged.0.r.root", "$KV.troupe_shards.forged", "$KV.troupe_runs.forged"} {
		for _, m := range []nats.Msg{
			{Subject: "troupe.trigger.other"}, // of no schedule
			{Subject: "troupe.trigger.deploys", Data: make([]byte, bus.TriggerBytesMax+1)},
			{Subject: "troupe.trigger.deploys", Header: nats.Header{jetstream.ExpectedStreamHeader: {"X"}}},
			{Subject: "troupe.trigger.deploys", Header: again},
			{Subject: "troupe.trigger.deploys", Header: again},
			{Subject: "troupe.trigger.deploys", Data: []byte(fmt.Sprint(i))},
		} {
			m.Reply = reply
			if err := nc.PublishMsg(&m); err != nil {
				t.Fatal(err)
			}
		}
	}
	awaitSchedule(t, c, "deploys", 4)
	if err := node.Flush(); err != nil {
		t.Fatal(err)
	}
	select {
	case m := <-forged:
		t.Errorf("the server published on %s: %s", m.Subject, m.Data)
	default:
	}
}

// putFacts writes facts into the log of a schedule, in one message.
func putFacts(t *testing.T, h *Node, id string, facts ...schedule.Fact) {
	t.Helper()
	e := mailbox.Entry{Form: mailbox.Form}
	for _, f := range facts {
		body, err := mailbox.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		e.Items = append(e.Items, mailbox.Item{ID: "1", Kind: f.Kind(), Body: body})
	}
	data, err := mailbox.Encode(e)
	if err == nil {
		_, err = mailbox.Put(testContext(t), h.post, schedule.LogOf(id), data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The log of a schedule whose run waits for a person, so that each due time begins no run, stays short.
func TestOverlapsAreCondensed(t *testing.T) {
	t.Parallel()
	h := startNode(t, t.TempDir())
	start := time.Now().Add(-time.Hour).UnixMilli()
	rule := schedule.Rule{StartMS: start, EveryMS: 24 * time.Hour.Milliseconds(), Missed: schedule.MissedOnce, Overlap: schedule.OverlapSkip}
	writeSchedule(t, h, "tick", client.RunRequest{Prompt: "hello"}, rule)
	const overlaps = 2 * schedule.EntriesMax
	for at := int64(0); at < overlaps; {
		var facts []schedule.Fact
		for range schedule.EntriesMax / 4 {
			facts = append(facts, schedule.Due{AfterMS: start - 1 + at, DueMS: start + at, Why: schedule.WhyOverlap})
			at++
		}
		putFacts(t, h, "tick", facts...)
	}
	if _, more, err := h.control.LookAtSchedule("tick"); err != nil || !more {
		t.Fatal(more, err)
	}
	entries := 0
	if err := h.post.Read(testContext(t), schedule.LogOf("tick"), 0, 0, func(m mailbox.Message) error {
		e, err := mailbox.Decode(m.Data)
		entries += len(e.Items)
		return err
	}); err != nil || entries >= schedule.EntriesMax {
		t.Errorf("the log has %d entries, %v", entries, err)
	}
	info, err := (client.Schedules{Client: connectClient(t, h)}).Get(testContext(t), "tick")
	if err != nil || info.MissedCount != overlaps || info.Next == "" {
		t.Errorf("%+v, %v", info, err)
	}
}

// Schedules that were deleted leave room for others, and one whose log cannot be read is listed with the reason.
func TestDeletedSchedulesLeaveRoom(t *testing.T) {
	t.Parallel()
	h := startNode(t, t.TempDir(), stays)
	for i := range 1000 {
		putFacts(t, h, fmt.Sprintf("old%d", i), schedule.Ended{})
	}
	newer, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form + 1})
	if err == nil {
		_, err = mailbox.Put(testContext(t), h.post, schedule.LogOf("newer"), newer)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := connectClient(t, h)
	makeSchedule(t, c, client.RunRequest{RunID: "new", Model: writeScript(t, echo), Prompt: "hello", At: "+1h"})
	list, err := (client.Schedules{Client: c}).List(testContext(t))
	if err != nil || len(list) != 2 || list[0].ID != "new" || list[1].ID != "newer" || list[1].Error == "" {
		t.Errorf("%+v, %v", list, err)
	}
}

// The trigger of a schedule that was deleted by a node which ended half-way is closed when the schedule is looked at.
func TestATriggerOfADeletedScheduleIsClosed(t *testing.T) {
	t.Parallel()
	h := startNode(t, t.TempDir(), stays)
	c := connectClient(t, h)
	makeSchedule(t, c, client.RunRequest{RunID: "deploys", Model: writeScript(t, echo), Prompt: "Check the deployment", On: "deploys"})
	stream := triggerStream(t, h)
	putFacts(t, h, "deploys", schedule.Ended{}) // by a node that ended before it closed the trigger
	if _, more, err := h.control.LookAtSchedule("deploys"); err != nil || more {
		t.Errorf("a deleted schedule: more %t, %v", more, err)
	}
	// The scheduler of the node may have read the log before, and then opens the trigger again until it reads the end.
	waitUntil(t, "the trigger of a deleted schedule is closed", func() bool {
		_, err := stream.Consumer(testContext(t), "deploys")
		return errors.Is(err, jetstream.ErrConsumerNotFound)
	})
}

// TestAttackOpenControlMakesNoSchedule: what a connection without a credential starts ends; a schedule would stay, and that
// connection may not delete it.
func TestAttackOpenControlMakesNoSchedule(t *testing.T) {
	t.Parallel()
	h := startNode(t, t.TempDir(), stays, func(c *Config) { c.OpenControl = true })
	model := writeScript(t, echo)
	nc, err := bus.Connect(bus.Options{Servers: h.embedded.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	anyone, user := client.New(nc, names.Names{}), connectClient(t, h)
	for name, r := range map[string]client.RunRequest{"at": {At: "+1h"}, "every": {Every: "1h"}, "on": {On: "deploys"}} {
		r.RunID, r.Model, r.Prompt = name, model, "hello"
		if a, err := anyone.Run(testContext(t), r); !isCode(err, client.CodeForbidden) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
		if err := nc.Publish("troupe.cmd.run", []byte(`{"run_id":"`+name+`","model":"`+model+`","prompt":"hello","at":"+1h"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := anyone.Run(testContext(t), client.RunRequest{RunID: "now", Model: model, Prompt: "hello"}); err != nil {
		t.Error(err)
	}
	if list, err := (client.Schedules{Client: user}).List(testContext(t)); err != nil || len(list) != 0 {
		t.Errorf("there are %+v, %v", list, err)
	}
	makeSchedule(t, user, client.RunRequest{RunID: "mine", Model: model, Prompt: "hello", At: "+1h"})
}
