package supervisor_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// trees is how many random trees TestRightsOnlyShrinkDownwards grows.
var trees = flag.Int("rights.trees", 3000, "random trees of agents whose rights are compared")

// treeGrower grows one random run, seed by seed.
type treeGrower struct{ *rand.Rand }

func (g treeGrower) pickWord(words ...string) string { return words[g.IntN(len(words))] }

func (g treeGrower) pickSome(words []string) []string {
	if g.IntN(4) == 0 {
		return nil
	}
	list := []string{}
	for _, w := range words {
		if g.IntN(2) == 0 {
			list = append(list, w)
		}
	}
	return list
}

func (g treeGrower) growHooks() []spec.Hook {
	var list []spec.Hook
	for range g.IntN(4) {
		list = append(list, spec.Hook{Name: g.pickWord("approval", "gate", "audit"), Rules: g.pickWord("", "{}", `{"allow":["ls"]}`), Command: g.pickWord("", "", "./check"),
			Point: spec.HookPoint(g.pickWord("pre_tool", "pre_tool", "input", "output", "post_tool", "tool_error", "post_sampling", "context", "stop", "stop_failure")),
			Tools: g.pickWord("", "shell", "write|charge"), Of: g.pickWord("", "", spec.OfRoot, spec.OfChild), Report: g.IntN(5) == 0,
			Failing: spec.HookDecision(g.pickWord("", "", "deny"))})
	}
	return list
}

var rightsOfTrees = []string{"search", "charge", "write", "delegate", "shell", "mcp__git__push", "mcp__web__get"}

func (g treeGrower) growRun() supervisor.Opened {
	o := supervisor.Opened{Run: "r", Goal: "Compare.", Root: "a", Limits: spec.RunLimits{Depth: 5, Tokens: int64(g.IntN(2)) * 4_000_000},
		Workspace: g.pickWord("", "/work"), NodePool: g.pickWord("", "home"), Writable: []string{"report.md"},
		Servers: []spec.Server{{Name: "git"}, {Name: "web"}}, Commands: []spec.Command{{Name: "charge", Line: "./charge"}}}
	o.LoopOptions.Hooks, o.LoopOptions.Unattended = g.growHooks(), g.IntN(8) == 0
	o.Permissions = g.growPermissions()
	for _, n := range rightsOfTrees {
		o.Tools = append(o.Tools, model.ToolSpec{Name: n})
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		d := supervisor.Definition{Name: name, Tools: g.pickSome(rightsOfTrees), Deny: g.pickSome(rightsOfTrees[:g.IntN(3)]), Offer: g.pickSome(rightsOfTrees), NodePool: g.pickWord("", "", "gpu")}
		if d.Tools != nil && g.IntN(3) > 0 {
			d.Tools = append(d.Tools, "delegate")
		}
		d.LoopOptions.Hooks, d.LoopOptions.Unattended, d.Permissions = g.growHooks(), g.IntN(4) == 0, g.growPermissions()
		d.Limits.Tokens, d.Limits.Calls = []int64{0, 0, 20000, 90000}[g.IntN(4)], []int{0, 0, 3, 50}[g.IntN(4)]
		o.Definitions = append(o.Definitions, d)
	}
	return o
}

// treeCounts are what random trees had, so that a sample cannot be empty.
type treeCounts struct{ agents, narrowings, narrowed atomic.Int64 }

// growTree grows one tree, takes rights from agents of it at any time, and compares each child with its parent.
func (g treeGrower) growTree(counts *treeCounts) error {
	o := g.growRun()
	s, out := supervisor.Step(supervisor.State{}, supervisor.Input{N: 1, Fact: o})
	rights := &rightTree{run: o, agents: map[spec.ID]*treeAgent{}}
	tasks := map[spec.ID]spec.Task{}
	keep := func(fx []supervisor.Effect) {
		for _, e := range fx {
			if tell, ok := e.(supervisor.Tell); ok {
				if f, ok := tell.Fact.(agent.Submitted); ok {
					tasks[tell.To] = f.Task
					rights.add(f.Task)
				}
			}
		}
	}
	keep(out.Effects)
	ids := []spec.ID{spec.Root}
	for i := range 1 + g.IntN(12) {
		from := ids[g.IntN(len(ids))]
		if g.IntN(3) == 0 {
			s = g.spend(s, from)
		}
		if g.IntN(3) == 0 {
			f := supervisor.PermissionsSet{Agent: ids[g.IntN(len(ids))],
				Rights: spec.Narrowing{Mode: g.growMode(), Ask: g.growRules(), Deny: g.growRules()}}
			s, out = supervisor.Step(s, supervisor.Input{Fact: f})
			rights.narrow(f.Agent, f.Rights, out.Effects)
			counts.narrowings.Add(1)
			counts.narrowed.Add(int64(len(out.Effects)))
		}
		child := spec.ID(fmt.Sprintf("%s-%d-0", from, i))
		next, out := supervisor.Step(s, supervisor.Input{From: from, Fact: agent.Delegate{Call: "1-0", Child: child,
			Name: g.pickWord("", "a", "b", "c", "d"), Goal: "Look.", Background: g.IntN(3) == 0}})
		keep(out.Effects)
		if t, born := tasks[child]; born {
			if err := atMost(s, next, tasks[from], t); err != nil {
				return fmt.Errorf("%s under %s: %w", child, from, err)
			}
			ids = append(ids, child)
		}
		s = next
		if err := rights.check(); err != nil {
			return err
		}
	}
	counts.agents.Add(int64(len(ids)))
	return nil
}

// spend lets an agent use up something of its own budget.
func (g treeGrower) spend(s supervisor.State, from spec.ID) supervisor.State {
	reservation := s.Pool.Account(string(from)).Closed + 1
	s, _ = supervisor.Step(s, supervisor.Input{From: from, Fact: agent.Reserve{Reservation: reservation, Turn: reservation,
		Request: budget.AttemptRequest{Input: 100, Output: 1000, OutputMin: 64, Closing: 100, Calls: 2}}})
	s, _ = supervisor.Step(s, supervisor.Input{From: from, Fact: agent.Settle{Reservation: reservation, Turn: reservation,
		Used: budget.Amount{Tokens: 500, Calls: 1}}})
	return s
}

// TestRightsOnlyShrinkDownwards: in random trees of agents, whatever the definitions say and whatever operators take from
// agents at work, each field of a child's rights is at most its parent's, all the way down; what is denied above stays
// denied, and each call is decided as a second reading of the definitions and changes says, never less strictly than for the
// parent or than before (E6). `make rights` grows 1,000,000 trees.
//
//behaviour:shows E6
func TestRightsOnlyShrinkDownwards(t *testing.T) {
	t.Parallel()
	var counts treeCounts
	var group sync.WaitGroup
	next := atomic.Uint64{}
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for seed := next.Add(1) - 1; seed < uint64(*trees) && !t.Failed(); seed = next.Add(1) - 1 {
				if err := (treeGrower{rand.New(rand.NewPCG(seed, 7))}).growTree(&counts); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
		})
	}
	group.Wait()
	agents, asked, narrowed := counts.agents.Load(), counts.narrowings.Load(), counts.narrowed.Load()
	t.Logf("%d trees with %d agents; operators asked for %d changes, which reached agents %d times", *trees, agents, asked, narrowed)
	if all := int64(*trees); agents < 2*all || narrowed < all/2 {
		t.Errorf("%d trees have %d agents, and changes have reached %d: too few to show anything", all, agents, narrowed)
	}
}

// atMost compares the recorded task of a child with that of its parent.
func atMost(before, after supervisor.State, parent, child spec.Task) error {
	p, _ := before.Member(parent.ID)
	c, _ := after.Member(child.ID)
	for _, right := range c.Rights {
		if !slices.Contains(p.Rights, right) || slices.Contains(p.Deny, right) || slices.Contains(parent.Forbidden, right) {
			return fmt.Errorf("it has %q, its parent has %v and is denied %v", right, p.Rights, p.Deny)
		}
	}
	for _, tool := range child.Tools {
		if !slices.Contains(c.Rights, tool.Name) {
			return fmt.Errorf("it is offered %q, its rights are %v", tool.Name, c.Rights)
		}
	}
	for _, denied := range slices.Concat(p.Deny, parent.Forbidden) {
		if !slices.Contains(child.Forbidden, denied) || slices.Contains(p.Deny, denied) && !slices.Contains(c.Deny, denied) {
			return fmt.Errorf("it may have %q again, which was denied above it", denied)
		}
	}
	for _, server := range child.Servers {
		if !slices.ContainsFunc(p.Rights, server.Has) {
			return fmt.Errorf("it reaches the MCP server %s, its parent has %v", server.Name, p.Rights)
		}
	}
	for _, command := range child.Commands {
		if !slices.Contains(p.Rights, command.Name) {
			return fmt.Errorf("it has the command %s, its parent has %v", command.Name, p.Rights)
		}
	}
	if child.Workspace != "" && child.Workspace != before.Run.Workspace || !reflect.DeepEqual(child.Writable, parent.Writable) {
		return fmt.Errorf("it works in %q and writes %v", child.Workspace, child.Writable)
	}
	account, own := before.Pool.Account(string(parent.ID)), after.Pool.Account(string(child.ID)).Limit
	if allowsMore(own.Tokens, account.Limit.Tokens, account.Spent.Tokens) || allowsMore(own.Calls, account.Limit.Calls, account.Spent.Calls) {
		return fmt.Errorf("it may spend %+v, its parent %+v and has spent %+v", own, account.Limit, account.Spent)
	}
	if child.Depth != parent.Depth+1 || child.Depth >= before.Run.Limits.Depth {
		return fmt.Errorf("it is at depth %d", child.Depth)
	}
	return checkBinding(parent, child)
}

func allowsMore(own, limit, spent int64) bool { return limit > 0 && (own == 0 || own > limit-spent) }

// checkBinding: each hook around calls that binds the parent binds the child, as strict or
// stricter where it fails. This list of points is written anew, on purpose.
func checkBinding(parent, child spec.Task) error {
	if parent.LoopOptions.Unattended && !child.LoopOptions.Unattended {
		return errors.New("it may ask people, and its parent may not")
	}
	for _, h := range parent.LoopOptions.Hooks {
		own := h.Point == spec.HookContext || h.Point == spec.HookStop || h.Point == spec.HookStopFailure
		if own || h.Of == spec.OfRoot {
			continue
		}
		if !slices.ContainsFunc(child.LoopOptions.Hooks, func(k spec.Hook) bool {
			if k.Failing == spec.HookDeny && h.Failing == "" {
				k.Failing = ""
			}
			return k == h
		}) {
			return fmt.Errorf("the hook %+v of its parent does not bind it: %+v", h, child.LoopOptions.Hooks)
		}
	}
	return nil
}
