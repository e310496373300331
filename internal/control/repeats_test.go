package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// An actor takes the first command of a request id and drops the others. So the same request is accepted again, and any
// other under its id is refused: its client would wait for an effect that never comes.
func TestRequestIDOfAnotherRequestIsRefused(t *testing.T) {
	t.Parallel()
	c := idleRun(t)
	if _, err := c.cfg.Runs.Add(t.Context(), client.RunInfo{RunID: "r", State: client.RunLive}); err != nil {
		t.Fatal(err)
	}
	steer := func(id, text string, now bool) func(context.Context) (any, error) {
		return func(ctx context.Context) (any, error) {
			return c.commander.steerAgent(ctx, client.SteerRequest{RunID: "r", Request: id, Text: text, Now: now})
		}
	}
	budget := func(id string, r client.BudgetRequest) func(context.Context) (any, error) {
		r.RunID, r.Request = "r", id
		return func(ctx context.Context) (any, error) { return c.commander.setBudget(ctx, r) }
	}
	policy := func(id, by string) func(context.Context) (any, error) {
		return func(ctx context.Context) (any, error) {
			return c.commander.setPolicy(ctx, client.PolicyRequest{RunID: "r", Request: id, By: by})
		}
	}
	limit := client.BudgetRequest{Patch: true, Limits: spec.RunLimits{Tokens: 1000}}
	for name, tt := range map[string]struct {
		first, other func(context.Context) (any, error)
		named        string
	}{
		"another text":         {steer("s1", "FIRST", false), steer("s1", "SECOND", false), "request_id s1 was used for another request (steer at "},
		"now":                  {steer("s2", "stop", false), steer("s2", "stop", true), "steer"},
		"a freeze":             {budget("b1", limit), budget("b1", client.BudgetRequest{Freeze: true}), "budget"},
		"a limit of an agent":  {budget("b2", limit), budget("b2", client.BudgetRequest{Agent: "root", Limits: spec.RunLimits{Tokens: 9}}), "budget"},
		"another verb":         {budget("b3", limit), policy("b3", ""), "budget"},
		"another sender":       {policy("p1", "ann"), policy("p1", "bob"), "policy"},
		"the beginning of one": {steer("long-id", "one", false), steer("long", "two", false), ""},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the reply may have been lost
				if _, err := tt.first(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			_, err := tt.other(t.Context())
			if tt.named == "" && err != nil || tt.named != "" && (!refuse.HasCode(err, client.CodeConflict) || !strings.Contains(err.Error(), tt.named)) {
				t.Errorf("another request: %v", err)
			}
		})
	}
	if _, err := steer("elsewhere", "one", false)(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.commander.steerAgent(t.Context(), client.SteerRequest{RunID: "r", Request: "elsewhere", Agent: "root-1-0", Text: "two"}); err != nil {
		t.Errorf("another agent takes a message under the same id: %v", err)
	}
}

// A cancel is done however its request id was used: one that aborts follows one that does not.
func TestStrongerCancelCountsUnderTheSameRequestID(t *testing.T) {
	t.Parallel()
	c := idleRun(t)
	if _, err := c.cfg.Runs.Add(t.Context(), client.RunInfo{RunID: "r", State: client.RunLive}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.commander.setPolicy(t.Context(), client.PolicyRequest{RunID: "r", Request: "c1"}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		of  string
		now bool
	}{{"root-1-0", false}, {"", false}, {"", false}, {"", true}, {"", true}} {
		if _, err := c.canceler.cancelRun(t.Context(), client.CancelRequest{RunID: "r", Request: "c1", Agent: tt.of, Now: tt.now, WaitMS: -1}); err != nil {
			t.Fatalf("%+v: %v", tt, err)
		}
		s, err := runlog.ReplaySupervisor(t.Context(), c.cfg.Post, "r")
		if err != nil {
			t.Fatal(err)
		}
		if sum := s.Summary(true); sum.Canceled != (tt.of == "") || sum.CanceledNow != tt.now {
			t.Errorf("%+v: canceled %t, now %t", tt, sum.Canceled, sum.CanceledNow)
		}
	}
}

// A message to an agent does not take the id from the cancel that follows in the log of that agent.
func TestCancelReachesAnAgentUnderTheIDOfAMessage(t *testing.T) {
	t.Parallel()
	c := idleRun(t)
	f, root := agent.Steered{Text: "go on"}, mailbox.At("r", "root")
	if err := c.cfg.Node.Command(t.Context(), root, "x1", f.Kind(), f); err != nil {
		t.Fatal(err)
	}
	ends, err := readLogStatuses(t.Context(), c.cfg.Post, "r")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.canceler.cancelLogs(t.Context(), "x1", agent.Canceled{Now: true}, ends); err != nil {
		t.Fatal(err)
	}
	if ends, err = readLogStatuses(t.Context(), c.cfg.Post, "r"); err != nil || ends[root].cancelFact() == nil {
		t.Errorf("the log of the root has no cancel: %v", err)
	}
}

// An answer with another text under the same request id is another answer: the first one counts.
func TestAnotherAnswerUnderTheSameRequestIDIsRefused(t *testing.T) {
	t.Parallel()
	c := parkedRun(t)
	answer := func(text string) error {
		_, err := c.commander.answerQuery(t.Context(), client.AnswerRequest{RunID: "r", Request: "a1", Query: "q", Decision: spec.TextOnly, Text: text})
		return err
	}
	if err := answer("red"); err != nil {
		t.Fatal(err)
	}
	if err := answer("blue"); !refuse.HasCode(err, client.CodeConflict) {
		t.Errorf("another text: %v", err)
	}
	if err := answer("red"); err != nil {
		t.Errorf("the same text: %v", err)
	}
}

// A request under the id of a run that exists names what that run was not begun with.
func TestRequestForAnExistingRunNamesWhatDiffers(t *testing.T) {
	t.Parallel()
	o := supervisor.Opened{Run: "r", Goal: "work", Root: "a", Workspace: "/srv/repo", Limits: spec.RunLimits{Tokens: 1000, Calls: 64}}
	same := client.RunRequest{RunID: "r", Prompt: "work"}
	for name, tt := range map[string]struct {
		change func(*client.RunRequest, *supervisor.Opened)
		want   []string
	}{
		"nothing": {func(*client.RunRequest, *supervisor.Opened) {}, nil},
		"all named": {func(r *client.RunRequest, _ *supervisor.Opened) {
			r.Agent, r.Dir, r.MaxTokens = "a", "/srv/repo/", 1000
		}, nil},
		"the prompt": {func(r *client.RunRequest, _ *supervisor.Opened) { r.Prompt = "play" }, []string{"prompt"}},
		"all": {func(r *client.RunRequest, _ *supervisor.Opened) {
			r.Prompt, r.Agent, r.Dir, r.MaxToolCalls = "x", "b", "/srv", 1
		}, []string{"prompt", "agent", "dir", "limits"}},
		"money":              {func(r *client.RunRequest, _ *supervisor.Opened) { r.MaxBudgetUSD = 2 }, []string{"limits"}},
		"a path elsewhere":   {func(r *client.RunRequest, o *supervisor.Opened) { r.Dir, o.NodePool = "/srv", "host-other" }, nil},
		"the task of a fork": {func(r *client.RunRequest, o *supervisor.Opened) { r.Prompt, o.Fork = "more", "x@root:1" }, nil},
		"a default":          {func(r *client.RunRequest, o *supervisor.Opened) { o.Limits.Depth = 3 }, nil},
	} {
		r, opened := same, o
		tt.change(&r, &opened)
		if got := differingFields(r, opened, "here"); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// The request with which a schedule was made is compared field by field; an omitted field differs from nothing.
func TestRequestOfAScheduleIsCompared(t *testing.T) {
	t.Parallel()
	made := client.RunRequest{Prompt: "work", Agent: "a", MaxTokens: 1000}
	if got := differingScheduled(client.RunRequest{Prompt: "work"}, made); got != nil {
		t.Errorf("the same request: %q", got)
	}
	if got := differingScheduled(client.RunRequest{Prompt: "play", Agent: "b", MaxTokens: 2000}, made); !slices.Equal(got, []string{"prompt", "agent", "limits"}) {
		t.Errorf("another request: %q", got)
	}
}

// A node remembers a bounded number of commands, the newest. A command that is sent again takes no second place.
func TestNodeRemembersTheNewestCommands(t *testing.T) {
	t.Parallel()
	var r recentCommands
	at := mailbox.At("r", mailbox.Super)
	claim := func(n int, text string) error {
		return r.claim(at, fmt.Sprint("s", n), agent.Steered{}.Kind(), agent.Steered{Text: text})
	}
	for n := range recentCommandsMax {
		for range 2 {
			if err := claim(n, "first"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := claim(0, "other"); !refuse.HasCode(err, client.CodeConflict) {
		t.Errorf("the oldest that is remembered: %v", err)
	}
	if err := claim(recentCommandsMax, "first"); err != nil {
		t.Fatal(err)
	}
	if err := claim(0, "other"); err != nil {
		t.Errorf("one that is not remembered any more: %v", err)
	}
	if err := claim(2, "other"); !refuse.HasCode(err, client.CodeConflict) || len(r.sent) != recentCommandsMax || len(r.order) != recentCommandsMax {
		t.Errorf("%d and %d are remembered: %v", len(r.sent), len(r.order), err)
	}
}

// TestAttackOwnerMakesANodeForgetCommands: an owner who sends many commands to a run of its own makes the node forget none of
// the commands of others.
func TestAttackOwnerMakesANodeForgetCommands(t *testing.T) {
	t.Parallel()
	var all ownedCommands
	claim := func(owner, request, text string) error {
		return all.ownedBy(owner).claim(mailbox.At("of-"+owner, mailbox.Super), request, agent.Steered{}.Kind(), agent.Steered{Text: text})
	}
	if err := claim("alice", "s1", "first"); err != nil {
		t.Fatal(err)
	}
	for n := range recentCommandsMax + 1 {
		if err := claim("bob", fmt.Sprint("s", n), "x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := claim("alice", "s1", "other"); !refuse.HasCode(err, client.CodeConflict) {
		t.Errorf("another request under the id of alice: %v", err)
	}
	if n, isNew := all.ownedBy("bob").countIn(mailbox.At("of-bob", mailbox.Super), "s0"); n != recentCommandsMax || !isNew {
		t.Errorf("%d commands of bob are counted, the first one is new: %v", n, isNew)
	}
}
