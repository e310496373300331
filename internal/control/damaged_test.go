package control

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/test/testlog"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
)

// unreadableStore is a store whose runs cannot be read. The first attempt ends the request.
type unreadableStore struct {
	mailbox.Store
	end context.CancelFunc
}

var errUnreadable = errors.New("the store hiccups")

func (u unreadableStore) ReadRun(context.Context, string, func(mailbox.Message) error) error {
	u.end()
	return errUnreadable
}

// workingRun is a run whose root has its task, and a Control over its log.
func workingRun(t *testing.T) *parts {
	t.Helper()
	post := memory.New(memory.Config{})
	node, err := actors.Start(t.Context(), actors.Config{Post: post, Model: noModel, Holds: holdsNothing})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Stop)
	testlog.PutFact(t, post, mailbox.At("r", "root"), mailbox.At("r", mailbox.Super), agent.Submitted{Task: spec.Task{Goal: "work"}}, false)
	return newParts(&Config{Post: post, Node: node})
}

// The logs are not read again after the cancel was appended: the time at which the agents
// were canceled is unknown, so they get all of stopGrace.
func TestAttackDeleteBehindASlowStoreLeavesAgentsTheirGrace(t *testing.T) {
	c := workingRun(t)
	ends, err := readLogStatuses(t.Context(), c.cfg.Post, "r")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	c.cfg.Post = unreadableStore{c.cfg.Post, end}
	_, err = c.canceler.stopAgents(ctx, "r", ends)
	if !refuse.HasCode(err, client.CodeUnavailable) || !strings.Contains(err.Error(), "root on no node") {
		t.Errorf("the logs of an agent at work may be removed: %v", err)
	}
}

// The grace begins with the first cancel with now, and not before there is one.
func TestTheGraceOfAnAgentBeginsWithACancelNow(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	for _, e := range []struct {
		logStatus
		over bool
	}{
		{logStatus{}, false},
		{logStatus{canceledAt: long}, false},
		{logStatus{canceledAt: time.Now(), canceledNow: true}, false},
		{logStatus{canceledAt: long, canceledNow: true}, true},
	} {
		if got := e.isGraceOver(time.Now()); got != e.over {
			t.Errorf("canceled %v, now %t: the grace is over: %t", e.canceledAt, e.canceledNow, got)
		}
	}
}

// A client used the name of the cancel that a delete appends for another request, or sent
// as many requests as an agent takes. The delete ends nevertheless.
func TestAttackRequestsOfAClientDoNotStopADelete(t *testing.T) {
	c := workingRun(t)
	root := mailbox.At("r", "root")
	steer := agent.Steered{Text: "go on"}
	if err := c.cfg.Node.Command(t.Context(), root, "delete", steer.Kind(), steer); err != nil {
		t.Fatal(err)
	}
	look := func() *logStatus {
		ends, err := readLogStatuses(t.Context(), c.cfg.Post, "r")
		if err != nil {
			t.Fatal(err)
		}
		return ends[root]
	}
	if err := c.canceler.cancelLogs(t.Context(), deleteRequest, agent.Canceled{Now: true}, map[mailbox.Address]*logStatus{root: look()}); err != nil {
		t.Fatal(err)
	}
	if e := look(); e.cancelFact() == nil {
		t.Error("the agent does not read the cancel")
	}
	// An agent that takes no more requests does not read the cancel, and its grace passes.
	f := agent.Canceled{Now: true}
	body, err := mailbox.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{Kind: f.Kind(), Body: body}}}) // dropped: it has no id
	if err != nil {
		t.Fatal(err)
	}
	e := newLogStatus(root)
	e.readEntry(mailbox.Message{To: root, Place: 1, At: time.Now().Add(-time.Hour).UnixMilli(), Data: data})
	if e.cancelFact() != nil || !e.isGraceOver(time.Now()) {
		t.Errorf("a cancel that is not read: %+v", e)
	}
}
