package control

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/schedule"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// repeatCheckMax is how long the search for an earlier command may take. A longer log is not searched to its end.
const repeatCheckMax = 2 * time.Second

// checkRepeat refuses a command that was appended under the request id of another one. The actor takes the first command
// of an id and drops the others, so the client would be told that its request is recorded, and nothing would come of it.
// checkRepeat runs after the append: then of two commands that come at once, the log says which was the first. If the log
// cannot be read, nothing is known of an earlier command, and the one that was appended counts.
func (c *commander) checkRepeat(ctx context.Context, at mailbox.Address, request, kind string, body any) error {
	ctx, stop := context.WithTimeout(ctx, repeatCheckMax)
	defer stop()
	raw, err := mailbox.Marshal(body)
	if err != nil {
		return nil //nolint:nilerr // it was appended, so this does not happen
	}
	first, when, err := readCommand(ctx, c.cfg.Post, at, request)
	switch {
	case err != nil:
		c.cfg.logger().Warn("a command was not compared with earlier ones of its request id", "log", at, "error", err)
		return nil
	case first.ID == "" || first.Kind == kind && bytes.Equal(first.Body, raw):
		return nil
	}
	return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("request_id %s was used for another request (%s at %s), so this one has no effect", request, commandName(first.Kind), when.UTC().Format(time.RFC3339)),
		Hint: "use a new request_id"}
}

// readCommand returns the first command of a request id in a log, and when it came. Its ID is empty if there is none.
func readCommand(ctx context.Context, post mailbox.Post, at mailbox.Address, request string) (first mailbox.Item, when time.Time, err error) {
	id := []byte(request)
	err = post.Read(ctx, at, 0, 0, func(m mailbox.Message) error {
		if !bytes.Contains(m.Data, id) { // most entries need not be decoded
			return nil
		}
		e, err := mailbox.Decode(m.Data)
		if err != nil || e.From != "" {
			return nil //nolint:nilerr // no reader takes a command from such an entry
		}
		for _, item := range e.Items {
			if item.ID == request {
				first, when = item, time.UnixMilli(m.At)
				return errEnough
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return first, when, fmt.Errorf("control: read %s: %w", at, err)
	}
	return first, when, nil
}

// commandName is the verb of a request, by the kind of its command.
func commandName(kind string) string {
	switch kind {
	case agent.Steered{}.Kind():
		return "steer"
	case supervisor.LimitSet{}.Kind(), supervisor.SubtreeLimitSet{}.Kind():
		return "budget"
	case supervisor.Opened{}.Kind():
		return "run"
	}
	return strings.TrimSuffix(kind, "_set")
}

// cancelID is the id of the entry of a cancel. A cancel is never refused for the id of its request: one that says more
// than an earlier one of the same request has another id. Clients choose request ids, which have no colon.
func cancelID(request string, f agent.Canceled) string {
	id := "cancel:" + request
	if f.Now {
		id += ":now"
	}
	if !isWhole(f.Of) {
		id += ":" + string(f.Of)
	}
	return id
}

// acceptExisting accepts a request whose run exists. What the request says besides has no effect, so the reply names
// where it differs from the request that began the run.
func (c *opener) acceptExisting(ctx context.Context, known client.RunInfo, r client.RunRequest) client.RunAccepted {
	accepted := client.RunAccepted{RunID: r.RunID, Model: known.Model, Why: "the run exists already", Existed: true}
	if r.Resume {
		return accepted
	}
	first, _, err := readCommand(ctx, c.cfg.Post, mailbox.At(r.RunID, mailbox.Super), openRequest)
	var o supervisor.Opened
	if err != nil || first.Kind != o.Kind() || mailbox.Unmarshal(first.Body, &o) != nil {
		return accepted // the log of the run tells no more: it may be removed
	}
	if accepted.Differs = differingFields(r, o, c.cfg.Machine); len(accepted.Differs) > 0 {
		accepted.Why += ", with another " + strings.Join(accepted.Differs, ", ")
		accepted.Notes = []string{"the run was begun by another request, and goes on as that one says: use a new run_id for this one"}
	}
	return accepted
}

// openRequest is the request id of the first entry of a run, as actors.Node.Open writes it.
const openRequest = "open.run"

// differingFields names the fields of a request whose values are not those with which a run was opened. A field that the
// request omits has no value of its own, and the path of another machine cannot be compared.
func differingFields(r client.RunRequest, o supervisor.Opened, machine string) (fields []string) {
	if o.Fork != "" { // the run has the task of its original
		return nil
	}
	for _, field := range [...]struct {
		name    string
		differs bool
	}{
		{"prompt", r.Prompt != o.Goal},
		{"agent", r.Agent != "" && r.Agent != o.Root},
		{"dir", r.Dir != "" && !isSamePath(r.Dir, o.Workspace) && (o.NodePool == "" || o.NodePool == names.MachinePool(machine))},
		{"limits", haveOtherLimits(r, o.Limits)},
	} {
		if field.differs {
			fields = append(fields, field.name)
		}
	}
	return fields
}

// acceptSchedule accepts a request whose schedule exists, as acceptExisting does for a run.
func acceptSchedule(r client.RunRequest, w schedule.Times, s *schedule.State) client.RunAccepted {
	info := describeSchedule(r.RunID, s)
	accepted := client.RunAccepted{Schedule: r.RunID, Next: info.Next, Conversation: info.Conversation, Why: "the schedule exists already", Existed: true}
	if stored := scheduledRequest(s); stored != nil {
		limits := spec.RunLimits{Tokens: stored.MaxTokens, Nano: int64(stored.MaxBudgetUSD * budget.NanoPerUSD), Calls: stored.MaxToolCalls, Depth: stored.MaxDepth, Children: stored.MaxChildren,
			Agents: stored.MaxAgents, Messages: stored.MaxMessages, Backlog: stored.MaxBacklog, LeaseMS: stored.BacklogLease}
		accepted.Differs = differingFields(r, supervisor.Opened{Goal: stored.Prompt, Root: cmp.Or(stored.Agent, r.Agent), Workspace: cmp.Or(stored.Dir, r.Dir), Limits: limits}, "")
	}
	if rule, err := schedule.NewRule(w, time.UnixMilli(s.CreatedMS)); err != nil || !isSameRule(rule, s.Rule) {
		accepted.Differs = append(accepted.Differs, "times")
	}
	if len(accepted.Differs) > 0 {
		accepted.Why += ", with another " + strings.Join(accepted.Differs, ", ")
	}
	return accepted
}

// isSameRule reports whether two rules have the same due times. Some begin at the moment of the request, which its schedule
// knows to a minute at best.
func isSameRule(a, b schedule.Rule) bool {
	begin := time.Duration(a.StartMS-b.StartMS) * time.Millisecond
	a.StartMS = b.StartMS
	return a == b && begin.Abs() <= time.Minute
}

// isSamePath reports whether a path of a request is that of a directory without links.
func isSamePath(path, real string) bool {
	if filepath.Clean(path) == real {
		return true
	}
	resolved, err := filepath.EvalSymlinks(path)
	return err == nil && resolved == real
}

// haveOtherLimits reports whether a request names a limit of the run that is not the one with which it was opened.
func haveOtherLimits(r client.RunRequest, l spec.RunLimits) bool {
	for _, limit := range [...]struct{ asked, opened int64 }{
		{r.MaxTokens, l.Tokens}, {int64(r.MaxBudgetUSD * budget.NanoPerUSD), l.Nano}, {r.MaxToolCalls, l.Calls}, {int64(r.MaxDepth), int64(l.Depth)},
		{int64(r.MaxChildren), int64(l.Children)}, {int64(r.MaxAgents), int64(l.Agents)}, {int64(r.MaxMessages), int64(l.Messages)},
		{int64(r.MaxBacklog), int64(l.Backlog)}, {r.BacklogLease, l.LeaseMS},
	} {
		if limit.asked != 0 && limit.asked != limit.opened {
			return true
		}
	}
	return false
}
