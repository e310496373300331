package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// recentCommandsMax is how many commands of one owner a node remembers, the newest. A command that is repeated for a lost
// reply follows soon after the first one.
const recentCommandsMax = 4096

// ownedCommands are the recent commands of each owner; those of operators have the owner "". Each has a memory of its own, so
// that nobody makes a node forget the commands of others. The zero value is ready.
type ownedCommands struct {
	mu sync.Mutex
	of map[string]*recentCommands
}

// ownedBy returns the recent commands of an owner.
func (o *ownedCommands) ownedBy(owner string) *recentCommands {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[string]*recentCommands{}
	}
	if o.of[owner] == nil {
		o.of[owner] = &recentCommands{}
	}
	return o.of[owner]
}

// recentCommands are the commands that this node has appended, by their logs and request ids. The zero value is ready.
type recentCommands struct {
	mu    sync.Mutex
	sent  map[commandKey]sentCommand
	order []commandKey            // of arrival
	inLog map[mailbox.Address]int // how many of them are in a log
}

// countIn is how many commands of a log are remembered. isNew is false for one that is remembered itself.
func (r *recentCommands) countIn(log mailbox.Address, request string) (n int, isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.sent[commandKey{log, request}]
	return r.inLog[log], !known
}

type commandKey struct {
	log     mailbox.Address
	request string
}

type sentCommand struct {
	kind string
	sum  [sha256.Size]byte // of its body
	when time.Time
}

// claim remembers a command that is about to be appended, and refuses it if its request id is that of another one: the
// actor takes the first command of an id and drops the others, so the client would be told that its request is recorded,
// and nothing would come of it. Of what other nodes have appended, and of commands before the newest recentCommandsMax, it
// knows nothing. A command whose append fails is remembered all the same: it may be in the log.
func (r *recentCommands) claim(log mailbox.Address, request, kind string, body any) error {
	raw, err := mailbox.Marshal(body)
	if err != nil {
		return fmt.Errorf("control: %s for %s: %w", kind, log, err)
	}
	key, c := commandKey{log, request}, sentCommand{kind, sha256.Sum256(raw), time.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch first, known := r.sent[key]; {
	case known && (first.kind != c.kind || first.sum != c.sum):
		return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("request_id %s was used for another request (%s at %s), so this one has no effect", request, commandName(first.kind), first.when.UTC().Format(time.RFC3339)),
			Hint: "use a new request_id"}
	case known:
		return nil
	case r.sent == nil:
		r.sent, r.inLog = map[commandKey]sentCommand{}, map[mailbox.Address]int{}
	case len(r.order) == recentCommandsMax:
		oldest := r.order[0]
		delete(r.sent, oldest)
		if r.inLog[oldest.log]--; r.inLog[oldest.log] == 0 {
			delete(r.inLog, oldest.log)
		}
		r.order = slices.Delete(r.order, 0, 1)
	}
	r.sent[key], r.order = c, append(r.order, key)
	r.inLog[log]++
	return nil
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
	o, found, err := readOpened(ctx, c.cfg.Post, r.RunID)
	if err != nil || !found {
		return accepted // the log of the run tells no more: it may be removed
	}
	if accepted.Differs = differingFields(r, o, c.cfg.Machine); len(accepted.Differs) > 0 {
		accepted.Why += " and differs in: " + strings.Join(accepted.Differs, ", ")
		accepted.Notes = []string{"the run was begun by another request, and goes on as that one says: use a new run_id for this one"}
	}
	return accepted
}

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

// differingScheduled names the fields of a request whose values are not those of the request with which a schedule was made.
func differingScheduled(r, made client.RunRequest) []string {
	limits := spec.RunLimits{Tokens: made.MaxTokens, Nano: int64(made.MaxBudgetUSD * budget.NanoPerUSD), Calls: made.MaxToolCalls, Depth: made.MaxDepth, Children: made.MaxChildren,
		Agents: made.MaxAgents, Messages: made.MaxMessages, Backlog: made.MaxBacklog, LeaseMS: made.BacklogLease}
	return differingFields(r, supervisor.Opened{Goal: made.Prompt, Root: cmp.Or(made.Agent, r.Agent), Workspace: cmp.Or(made.Dir, r.Dir), Limits: limits}, "")
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
