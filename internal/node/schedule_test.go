package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cluster/shard"
	"github.com/troupe-run/troupe/internal/schedule"
	"github.com/troupe-run/troupe/mailbox"
)

const echo = `
default:
  - {text: "done: {{user}}"}
`

// stays makes a node one that stays when its runs have ended, as troupe-node is.
func stays(c *Config) { c.ResumeAll = true }

// makeSchedule makes a schedule.
func makeSchedule(t *testing.T, c *client.Client, r client.RunRequest) client.RunAccepted {
	t.Helper()
	if r.RunID == "" {
		r.RunID = client.NewID()
	}
	accepted, err := c.Run(testContext(t), r)
	if err != nil {
		t.Fatal(err)
	}
	if accepted.Schedule != r.RunID || accepted.RunID != "" {
		t.Fatalf("the schedule was accepted as %+v", accepted)
	}
	return accepted
}

// awaitSchedule waits until a schedule has fired so often.
func awaitSchedule(t *testing.T, c *client.Client, id string, fired int) client.ScheduleInfo {
	t.Helper()
	var info client.ScheduleInfo
	waitUntil(t, fmt.Sprintf("%s fires %d times", id, fired), func() bool {
		var err error
		if info, err = (client.Schedules{Client: c}).Get(testContext(t), id); err != nil && !client.Lost(err) {
			t.Fatal(err)
		}
		return info.Fired >= fired
	})
	return info
}

// lastRun returns the newest run of a schedule once it is there: a trigger names a run before it opens it.
func lastRun(t *testing.T, c *client.Client, info client.ScheduleInfo) string {
	t.Helper()
	waitUntil(t, "run "+info.LastRun+" is opened", func() bool {
		_, err := c.Get(testContext(t), info.LastRun)
		return err == nil
	})
	return info.LastRun
}

// writeSchedule writes the entry of a schedule that began in the past.
func writeSchedule(t *testing.T, h *Node, id string, r client.RunRequest, rule schedule.Rule) {
	t.Helper()
	request, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := mailbox.Marshal(schedule.Scheduled{Request: request, Rule: rule})
	if err != nil {
		t.Fatal(err)
	}
	data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: "1", Kind: schedule.Scheduled{}.Kind(), Body: body}}})
	if err == nil {
		_, err = mailbox.Put(testContext(t), h.post, schedule.LogOf(id), data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A run that is scheduled begins when it is due, once, with both stores of logs. Its schedule is listed and deleted.
func TestAScheduledRunBeginsOnce(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	for _, store := range []string{statedir.LogsInFiles, statedir.LogsInJetStream} {
		h := startNode(t, t.TempDir(), stays, func(c *Config) { c.LogStore = store })
		c, fired := connectClient(t, h), make(chan *nats.Msg, 10)
		recordEvents(t, h) // which validates them
		if _, err := connectRole(t, h, bus.RoleObserver).ChanSubscribe("troupe.evt._cluster.*."+event.KindScheduleFired, fired); err != nil {
			t.Fatal(err)
		}
		request := client.RunRequest{RunID: "once", Model: writeScript(t, echo), Prompt: "hello", At: "+1s", Conversation: "talk"}
		first := makeSchedule(t, c, request)
		if again := makeSchedule(t, c, request); !again.Existed || again.Next != first.Next {
			t.Errorf("%s: the same request again: %+v, before %+v", store, again, first)
		}
		info := awaitSchedule(t, c, "once", 1)
		result := waitFinished(t, c, info.LastRun, spec.Completed)
		if result.Result.Text != "done: hello" || result.Conversation != "talk" {
			t.Errorf("%s: %+v", store, result.Result)
		}
		if info.Next != "" || info.LastDue == "" || info.Request == nil || info.Request.Prompt != "hello" {
			t.Errorf("%s: %+v", store, info)
		}
		if e := <-fired; !strings.Contains(string(e.Data), `"schedule_id":"once"`) || !strings.Contains(string(e.Data), info.LastRun) {
			t.Errorf("%s: the event is %s", store, e.Data)
		}
		all := client.Schedules{Client: c}
		if list, err := all.List(testContext(t)); err != nil || len(list) != 1 || list[0].ID != "once" {
			t.Errorf("%s: the list is %+v, %v", store, list, err)
		}
		if err := all.Delete(testContext(t), "once"); err != nil {
			t.Fatal(err)
		}
		if _, err := all.Get(testContext(t), "once"); !isCode(err, client.CodeNotFound) {
			t.Errorf("%s: it was deleted: %v", store, err)
		}
		if list, err := c.List(testContext(t)); err != nil || len(list) != 1 {
			t.Errorf("%s: the runs are %+v, %v", store, list, err)
		}
	}
}

func isCode(err error, code string) bool {
	var known *client.Error
	return errors.As(err, &known) && known.Code == code
}

// Due times at which no node was there begin what the schedule says.
func TestMissedTimes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startNode(t, dir)
	model := writeScript(t, echo)
	hours := schedule.Rule{StartMS: time.Now().Add(-150 * time.Minute).UnixMilli(), EveryMS: time.Hour.Milliseconds()}
	for _, missed := range []string{schedule.MissedSkip, schedule.MissedOnce, schedule.MissedAll} {
		rule := hours
		rule.Missed, rule.Overlap = missed, schedule.OverlapParallel
		writeSchedule(t, h, missed, client.RunRequest{Model: model, Prompt: "hello"}, rule)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	c := connectClient(t, startNode(t, dir, stays))
	if once := awaitSchedule(t, c, schedule.MissedOnce, 1); once.Fired != 1 || once.MissedCount != 2 {
		t.Errorf("once: %+v", once)
	}
	if all := awaitSchedule(t, c, schedule.MissedAll, 3); all.Fired != 3 || all.MissedCount != 0 {
		t.Errorf("all: %+v", all)
	}
	waitUntil(t, "the missed times are counted", func() bool {
		skip, err := (client.Schedules{Client: c}).Get(testContext(t), schedule.MissedSkip)
		return err == nil && skip.MissedCount == 3 && skip.Fired == 0 && skip.Next != ""
	})
}

// A node is killed across a due time, and another begins the run that was due.
func TestANodeThatDiesBeforeADueTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startNode(t, dir, stays)
	begun := time.Now()
	makeSchedule(t, connectClient(t, h), client.RunRequest{RunID: "later", Model: writeScript(t, echo), Prompt: "hello", At: "+1s"})
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the run is due", func() bool { return time.Since(begun) > 1100*time.Millisecond })
	c := connectClient(t, startNode(t, dir, stays))
	info := awaitSchedule(t, c, "later", 1)
	waitFinished(t, c, info.LastRun, spec.Completed)
}

// Two nodes on one server look at a schedule at the same moments: each due time begins one run. When the node that
// looks after it dies, the other goes on.
func TestTwoNodesRaceForASchedule(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	agents := t.TempDir()
	one, two := startSharedNode(t, e, "one", shard.TTLMin, agents), startSharedNode(t, e, "two", shard.TTLMin, agents)
	c := connectClient(t, two)
	makeSchedule(t, c, client.RunRequest{RunID: "tick", Model: writeScript(t, echo), Prompt: "hello", Every: "1s", Overlap: schedule.OverlapParallel})
	racing, end := context.WithCancel(testContext(t))
	var all sync.WaitGroup
	for _, h := range []*Node{one, two, one, two} {
		all.Go(func() {
			for racing.Err() == nil {
				if _, more, err := h.control.LookAtSchedule("tick"); err != nil || !more {
					t.Errorf("%s: %t, %v", h.cfg.Name, more, err)
					return
				}
			}
		})
	}
	awaitSchedule(t, c, "tick", 2)
	end()
	all.Wait()
	one.cutNetwork()
	last := awaitSchedule(t, c, "tick", awaitSchedule(t, c, "tick", 2).Fired+2)
	if err := (client.Schedules{Client: c}).Delete(testContext(t), "tick"); err != nil {
		t.Fatal(err)
	}
	list, err := c.List(testContext(t))
	if err != nil || len(list) < last.Fired || len(list) > last.Fired+2 {
		t.Errorf("%d runs of %d due times (%d missed), %v", len(list), last.Fired, last.MissedCount, err)
	}
}

// Messages on the subject of a trigger begin runs, one each, also those that came while no node was there. Their text is
// quoted.
func TestATrigger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startNode(t, dir, stays)
	c := connectClient(t, h)
	makeSchedule(t, c, client.RunRequest{RunID: "deploys", Model: writeScript(t, echo), Prompt: "Check the deployment", On: "deploys"})
	nc := connectRole(t, h, bus.RoleClient)
	send := func(m *nats.Msg) {
		t.Helper()
		if err := nc.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	send(&nats.Msg{Subject: "troupe.trigger.deploys", Data: []byte("shop 1.2\x00\xff")})
	run := waitFinished(t, c, lastRun(t, c, awaitSchedule(t, c, "deploys", 1)), spec.Completed)
	if text := run.Result.Text; !strings.HasPrefix(text, "done: Check the deployment\n") || !strings.Contains(text, ">\nshop 1.2\uFFFD\n</message-") {
		t.Errorf("the prompt was %q", text)
	}
	send(&nats.Msg{Subject: "troupe.trigger.deploys", Data: make([]byte, bus.TriggerBytesMax+1)}) // which the server does not keep
	for range 3 {                                                                                 // of other subjects, and the same message again
		for _, m := range []nats.Msg{{Subject: "troupe.trigger.other"}, {Subject: "troupe.trigger.deploys.sub"}, {Subject: "troupe.trigger.deploys", Header: nats.Header{jetstream.MsgIDHeader: {"7"}}, Data: []byte("shop 1.3")}} {
			send(&m)
		}
	}
	awaitSchedule(t, c, "deploys", 2)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	passive := startNode(t, dir) // a node that does not stay takes none
	nc = connectRole(t, passive, bus.RoleClient)
	send(&nats.Msg{Subject: "troupe.trigger.deploys", Data: []byte("shop 1.4")})
	waitUntil(t, "the message is stored", func() bool { // maybe beside an earlier one, whose node closed before it removed it
		last, err := triggerStream(t, passive).GetLastMsgForSubject(testContext(t), "troupe.trigger.deploys")
		return err == nil && string(last.Data) == "shop 1.4"
	})
	if err := passive.Close(); err != nil {
		t.Fatal(err)
	}
	h = startNode(t, dir, stays)
	c = connectClient(t, h)
	if info := awaitSchedule(t, c, "deploys", 3); info.Fired != 3 {
		t.Errorf("%+v", info)
	}
	if err := (client.Schedules{Client: c}).Delete(testContext(t), "deploys"); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(h.readerConn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Consumer(testContext(t), "TROUPE_TRIGGERS", "deploys"); !errors.Is(err, jetstream.ErrConsumerNotFound) {
		t.Errorf("the trigger is still there: %v", err)
	}
}

// What cannot be scheduled is refused at once.
func TestAttackSchedules(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	h := startNode(t, t.TempDir(), stays, func(c *Config) { c.Roots, c.requestsFromUser = []string{root}, false })
	c := connectClient(t, h)
	for why, r := range map[string]client.RunRequest{
		"prompt":           {At: "+1h", Prompt: " "},
		"unknown":          {At: "+1h", Model: "nobody/nothing"},
		"outside":          {At: "+1h", Dir: outside},
		"in the past":      {At: "2020-01-01T00:00:00Z"},
		"a trigger, or":    {Every: "1h", On: "x"},
		"wildcards":        {On: "*"},
		"no wildcards":     {On: "x.>"},
		"only valid with":  {Missed: "all"},
		"resume is of one": {At: "+1h", Resume: true},
		"fork is of one":   {At: "+1h", Fork: "x"},
		"at most 65536":    {At: "+1h", Prompt: strings.Repeat("x", 300<<10)},
		"the prompt has":   {On: "x", Prompt: strings.Repeat("x", 40<<10)},
		"at most 54 bytes": {At: "+1h", RunID: strings.Repeat("x", 60)},
		"conversation is":  {At: "+1h", Conversation: "A B"},
	} {
		r.Model = cmp.Or(r.Model, "builtin/scout")
		r.RunID, r.Prompt = cmp.Or(r.RunID, client.NewID()), cmp.Or(r.Prompt, "hello")
		var refused *client.Error
		if a, err := c.Run(testContext(t), r); !errors.As(err, &refused) || !strings.Contains(refused.Text+refused.Hint, why) && why != "prompt" && why != "unknown" && why != "outside" {
			t.Errorf("%s: %+v, %v", why, a, err)
		}
	}
	if list, err := (client.Schedules{Client: c}).List(testContext(t)); err != nil || len(list) != 0 {
		t.Errorf("there are %+v, %v", list, err)
	}
	denied := make(chan error, 1)
	observer := connectRole(t, h, bus.RoleObserver, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	if err := observer.Publish("troupe.trigger.x", nil); err != nil {
		t.Fatal(err)
	}
	if err := <-denied; !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("an observer sent a message to a trigger: %v", err)
	}
	leaves := connectClient(t, startNode(t, t.TempDir()))
	if _, err := leaves.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "hello", At: "+1h"}); !isCode(err, client.CodeConflict) {
		t.Errorf("a node that ends with its run keeps a schedule: %v", err)
	}
}

// A schedule is made, shown and deleted over HTTP.
func TestSchedulesOverHTTP(t *testing.T) {
	t.Parallel()
	_, web := startWeb(t, stays)
	var accepted client.RunAccepted
	body := `{"run_id":"nightly","prompt":"hello","model":"` + writeScript(t, echo) + `","every":"0 3 * * *","zone":"Europe/Berlin"}`
	web.post("/api/v1/runs", body, http.StatusCreated, &accepted)
	if accepted.Schedule != "nightly" || accepted.Next == "" {
		t.Errorf("it was accepted as %+v", accepted)
	}
	var list []client.ScheduleInfo
	if web.get("/api/v1/schedules", http.StatusOK, &list); len(list) != 1 || list[0].Every != "0 3 * * *" {
		t.Errorf("the list is %+v", list)
	}
	var info client.ScheduleInfo
	if web.get("/api/v1/schedules/nightly", http.StatusOK, &info); info.Request == nil || info.Request.Prompt != "hello" {
		t.Errorf("it is shown as %+v", info)
	}
	web.expect(web.request("DELETE", "/api/v1/schedules/nightly", ""), http.StatusNoContent, nil)
	web.get("/api/v1/schedules/nightly", http.StatusNotFound, nil)
}
