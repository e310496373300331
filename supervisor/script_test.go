package supervisor_test

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/test/scripts"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// TestScripts plays testdata/*.txt: one event in, the run and what is told out.
// `go test ./supervisor -rewrite` records what the machine does; read the
// difference before you commit it. docs/scripts.md explains the directives.
func TestScripts(t *testing.T) {
	scripts.PlayAll(t, func(log *scripts.EventLog) scripts.PlayFunc { return (&scriptPlayer{published: log}).playLine })
}

// scriptPlayer is a script as it is played.
type scriptPlayer struct {
	state     supervisor.State
	n         uint64
	at        int64
	notes     bool
	published *scripts.EventLog
}

func (p *scriptPlayer) playLine(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if d.Cmd == "new" || d.Cmd == "start" { // both begin a new log
		*p = scriptPlayer{published: p.published}
	}
	if v := argValue(t, d, "at"); v != "" {
		at, err := time.ParseDuration(v)
		if err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
		p.at = at.Milliseconds()
	}
	switch d.Cmd {
	case "new":
		return ""
	case "start":
		return p.startLog(t, d)
	case "notes":
		p.notes = true
		return ""
	case "members":
		return printMembers(p.state)
	case "tasks":
		return printBacklog(p.state)
	case "result":
		return printResult(p.state.Result())
	case "report":
		return printReport(p.state.Result())
	case "repeat":
		return scripts.Repeat(t, d, p.playLine)
	}
	e := supervisor.Input{At: p.at, From: spec.ID(argValue(t, d, "from")), Damaged: d.Cmd == "report-log" && d.HasArg("damaged"), Fact: withTaint(t, d, parseFact(t, d))}
	return p.stepEvent(t, e)
}

// checkFinalResult fails if a step changes the result of a run that is over.
func checkFinalResult(t *testing.T, before, after supervisor.State, e supervisor.Input) {
	t.Helper()
	_, isOthers := e.Fact.(supervisor.OthersUse)
	if before.Phase != supervisor.Over || before.Outcome.Reason == spec.LogDamaged || isOthers {
		return
	}
	if was, is := before.Result(), after.Result(); !reflect.DeepEqual(was, is) {
		t.Errorf("the run is over, and %T changes its result: it was %+v and is %+v", e.Fact, was, is)
	}
}

// stepInput steps the machine and checks what must hold in every script.
func (p *scriptPlayer) stepEvent(t *testing.T, e supervisor.Input) string {
	t.Helper()
	p.n++
	e.N = p.n
	before := p.state
	after, out := supervisor.Step(before, e)
	effects, notes := out.Effects, out.Events
	checkFinalResult(t, before, after, e)
	p.state = after
	var b strings.Builder
	b.WriteString(printState(after))
	for _, fx := range effects {
		b.WriteString("  " + printEffect(fx) + "\n")
	}
	p.published.AddEvents(t, p.n, notes)
	if p.notes {
		for _, n := range notes {
			fmt.Fprintf(&b, "  * %s\n", n.Kind)
		}
	}
	checkPool(t, after)
	return b.String()
}

func printState(s supervisor.State) string {
	phase := string(s.Phase)
	if phase == "" {
		phase = "(not opened)"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s live=%d", phase, s.Live)
	if s.Waiting() > 0 {
		fmt.Fprintf(&b, " waiting=%d", s.Waiting())
	}
	if s.Parked > 0 {
		fmt.Fprintf(&b, " parked=%d", s.Parked)
	}
	if s.Cancel != nil {
		fmt.Fprintf(&b, " canceled stopped=%d", s.Stopped)
	}
	fmt.Fprintf(&b, " spent=%d held=%d kept=%d", s.Pool.Spent.Tokens, s.Pool.Held.Tokens, s.Pool.Kept.Tokens)
	if s.Pool.Carved.Tokens > 0 {
		fmt.Fprintf(&b, " carved=%d", s.Pool.Carved.Tokens)
	}
	if s.Pool.Ahead.Tokens > 0 {
		fmt.Fprintf(&b, " ahead=%d", s.Pool.Ahead.Tokens)
	}
	if s.Pool.Limit.Nano > 0 {
		fmt.Fprintf(&b, " nano=%d/%d", s.Pool.Spent.Nano, s.Pool.Limit.Nano)
	}
	if s.Pool.Limit.Calls != supervisor.CallsMax {
		fmt.Fprintf(&b, " calls=%d+%d/%d", s.Pool.Spent.Calls, s.Pool.Held.Calls, s.Pool.Limit.Calls)
	}
	if s.Pool.Unknown.Tokens > 0 {
		fmt.Fprintf(&b, " unknown=%d", s.Pool.Unknown.Tokens)
	}
	if !s.Pool.Overrun.Zero() {
		fmt.Fprintf(&b, " overrun=%d", s.Pool.Overrun.Tokens)
	}
	if s.Phase == supervisor.Over {
		b.WriteString(" reason=" + string(s.Outcome.Reason))
	}
	return b.String() + "\n"
}

func printEffect(fx supervisor.Effect) string {
	switch e := fx.(type) {
	case supervisor.Tell:
		return fmt.Sprintf("tell %s %s%s", e.To, printTold(e.Fact), printTaint(e.Fact))
	case supervisor.Publish:
		return "publish"
	case supervisor.Arm:
		return fmt.Sprintf("arm %s at=%s", e.Timer, time.Duration(e.Due)*time.Millisecond)
	case supervisor.Disarm:
		return "disarm " + e.Timer
	}
	panic(fmt.Sprintf("an effect that no script can show: %T", fx))
}

func printTold(f agent.Fact) string {
	switch f := f.(type) {
	case agent.Recalled:
		return fmt.Sprintf("recalled messages=%d", len(f.Messages))
	case agent.Submitted:
		return printTask(f.Task)
	case agent.Granted:
		if f.Closing {
			return strings.TrimSpace(fmt.Sprintf("granted %d closing=%s output=%d%s %s", f.Reservation, f.Why, f.Output, printOrigin(f.By), f.Detail))
		}
		return fmt.Sprintf("granted %d output=%d calls=%d", f.Reservation, f.Output, f.Calls) + printAllowance(f.Allowance)
	case agent.AllowanceRecalled:
		return fmt.Sprintf("allowance-recalled %d", f.Grant)
	case agent.Denied:
		return strings.TrimSpace(fmt.Sprintf("denied %d why=%s%s %s", f.Reservation, f.Why, printOrigin(f.By), f.Detail))
	case agent.Returned:
		return fmt.Sprintf("returned %s error=%t%s%s %q", f.Call, f.Error, markLive(f), printHanded(f), f.Text)
	case agent.Messaged:
		return fmt.Sprintf("messaged from=%s (%s) call=%s error=%t %q", f.From, f.Name, f.Call, f.Error, f.Text)
	case agent.LogVerified:
		return "log-verified activation=" + f.Activation
	case agent.StopAllowed:
		return fmt.Sprintf("stop-allowed %d", f.Proposal) + printOrigin(f.By)
	case agent.StopVetoed:
		return fmt.Sprintf("stop-vetoed %d final=%t%s %q", f.Proposal, f.Final, printOrigin(f.By), f.Why)
	case agent.BudgetFrozen:
		return fmt.Sprintf("budget-frozen %d", f.Reservation)
	case agent.ContextSet:
		return printContext(f)
	case agent.RuleAllowed:
		return "rule-allowed " + f.Rule.Text
	case agent.PermissionsNarrowed:
		return "permissions-narrowed" + printPermissions(spec.Task{Permissions: []spec.Permissions{f.Rights.Permissions()}})
	case agent.Canceled:
		return strings.TrimSpace(fmt.Sprintf("canceled now=%t %s %s", f.Now, f.As, f.Why))
	}
	return f.Kind()
}

// printTask prints what a member was given: its task, its rights, its limits.
func printTask(t spec.Task) string {
	var tools []string
	for _, toolSpec := range t.Tools {
		tools = append(tools, toolSpec.Name)
	}
	out := fmt.Sprintf("submitted %s depth=%d agent=%s tools=(%s)", t.ID, t.Depth, t.Name, strings.Join(tools, " "))
	if len(t.Forbidden) > 0 {
		out += fmt.Sprintf(" forbidden=(%s)", strings.Join(t.Forbidden, " "))
	}
	if len(t.Foreign) > 0 {
		out += fmt.Sprintf(" foreign=(%s)", strings.Join(t.Foreign, " "))
	}
	if len(t.ForeignMembers) > 0 {
		out += fmt.Sprintf(" members=(%s)", strings.Join(t.ForeignMembers, " "))
	}
	if t.ChargeNano > 0 {
		out += fmt.Sprintf(" charge=%d", t.ChargeNano)
	}
	l := t.Limits
	for _, limit := range []struct {
		name  string
		value int64
	}{{"turns", int64(l.Turns)}, {"calls", int64(l.Calls)}, {"tokens", l.Tokens}, {"nano", l.Nano}, {"soft-ms", l.SoftMS}, {"hard-ms", l.HardMS}} {
		if limit.value > 0 {
			out += fmt.Sprintf(" %s=%d", limit.name, limit.value)
		}
	}
	out += hooksShown(t.LoopOptions.Hooks) + printPermissions(t)
	out += printLayers(t.Layers)
	if t.Workspace != "" {
		out += " in=" + t.Workspace
	}
	if t.Priority != "" {
		out += " priority=" + t.Priority
	}
	if len(t.FailIf) > 0 {
		out += fmt.Sprintf(" fail-if=%q", t.FailIf)
	}
	if t.Caller != "" {
		out += fmt.Sprintf(" caller=%s constraints=%q criteria=%q trace=%s", t.Caller, t.Constraints, t.Criteria, t.Trace)
	}
	return out + printRequire(t) + fmt.Sprintf(" %q", t.Goal)
}

func printMembers(s supervisor.State) string {
	var b strings.Builder
	s.Members(func(m supervisor.Member) {
		state := "live"
		if m.Done {
			state = "done reason=" + string(m.Outcome.Reason)
		} else if m.Query != nil {
			state = "parked query=" + m.Query.Query
		}
		if m.NodePool != "" {
			state += " pool=" + m.NodePool
		}
		a := s.Pool.Account(string(m.ID))
		fmt.Fprintf(&b, "%s %s %s children=%d turns=%d rights=(%s) spent=%d held=%d kept=%d\n", m.ID, m.Name, state, m.Children, m.Turns,
			strings.Join(m.Rights, " "), a.Spent.Tokens, a.InUse().Tokens, a.Kept.Tokens)
	})
	return b.String()
}

func printResult(r event.Result) string {
	known := fmt.Sprint(r.CostKnown)
	if r.CostEstimated {
		known += " cost-estimated=true"
	}
	if r.Budget.ReservedUSD > 0 {
		known += fmt.Sprintf(" reserved-usd=%g", r.Budget.ReservedUSD)
	}
	return fmt.Sprintf("%s %s partial=%t turns=%d tokens=%d used=%d reserved=%d unknown=%d overrun=%d cost-known=%s agents=%d %q\n", r.Subtype, r.Reason,
		r.Partial, r.Turns, r.Usage.Total(), r.Budget.Used, r.Budget.Reserved, r.Budget.Unknown, r.Budget.Overrun, known, len(r.Agents), r.Text) + printCancel(r)
}

// printReport prints what a run report says of the tree and of each agent.
func printReport(r event.Result) string {
	var b strings.Builder
	line := func(who string, reason spec.Reason, turns, calls int, u model.Usage, usd float64, modelMS, toolMS int64) {
		fmt.Fprintf(&b, "%s %s turns=%d calls=%d in=%d out=%d usd=%g model=%dms tools=%dms\n", who, reason, turns, calls, u.Input, u.Output, usd, modelMS, toolMS)
	}
	calls := 0
	for _, a := range r.Agents {
		calls += a.Calls
		line(string(a.ID), a.Reason, a.Turns, a.Calls, a.Usage, a.CostUSD, a.ModelMS, a.ToolMS)
	}
	line(fmt.Sprintf("tree %dms", r.DurationMS), r.Reason, r.Turns, calls, r.Usage, r.CostUSD, r.ModelMS, r.ToolMS)
	return b.String()
}

// checkPool: the sums of a pool are the sums of its accounts, and nothing but a
// provider's overrun is committed beyond the limit.
func checkPool(t *testing.T, s supervisor.State) {
	t.Helper()
	var spent, held, kept, carved budget.Amount
	s.Members(func(m supervisor.Member) {
		a := s.Pool.Account(string(m.ID))
		spent, held, kept = spent.Plus(a.Spent), held.Plus(a.InUse()), kept.Plus(a.Kept)
		carved = carved.Plus(a.Share.Over(a.Spent.Plus(a.InUse()).Plus(a.Kept).Plus(a.Below)))
		charge := s.Pool.Account(string(m.ID) + "/charge")
		spent, held = spent.Plus(charge.Spent), held.Plus(charge.InUse())
	})
	if carved != s.Pool.Carved {
		t.Errorf("of the shares %v is left, the pool says %v", carved, s.Pool.Carved)
	}
	if spent != s.Pool.Spent || held != s.Pool.Held || kept != s.Pool.Kept {
		t.Errorf("the accounts hold %v+%v+%v, the pool says %v+%v+%v", spent, held, kept, s.Pool.Spent, s.Pool.Held, s.Pool.Kept)
	}
}

// parseDurations reads two durations, in milliseconds.
func parseDurations(t *testing.T, text string) (soft, hard int64) {
	t.Helper()
	limits := strings.Fields(text)
	if len(limits) != 2 {
		t.Fatalf("%q is not a soft and a hard limit", text)
	}
	var ms [2]int64
	for i, word := range limits {
		d, err := time.ParseDuration(word)
		if err != nil {
			t.Fatal(err)
		}
		ms[i] = d.Milliseconds()
	}
	return ms[0], ms[1]
}

// parseFact makes the event of a line.
func parseFact(t *testing.T, d *datadriven.TestData) supervisor.Fact {
	t.Helper()
	switch d.Cmd {
	case "opened":
		return parseOpened(t, d)
	case "reserve":
		ask := budget.AttemptRequest{Input: int64(argNumber(t, d, "input", 100)), Output: int64(argNumber(t, d, "output", 1000)), OutputMin: 64,
			Closing: int64(argNumber(t, d, "closing", 100)), Calls: int64(argNumber(t, d, "calls", 0)), Final: d.HasArg("final"), Price: parsePrice(t, d)}
		return agent.Reserve{Reservation: argNumber(t, d, "reservation", 1), Node: argValue(t, d, "node"), Request: ask, Turn: argNumber(t, d, "turn", argNumber(t, d, "reservation", 1)), Ahead: argNumber(t, d, "ahead", 0), Facts: parseFacts(t, d)}
	case "settle":
		s := agent.Settle{Reservation: argNumber(t, d, "reservation", 1), Lost: d.HasArg("lost"), Turn: argNumber(t, d, "reservation", 1)}
		s.Used = budget.Amount{Tokens: int64(argNumber(t, d, "used", 0)), Nano: int64(argNumber(t, d, "nano", 0)), Calls: int64(argNumber(t, d, "calls", 0))}
		s.Usage = model.Usage{Input: s.Used.Tokens}
		s.Unused, s.Under, s.Taken = d.HasArg("unused"), argNumber(t, d, "under", 0), takenAmount(t, d)
		return s
	case "return-allowance":
		return agent.ReturnAllowance{Grant: argNumber(t, d, "grant", 1), Reservation: argNumber(t, d, "reservation", 1), Open: d.HasArg("open"),
			Taken: takenAmount(t, d), Keep: budget.Amount{Tokens: int64(argNumber(t, d, "keep", 0))}}
	case "delegate":
		return agent.Delegate{Call: argValue(t, d, "call"), Child: spec.ID(argValue(t, d, "from") + "-" + argValue(t, d, "call")), Name: argValue(t, d, "agent"), Goal: d.Input, Past: pastMessages(t, d),
			HandsOff: d.HasArg("handoff"), Require: parseRequire(t, d), Journal: argValue(t, d, "journal"), Background: d.HasArg("background"), Schema: strings.Trim(argValue(t, d, "schema"), "'"), SoftMS: int64(argNumber(t, d, "soft-ms", 0)), HardMS: int64(argNumber(t, d, "hard-ms", 0))}
	case "backlog":
		return parseBacklog(t, d)
	case "send":
		return agent.Send{Call: argValue(t, d, "call"), To: argValue(t, d, "to"), Text: d.Input}
	case "steered", "messaged":
		return passedOn(t, d)
	case "propose-stop":
		results, _ := d.Arg("results")
		return agent.ProposeStop{Proposal: argNumber(t, d, "proposal", 1), Text: d.Input, Results: results.Vals, Facts: parseFacts(t, d)}
	case "park":
		return agent.Park{Query: argValue(t, d, "query"), Reason: spec.ResumeUnsafe, Question: d.Input}
	case "unpark":
		return agent.Unpark{Query: argValue(t, d, "query")}
	case "allow-rule":
		return agent.AllowRule{Rule: spec.PermissionRule{Text: d.Input, From: "answer"}}
	case "finish":
		o := spec.Outcome{Reason: spec.Reason(argValue(t, d, "reason")), Text: d.Input, Detail: argValue(t, d, "detail")}
		o.Partial = o.Reason != spec.Completed
		return agent.Finish{Outcome: o, Turns: argNumber(t, d, "turns", 1), Calls: argNumber(t, d, "calls", 0), Node: "n1", Ordinal: argNumber(t, d, "messages", 0),
			Usage:   model.Usage{Input: int64(argNumber(t, d, "tokens", 0)), Output: int64(argNumber(t, d, "output", 0))},
			ModelMS: int64(argNumber(t, d, "model-ms", 0)), ToolMS: int64(argNumber(t, d, "tool-ms", 0)), Foreign: argNumber(t, d, "foreign", 0)}
	}
	return parseCommand(t, d)
}

// parseCommand makes the events that do not come from an agent.
func parseCommand(t *testing.T, d *datadriven.TestData) supervisor.Fact {
	t.Helper()
	switch d.Cmd {
	case "report-log":
		r := agent.ReportLog{Node: cmp.Or(argValue(t, d, "node"), "n2"), Ordinal: argNumber(t, d, "messages", 0), Received: argNumber(t, d, "received", 0)}
		if reason := argValue(t, d, "ended"); reason != "" {
			r.Ended = &spec.Outcome{Reason: spec.Reason(reason), Partial: true}
		}
		return r
	case "status":
		return agent.Status{Ordinal: argNumber(t, d, "messages", 0)}
	case "released":
		return agent.Released{Rests: d.HasArg("rests")}
	case "verify-log":
		return agent.VerifyLog{Activation: "b", Reservation: argNumber(t, d, "reservation", 0)}
	case "canceled":
		return agent.Canceled{Why: d.Input, Now: d.HasArg("now"), Of: spec.ID(argValue(t, d, "of"))}
	case "policy":
		return supervisor.PolicySet{Policy: parsePolicy(t, d, d.Input), By: argValue(t, d, "by")}
	case "limits":
		return supervisor.LimitSet{Limits: parseLimits(t, d), Patch: d.HasArg("patch"), Freeze: d.HasArg("freeze"), SoftMS: int64(argNumber(t, d, "soft-ms", 0)),
			HardMS: int64(argNumber(t, d, "hard-ms", 0))}
	case "subtree":
		f := supervisor.SubtreeLimitSet{Agent: spec.ID(argValue(t, d, "of")),
			Limit: budget.Limit{Tokens: int64(argNumber(t, d, "tokens", 0)), Nano: int64(argNumber(t, d, "nano", 0)), Calls: int64(argNumber(t, d, "calls", 0))}}
		if frozen := d.HasArg("freeze"); frozen || d.HasArg("unfreeze") {
			f.Frozen = &frozen
		}
		return f
	case "narrow":
		return parseNarrowing(t, d)
	case "context":
		return parseContext(t, d)
	case "lane-started":
		f := supervisor.LaneStarted{Failed: d.Input, Reason: spec.Reason(argValue(t, d, "reason"))}
		if after := argValue(t, d, "after"); after != "" {
			f.Past = &spec.HistoryOrigin{Run: after, Messages: argNumber(t, d, "messages", 2), Bound: int64(argNumber(t, d, "bound", 0))}
		}
		return f
	case "given-up":
		return supervisor.GivenUp{Agent: spec.ID(argValue(t, d, "of")), Why: d.Input}
	case "woke":
		return agent.Woke{Timer: argValue(t, d, "timer")}
	case "resumed":
		return agent.Resumed{Activation: argValue(t, d, "activation"), Damaged: d.Input}
	}
	t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	return nil
}

// parseOpened reads a run line by line: `goal …`, `tools a b`, `agent NAME key=(a b) …`, `rule …`.
func parseOpened(t *testing.T, d *datadriven.TestData) supervisor.Opened {
	t.Helper()
	o := supervisor.Opened{Run: "r", Goal: "Compare A and B.", Root: "lead", Limits: parseLimits(t, d),
		Model: spec.Model{Name: "script/one", Price: parsePrice(t, d)}, RootTurns: argNumber(t, d, "root-turns", 0)}
	var rules []string
	for _, line := range strings.Split(d.Input, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "":
		case "goal":
			o.Goal = rest
		case "tools":
			for _, name := range strings.Fields(rest) {
				if o.Tools = append(o.Tools, model.ToolSpec{Name: name, Class: model.Read}); name == "handoff" {
					o.Tools[len(o.Tools)-1] = agent.HandoffSpec()
				}
			}
		case "agent":
			o.Definitions = append(o.Definitions, parseDefinition(t, d, rest))
		case "rule":
			rules = append(rules, rest)
		case "permit":
			parsePermit(t, &o, rest)
		case "lasts": // the soft and the hard limit of each agent
			o.Agent.SoftMS, o.Agent.HardMS = parseDurations(t, rest)
		case "parked-at-most":
			o.ParkMS, _ = parseDurations(t, rest+" "+rest)
		case "directory":
			o.Workspace, o.NodePool, _ = strings.Cut(rest, " ")
		case "conversation":
			o.Conversation, o.InLane = rest, true
		case "priority":
			o.Priority = rest
		case "fail-if":
			o.FailIf = []string{rest}
		case "caller":
			o.Caller, o.Constraints, o.Criteria, o.Trace = rest, []string{"read only"}, []string{"names a winner"}, "00-trace-01"
		default:
			t.Fatalf("%s: a run has lines goal, tools, agent, rule, lasts, directory, conversation, priority, fail-if and caller, not %q", d.Pos, word)
		}
	}
	if len(o.Definitions) == 0 {
		o.Definitions = []supervisor.Definition{{Name: "lead"}}
	}
	if len(rules) > 0 {
		o.Policy = parsePolicy(t, d, strings.Join(rules, "\n"))
	}
	return o
}

// parseDefinition reads `NAME tools=(a, b) deny=(c) offer=(d) delegates=(e) hooks=(NAME@POINT, NAME@POINT@OF) tokens=N calls=N turns=N carved=BOOL`.
func parseDefinition(t *testing.T, d *datadriven.TestData, line string) supervisor.Definition {
	t.Helper()
	name, args, err := datadriven.ParseLine(line)
	if err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	in := &datadriven.TestData{Pos: d.Pos, CmdArgs: args}
	list := func(key string) []string {
		arg, ok := in.Arg(key)
		if !ok {
			return nil
		}
		if len(arg.Vals) == 1 && arg.Vals[0] == "" {
			return []string{}
		}
		return arg.Vals
	}
	def := supervisor.Definition{Name: name, NodePool: argValue(t, in, "pool"), Tools: list("tools"), Deny: list("deny"), Offer: list("offer"), Delegates: list("delegates"), Handoffs: list("handoffs"),
		Constraints: list("constraints"), Criteria: list("criteria"), FailIf: list("fail-if")}
	def.LoopOptions.Require = parseRequire(t, in)
	def.LoopOptions.Require.Schema, def.LoopOptions.Hooks = argValue(t, in, "schema"), readHooks(list("hooks"))
	def.Limits = spec.Limits{Tokens: int64(argNumber(t, in, "tokens", 0)), Nano: int64(argNumber(t, in, "nano", 0)), Turns: argNumber(t, in, "turns", 0),
		Calls: argNumber(t, in, "calls", 0), Handoffs: argNumber(t, in, "max-handoffs", 0)}
	def.Carved = argValue(t, in, "carved") == "true"
	def.Foreign, def.ChargeNano = argValue(t, in, "foreign") == "true", int64(argNumber(t, in, "charge", 0))
	if m := argValue(t, in, "model"); m != "" {
		def.Model = &spec.Model{Name: m, Price: parsePrice(t, in)}
	}
	return def
}

func parseLimits(t *testing.T, d *datadriven.TestData) spec.RunLimits {
	t.Helper()
	return spec.RunLimits{Tokens: int64(argNumber(t, d, "tokens", 0)), Nano: int64(argNumber(t, d, "nano", 0)), Calls: int64(argNumber(t, d, "calls", 0)),
		Depth: argNumber(t, d, "depth", 0), Children: argNumber(t, d, "children", 0), Agents: argNumber(t, d, "agents", 0),
		Messages: argNumber(t, d, "messages", 0), Backlog: argNumber(t, d, "backlog", 0), LeaseMS: int64(argNumber(t, d, "lease-ms", 0))}
}

// parsePrice is price=IN/OUT in billionths of a dollar; without it it is unknown.
func parsePrice(t *testing.T, d *datadriven.TestData) budget.Price {
	t.Helper()
	in, out, ok := strings.Cut(argValue(t, d, "price"), "/")
	if !ok {
		return budget.Price{}
	}
	p := budget.Price{Known: true}
	for _, part := range []struct {
		text string
		into *int64
	}{{in, &p.Input}, {out, &p.Output}} {
		n, err := strconv.ParseInt(part.text, 10, 64)
		if err != nil {
			t.Fatalf("%s: price: %v", d.Pos, err)
		}
		*part.into = n
	}
	return p
}

func argValue(t *testing.T, d *datadriven.TestData, key string) string {
	t.Helper()
	if arg, ok := d.Arg(key); ok {
		return arg.SingleVal(t)
	}
	return ""
}

func argNumber(t *testing.T, d *datadriven.TestData, key string, without int) int {
	t.Helper()
	v := argValue(t, d, key)
	if v == "" {
		return without
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatalf("%s: %s: %v", d.Pos, key, err)
	}
	return n
}
