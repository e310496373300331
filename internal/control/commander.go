package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/control/runview"
	"github.com/troupe-run/troupe/internal/policy"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

func badRequestID(err error) error {
	return &client.Error{Code: client.CodeBad, Text: "request_id: " + err.Error(), Hint: "choose one of a-z, 0-9, - and _; the same one is applied once"}
}

// withState returns the row with the run's current state and result: see runview.View.State.
func withState(row runindex.Row, s supervisor.State) client.RunInfo {
	info := row.RunInfo
	if s.Phase == "" || info.State == client.RunFinished && s.Phase != supervisor.Over {
		return info
	}
	result := bounds.FitAgents(s.Result())
	info.Result, info.State = &result, runview.View{Row: row, Summary: s.Summary(true)}.State()
	return info
}

// withPosition returns the row with the run's place in the queue of this node; 0: it has none.
func withPosition(info client.RunInfo, place int) client.RunInfo {
	if place > 0 && info.State != client.RunFinished {
		info.State, info.Position = client.RunQueued, place
	}
	return info
}

// commander appends what clients ask of runs that work, to the logs of their agents.
type commander struct {
	cfg    *Config
	lookup *lookup
	views  *runViews
	states *runlog.SupervisorStates
	recent ownedCommands
}

// appendCommand appends a request to an actor of a run that has not ended: to the agent to, or the supervisor if it is
// empty. Both to and of, the agent that the request is about, must exist if they are named: an append to another name
// would create a log without an agent.
func (c *commander) appendCommand(ctx context.Context, run, request string, to, of spec.ID, kind string, body any) (any, error) {
	l, err := c.lookAtRun(ctx, run, request)
	if err != nil {
		return nil, err
	}
	return c.appendToViewed(ctx, l, request, to, of, kind, body)
}

// lookAtRun looks at the run of a request that a client has named.
func (c *commander) lookAtRun(ctx context.Context, run, request string) (runview.View, error) {
	row, err := c.lookup.findRun(ctx, run)
	if err != nil {
		return runview.View{}, err
	}
	if err := names.CheckToken(request); err != nil {
		return runview.View{}, badRequestID(err)
	}
	return c.views.ViewOne(ctx, row)
}

// appendToViewed is appendCommand for a run that was looked at. A cancel of a run that has ended appends nothing and
// succeeds. A command whose request id another one has is refused (recentCommands), unless it is a cancel (cancelID).
func (c *commander) appendToViewed(ctx context.Context, l runview.View, request string, to, of spec.ID, kind string, body any) (any, error) {
	run := l.Row.RunID
	if l.Summary.Phase == "" { // the index has a row, but there is no log
		return nil, refuse.NoRun(run)
	}
	address := mailbox.At(run, mailbox.Super)
	for _, a := range []spec.ID{to, of} {
		if a == "" {
			continue
		}
		at, err := c.views.FindAgent(ctx, l, a)
		if refuse.IsNotFound(err) && l.Summary.AgentsCut { // it may have no log yet
			if l, err = c.views.ViewFully(ctx, l.Row); err == nil {
				at, err = c.views.FindAgent(ctx, l, a)
			}
		}
		if err != nil {
			return nil, err
		}
		if a == to {
			address = at
		}
	}
	isCancel := kind == agent.Canceled{}.Kind()
	switch finished := l.State() == client.RunFinished; {
	case finished && isCancel:
		return struct{}{}, nil // it is canceled already
	case finished:
		return nil, &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("%s is over", run), Hint: "`troupe result` shows how it ended"}
	}
	if err := c.cfg.checkWritable(); err != nil {
		return nil, err
	}
	if isCancel {
		return struct{}{}, c.cfg.Node.Command(ctx, address, request, kind, body)
	}
	recent := c.recent.ownedBy(requestOwner(ctx))
	if err := c.checkCommandCounts(ctx, recent, address, request, kind); err != nil {
		return nil, err
	}
	if err := recent.claim(address, request, kind, body); err != nil {
		return nil, err
	}
	return struct{}{}, c.cfg.Node.Command(ctx, address, request, kind, body)
}

const (
	// commandsUnread is how many commands of one owner a node appends to a log before it looks how many the log holds.
	commandsUnread = 64
	// commandsMax is how many commands a log may hold before it takes only answers and cancels, and answersKept how many
	// answers it then has room for.
	commandsMax = activation.RequestsMax - answersKept
	answersKept = 128
)

// checkCommandCounts refuses a command that the actor would not read, because its log holds too many of them. Only of logs to
// which this node has appended many it reads how many they are: nobody else sends so many.
func (c *commander) checkCommandCounts(ctx context.Context, recent *recentCommands, at mailbox.Address, request, kind string) error {
	n, isNew := recent.countIn(at, request)
	if n < commandsUnread || !isNew {
		return nil
	}
	held, err := c.countCommands(ctx, at)
	if err != nil {
		return err
	}
	most := commandsMax
	if kind == (agent.Answered{}).Kind() {
		most = activation.RequestsMax
	}
	if held < most {
		return nil
	}
	return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("the log of %s holds %d requests of clients: it would not take this one into account", at, held),
		Hint: "cancel the run, and continue its history in another one: `troupe run --fork`"}
}

// countCommands is how many commands the log of an actor holds.
func (c *commander) countCommands(ctx context.Context, at mailbox.Address) (int, error) {
	if at.Agent() == mailbox.Super {
		full, err := c.states.Replay(ctx, c.cfg.Post, at.Run())
		return full.Requests, err
	}
	log, err := runlog.Replay(ctx, c.cfg.Post, at, &activation.Agent{Addr: at}, nil)
	if err != nil {
		return 0, err
	}
	return log.Requests(), nil
}

func (c *commander) steerAgent(ctx context.Context, r client.SteerRequest) (any, error) {
	if strings.TrimSpace(r.Text) == "" {
		return nil, &client.Error{Code: client.CodeBad, Text: "the message is empty", Hint: "write what the agent shall read"}
	}
	l, err := c.lookAtRun(ctx, r.RunID, r.Request)
	if err != nil {
		return nil, err
	}
	id := cmp.Or(spec.ID(r.Agent), spec.Root)
	if err := c.checkAtWork(ctx, l, id); err != nil {
		return nil, err
	}
	f := agent.Steered{Text: r.Text, Now: r.Now}
	return c.appendToViewed(ctx, l, r.Request, id, "", f.Kind(), f)
}

// checkAtWork returns an error if an agent of a live run has ended: it would not read messages.
func (c *commander) checkAtWork(ctx context.Context, l runview.View, id spec.ID) error {
	if l.Summary.Phase == "" || l.State() == client.RunFinished || slices.ContainsFunc(l.Summary.Agents, func(a supervisor.AgentSummary) bool { return a.ID == id && !a.Done }) {
		return nil
	}
	full, err := c.states.Replay(ctx, c.cfg.Post, l.Row.RunID) // a summary names no agent that has ended
	if err != nil {
		return err
	}
	if m, ok := full.State.Member(id); ok && m.Done {
		return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("agent %s of %s has ended", id, l.Row.RunID), Hint: "`troupe tree` shows the agents that work"}
	}
	return nil
}

const policyByMax = 200 // bytes of the name of who sets a policy

func (c *commander) setPolicy(ctx context.Context, r client.PolicyRequest) (any, error) {
	compiled, err := policy.Compile(r.Policy)
	if err != nil {
		return nil, &client.Error{Code: client.CodeBad, Text: err.Error(), Hint: refuse.PolicyHint}
	}
	if len(r.By) > policyByMax {
		return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("by has %d bytes, at most %d are allowed", len(r.By), policyByMax)}
	}
	f := supervisor.PolicySet{Policy: compiled, By: namedBy(r.By)}
	return c.appendCommand(ctx, r.RunID, r.Request, "", "", f.Kind(), f)
}

func (c *commander) setBudget(ctx context.Context, r client.BudgetRequest) (any, error) {
	if name, n := bounds.NegativeLimit(r.Limits); n < 0 {
		return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("limits must not be negative: %s is %d", name, n), Hint: "use 0 for the default"}
	}
	if r.Agent != "" {
		return c.setSubtreeLimit(ctx, r)
	}
	if r.Unfreeze {
		return nil, &client.Error{Code: client.CodeBad, Text: "the run is not unfrozen", Hint: "name an agent, or set a limit: that lifts the freeze of a run"}
	}
	if r.Patch && r.Limits == (spec.RunLimits{}) {
		return nil, &client.Error{Code: client.CodeBad, Text: "no limit is named", Hint: "with patch, name the limits that change"}
	}
	l, err := c.lookAtRun(ctx, r.RunID, r.Request)
	if err != nil {
		return nil, err
	}
	if r.Limits.Nano > 0 && !r.Freeze && l.Summary.Phase != "" && !l.Summary.Priced {
		return nil, &client.Error{Code: client.CodeBad, Text: "the price of " + l.Row.Model + " is unknown, so a limit in money cannot be kept",
			Hint: "limit the tokens"}
	}
	f := supervisor.LimitSet{Limits: r.Limits, Patch: r.Patch, Freeze: r.Freeze, By: namedBy(r.By)}
	return c.appendToViewed(ctx, l, r.Request, "", "", f.Kind(), f)
}
