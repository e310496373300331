package agent_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/failure"
	"github.com/troupe-run/troupe/internal/test/scripts"
	"github.com/troupe-run/troupe/model"
)

// TestScripts plays testdata/*.txt: one event in, the state and the effects
// out. `go test ./agent -rewrite` records what the machine does; read the
// difference before you commit it. docs/scripts.md explains the directives.
//
// Every request of a script must be acceptable to a strict provider, and so
// must every history that a script leaves behind at its end.
func TestScripts(t *testing.T) {
	scripts.PlayAll(t, func(log *scripts.EventLog) scripts.PlayFunc { return (&scriptPlayer{published: log}).playLine })
}

// scriptPlayer is a script as it is played.
type scriptPlayer struct {
	state      agent.State
	n          uint64
	at         int64
	node       string // that the agent has named to its supervisor
	activation string
	notes      bool
	// verifies: the script answers each VerifyLog itself.
	verifies  bool
	published *scripts.EventLog
	call      agent.CallModel // the newest one
	// permissions are those of the next task; nil: it comes from a release without them.
	permissions []spec.Permissions
}

func (p *scriptPlayer) playLine(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if d.Cmd == "new" || d.Cmd == "start" { // both begin a new log
		*p = scriptPlayer{published: p.published, permissions: p.permissions}
	}
	if arg, ok := d.Arg("at"); ok {
		p.at = parseDuration(t, arg.SingleVal(t)).Milliseconds()
	}
	switch d.Cmd {
	case "new":
		return ""
	case "start":
		return p.startTask(t, d)
	case "notes":
		p.notes = true
		return ""
	case "permissions":
		p.permissions = parsePermissions(t, d)
		return ""
	case "transcript":
		return printMessages(p.state.History)
	case "prompt":
		return printMessages(p.state.Prompt())
	case "request":
		return printRequest(p.call, d.HasArg("tools"))
	case "fold":
		return printFold(p.state)
	case "past":
		return p.printPast(t)
	case "node":
		return p.node + "\n"
	case "repeat":
		return scripts.Repeat(t, d, p.playLine)
	}
	return p.playFact(t, d, withTaint(t, d, parseFact(t, d, p)))
}

// playFact steps the machine and checks what must hold in every script.
func (p *scriptPlayer) playFact(t *testing.T, d *datadriven.TestData, f agent.Fact) string {
	t.Helper()
	if p.activation == "" { // the first entry of every log
		p.activation = "a"
		p.n++
		p.state, _ = agent.Step(p.state, agent.Input{N: p.n, At: p.at, Activation: p.activation, Fact: agent.Resumed{Activation: "a", Node: "n1"}})
	}
	if r, ok := f.(agent.Resumed); ok {
		p.activation = r.Activation
	}
	p.n++
	before := p.state
	e := agent.Input{N: p.n, At: p.at, Activation: p.activation, Fact: f}
	e.FromSupervisor, e.Damaged = fromSupervisor(f) || d.Cmd == "answer" || d.HasArg("add") || d.HasArg("without"), d.HasArg("damaged")
	after, stepped := p.verifyLog(agent.Step(before, e))
	p.state = after
	var b strings.Builder
	b.WriteString(printState(after))
	for _, fx := range stepped.Effects {
		b.WriteString("  " + printEffect(fx) + printTaint(taintOf(fx)) + "\n")
		p.noteNode(fx)
		if call, ok := fx.(agent.CallModel); ok {
			p.call = call
			if err := strictRequest(call.Request); err != nil {
				t.Errorf("after %s: a provider refuses the request: %v\n%s", f.Kind(), err, printMessages(call.Request.Messages))
			}
		}
	}
	notes := stepped.Events
	p.published.AddEvents(t, p.n, notes)
	if p.notes {
		for _, n := range notes {
			fmt.Fprintf(&b, "  * %d %s %s\n", n.Turn, n.Kind, noteData(t, n.Data))
		}
	}
	if after.Phase == agent.Done && len(after.History) > 0 {
		if err := strictTranscript(after.Prompt()); err != nil {
			t.Errorf("after %s: the history that is left is refused: %v\n%s", f.Kind(), err, printMessages(after.History))
		}
	}
	return b.String()
}

// verifyLog answers a VerifyLog at once, as a supervisor does that has received no more than the
// log holds. A script that begins with `start verify-log` answers it itself.
func (p *scriptPlayer) verifyLog(s agent.State, out agent.Output) (agent.State, agent.Output) {
	i := slices.IndexFunc(out.Effects, func(e agent.Effect) bool { _, is := e.(agent.VerifyLog); return is })
	if p.verifies || i < 0 {
		return s, out
	}
	p.n++
	s, more := agent.Step(s, agent.Input{N: p.n, At: p.at, Activation: p.activation, FromSupervisor: true, Fact: agent.LogVerified{Activation: p.activation}})
	return s, agent.Output{Effects: slices.Concat(out.Effects[:i], more.Effects, out.Effects[i+1:]), Events: slices.Concat(out.Events, more.Events)}
}

// printState prints where the loop is.
func printState(s agent.State) string {
	var b strings.Builder
	phase := string(s.Phase)
	if phase == "" {
		phase = "(not submitted)"
	}
	fmt.Fprintf(&b, "%s turn=%d", phase, s.Turn)
	if s.Transition != "" && s.Phase != agent.Done {
		fmt.Fprintf(&b, " transition=%s", s.Transition)
	}
	if s.ClosingReason != "" && s.Phase != agent.Done {
		fmt.Fprintf(&b, " ending=%s", s.ClosingReason)
	}
	if s.Soft && s.Phase != agent.Done {
		b.WriteString(" soft")
	}
	if s.Cancel != nil && s.Phase != agent.Done {
		b.WriteString(" canceled")
		if s.Cancel.Now {
			b.WriteString("=now")
		}
	}
	for _, c := range s.Calls {
		fmt.Fprintf(&b, " %s:%s", c.ID, c.Stage)
	}
	b.WriteString(printChildren(s) + printTaint(s.Tainted))
	return b.String() + "\n"
}

func printEffect(fx agent.Effect) string {
	switch e := fx.(type) {
	case agent.Reserve:
		final := ""
		if e.Request.Final {
			final = " final"
		}
		return fmt.Sprintf("reserve %d turn=%d output=%d calls=%d%s%s", e.Reservation, e.Turn, e.Request.Output, e.Request.Calls, final, printAsk(e.Request))
	case agent.ReturnAllowance:
		return printReturn(e)
	case agent.Settle:
		return printSettle(e)
	case agent.Delegate:
		return fmt.Sprintf("delegate %s child=%s agent=%q task=%q", e.Call, e.Child, e.Name, e.Goal) + printHandoff(e) + printHistory(e) + sentOff(e)
	case agent.Steered, agent.Messaged:
		return printPassedOn(e)
	case agent.Backlog:
		return printBacklog(e)
	case agent.Send:
		return fmt.Sprintf("send %s to=%q %q", e.Call, e.To, e.Text)
	case agent.ProposeStop:
		return fmt.Sprintf("propose-stop %d %q", e.Proposal, e.Text)
	case agent.Park:
		return printPark(e)
	case agent.Unpark:
		return "unpark " + e.Query
	case agent.AllowRule:
		return "allow-rule " + e.Rule.Text
	case agent.Finish:
		return printFinish(e)
	case agent.ReportLog:
		return "report-log node=" + e.Node
	case agent.Status:
		return fmt.Sprintf("status messages=%d", e.Ordinal)
	case agent.VerifyLog:
		return fmt.Sprintf("verify-log activation=%s reservation=%d", e.Activation, e.Reservation)
	case agent.CallModel:
		tools := ""
		if e.Request.NoTools {
			tools = " no-tools"
		}
		if e.Request.Choice != "" {
			tools += " choice=" + e.Request.Choice
		}
		if e.Request.Schema != "" {
			tools += " schema"
		}
		return fmt.Sprintf("call-model %d turn=%d messages=%d output=%d%s%s", e.Reservation, e.Turn, len(e.Request.Messages), e.Request.MaxOutput, tools, printModel(e.Model))
	case agent.Begin:
		return fmt.Sprintf("begin %s attempt=%d", e.Call, e.Attempt)
	case agent.CallTool:
		return fmt.Sprintf("call-tool %s attempt=%d %s %s", e.Call, e.Attempt, e.Name, e.Args)
	case agent.AbortModel:
		return fmt.Sprintf("abort-model %d", e.Reservation)
	case agent.AbortTool:
		return "abort-tool " + e.Call
	case agent.RunHooks:
		return runHooks(e)
	case agent.AbortHooks:
		return "abort-hooks " + e.ID
	case agent.AwaitThrottle:
		return fmt.Sprintf("await-throttle %d%s", e.Pause, printModel(e.Model))
	case agent.LeaveThrottle:
		return "leave-throttle"
	case agent.Arm:
		return fmt.Sprintf("arm %s at=%s", e.Timer, time.Duration(e.Due)*time.Millisecond)
	}
	panic(fmt.Sprintf("an effect that no script can show: %T", fx))
}

func printSettle(e agent.Settle) string {
	if e.Under != 0 {
		granted := e
		granted.Under = 0
		return fmt.Sprintf("%s under=%d taken=%d", printSettle(granted), e.Under, e.Taken.Tokens)
	}
	switch {
	case e.Unused:
		return fmt.Sprintf("settle %d unused", e.Reservation)
	case e.Lost:
		return fmt.Sprintf("settle %d lost", e.Reservation)
	case e.Used.Zero():
		return fmt.Sprintf("settle %d nothing", e.Reservation)
	}
	return fmt.Sprintf("settle %d tokens=%d calls=%d", e.Reservation, e.Used.Tokens, e.Used.Calls)
}

func printFinish(e agent.Finish) string {
	partial, detail := "", ""
	if e.Outcome.Partial {
		partial = " partial"
	}
	if e.Outcome.Detail != "" {
		detail = fmt.Sprintf(" (%s)", e.Outcome.Detail)
	}
	return fmt.Sprintf("finish %s%s turns=%d calls=%d tokens=%d %s%s", e.Outcome.Reason, partial, e.Turns, e.Calls, e.Usage.Total(), quoteMiddle(e.Outcome.Text), detail)
}

func printMessages(list []model.Message) string {
	var b strings.Builder
	for _, m := range list {
		dead := ""
		if m.Tombstone {
			dead = " (tombstone)"
		}
		if m.Role == model.ToolRole {
			for _, r := range m.Results {
				fmt.Fprintf(&b, "tool%s %s error=%t %s\n", dead, r.Call, r.Error, quoteMiddle(r.Text))
			}
			continue
		}
		fmt.Fprintf(&b, "%s%s %s%s", m.Role, dead, quoteMiddle(m.Text), printMedia(m))
		for _, c := range m.Calls {
			fmt.Fprintf(&b, " [%s %s %s]", c.ID, c.Name, c.Args)
		}
		if m.Interrupted {
			b.WriteString(" (interrupted)")
		}
		if m.Usage != nil {
			fmt.Fprintf(&b, " usage=%d+%d", m.Usage.Prompt(), m.Usage.Output)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// parseFact makes the event of a line.
func parseFact(t *testing.T, d *datadriven.TestData, p *scriptPlayer) agent.Fact {
	t.Helper()
	switch d.Cmd {
	case "submitted":
		task := parseTask(t, d)
		task.Permissions, task.Workspace = p.permissions, "/work"
		if p.permissions == nil {
			task.Workspace = ""
		}
		return agent.Submitted{Task: task}
	case "granted":
		return parseGranted(t, d, p.state)
	case "denied":
		return agent.Denied{Reservation: argumentNumber(t, d, "reservation", p.state.Reservation), Why: spec.Reason(argumentValue(t, d, "why")), Detail: d.Input}
	case "replied":
		return agent.Replied{Reservation: argumentNumber(t, d, "reservation", p.state.Reservation), Reply: parseReply(t, d), Dropped: argumentNumber(t, d, "dropped", 0)}
	case "failed":
		f := agent.Failed{Reservation: argumentNumber(t, d, "reservation", p.state.Reservation), Class: model.ErrorClass(argumentValue(t, d, "class")),
			Unbilled: d.HasArg("unbilled"), Detail: "the provider's words", Reply: parseReply(t, d)}
		f.Reply.UsageKnown = d.HasArg("in")
		if after := argumentValue(t, d, "after"); after != "" {
			f.AfterMS = parseDuration(t, after).Milliseconds()
		}
		return f
	case "started":
		f := agent.Started{Call: firstArgument(d), Attempt: argumentNumber(t, d, "attempt", 1), Activation: p.activation}
		if v := argumentValue(t, d, "activation"); v != "" {
			f.Activation = v
		}
		return f
	case "returned":
		transient := d.HasArg("transient")
		return agent.Returned{Call: runningCall(d, p.state), Attempt: argumentNumber(t, d, "attempt", 1), Text: longText(t, d, d.Input), Error: d.HasArg("error") || d.HasArg("killed") || transient,
			Killed: d.HasArg("killed"), Transient: transient, Ref: argumentValue(t, d, "ref"), Size: int64(argumentNumber(t, d, "size", 0))}
	case "answer": // of a child, from the supervisor
		return agent.Returned{Call: firstArgument(d), Text: d.Input, Error: d.HasArg("error"), Live: d.HasArg("live"), WorkedMS: workedMS(t, d), Outcome: handedOutcome(t, d)}
	}
	return parseControl(t, d, p)
}

// workedMS is how long a child was at work, as its answer says.
func workedMS(t *testing.T, d *datadriven.TestData) int64 {
	t.Helper()
	if worked := argumentValue(t, d, "worked"); worked != "" {
		return parseDuration(t, worked).Milliseconds()
	}
	return 0
}

// restDue is when a log at rest wants to be woken, as `due=15m`.
func restDue(t *testing.T, d *datadriven.TestData) int64 {
	t.Helper()
	if at := argumentValue(t, d, "due"); at != "" {
		return parseDuration(t, at).Milliseconds()
	}
	return 0
}

// fromSupervisor lists the facts that an agent hears from its supervisor.
func fromSupervisor(f agent.Fact) bool {
	switch f.(type) {
	case agent.Submitted, agent.Recalled, agent.Granted, agent.Denied, agent.AllowanceRecalled, agent.StopAllowed, agent.StopVetoed, agent.Messaged,
		agent.StatusAsked, agent.TimeLimitSet, agent.LogVerified, agent.RuleAllowed, agent.PermissionsNarrowed:
		return true
	}
	return false
}

// parseControl makes the events that are not about models and tools.
func parseControl(t *testing.T, d *datadriven.TestData, p *scriptPlayer) agent.Fact {
	t.Helper()
	switch d.Cmd {
	case "stop-allowed":
		return agent.StopAllowed{Proposal: argumentNumber(t, d, "proposal", p.state.Proposal)}
	case "stop-vetoed":
		return agent.StopVetoed{Proposal: argumentNumber(t, d, "proposal", p.state.Proposal), Why: d.Input, Final: d.HasArg("final")}
	case "allowance-recalled":
		return agent.AllowanceRecalled{Grant: argumentNumber(t, d, "grant", p.state.Allowance.Grant)}
	case "canceled":
		return agent.Canceled{Why: d.Input, Now: d.HasArg("now"), As: spec.Reason(argumentValue(t, d, "as"))}
	case "steered":
		return agent.Steered{Text: d.Input, Now: d.HasArg("now")}
	case "messaged": // by an agent: `messaged ID name=NAME call=CALL`
		return agent.Messaged{From: spec.ID(firstArgument(d)), Name: argumentValue(t, d, "name"), Call: argumentValue(t, d, "call"), Text: d.Input, Error: d.HasArg("error"),
			WorkedMS: workedMS(t, d)}
	case "status-asked":
		return agent.StatusAsked{Activation: argumentValue(t, d, "activation"), Ordinal: argumentNumber(t, d, "ordinal", 0)}
	case "time-limit-set":
		return agent.TimeLimitSet{SoftMS: parseDuration(t, argumentValue(t, d, "soft")).Milliseconds(), HardMS: parseDuration(t, argumentValue(t, d, "hard")).Milliseconds()}
	case "answered":
		return answeredFact(t, d, p.state)
	case "rule-allowed":
		return agent.RuleAllowed{Rule: spec.PermissionRule{Text: d.Input, From: "answer to another agent", Approvals: argumentNumber(t, d, "approvals", 0)}}
	case "permissions-narrowed":
		return agent.PermissionsNarrowed{Rights: parseNarrowing(t, d), By: "ann"}
	case "throttled":
		f := agent.Throttled{Reservation: argumentNumber(t, d, "reservation", p.state.Reservation), Why: d.Input}
		if after := argumentValue(t, d, "after"); after != "" {
			f.AfterMS = parseDuration(t, after).Milliseconds()
		}
		return f
	case "admitted":
		return agent.Admitted{Pause: argumentNumber(t, d, "pause", p.state.ThrottleWait.N)}
	case "woke":
		return agent.Woke{Timer: firstArgument(d)}
	case "recalled":
		return parseRecalled(t, d)
	case "log-verified": // for the current activation, or another one
		return agent.LogVerified{Activation: cmp.Or(argumentValue(t, d, "activation"), p.activation)}
	case "resumed":
		return parseResumed(t, d)
	case "forked":
		return agent.Forked{Of: firstArgument(d), Note: d.Input, First: d.HasArg("first")}
	case "model-set":
		return agent.ModelSet{Model: spec.Model{Name: firstArgument(d), Window: int64(argumentNumber(t, d, "window", 0)), Price: budget.Price{Known: true, Input: int64(argumentNumber(t, d, "price", 0)), Output: int64(argumentNumber(t, d, "price", 0))}}}
	case "context-set":
		return parseContextSet(t, d)
	case "released":
		return agent.Released{Rests: d.HasArg("rests"), Due: restDue(t, d)}
	case "checkpoint":
		return agent.Checkpoint{}
	case "hooked":
		return hookedFact(t, d)
	}
	t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	return nil
}

// parseTask makes a task: the goal is the input, limits and tools are arguments.
func parseTask(t *testing.T, d *datadriven.TestData) spec.Task {
	t.Helper()
	task := spec.Task{Run: "r", ID: spec.Root, Name: "lead", Goal: d.Input, System: "You are careful.",
		Model: spec.Model{Name: "script/one"}}
	if d.HasArg("failed-mark") {
		task.System += " Begin with " + spec.FailedMark + " if you have failed."
	}
	if d.HasArg("fail-if") {
		task.FailIf = []string{"a test fails", "the branch is not clean"}
		task.System += "\n" + failure.Prompt(task.FailIf, "")
	}
	if d.HasArg("child") {
		task.ID, task.Parent, task.Depth = "root-1-0", spec.Root, 1
	}
	if arg, ok := d.Arg("tools"); ok {
		for _, v := range arg.Vals {
			name, class, _ := strings.Cut(v, ":")
			task.Tools = append(task.Tools, model.ToolSpec{Name: name, Class: model.Class(class), Schema: toolSchema(name)})
		}
	}
	if arg, ok := d.Arg("foreign"); ok {
		task.Foreign = arg.Vals
	}
	if arg, ok := d.Arg("members"); ok {
		task.ForeignMembers = arg.Vals
	}
	task.Hashes, task.Media = parseVersions(d, "hashes"), parseMedia(t, d)
	task.LoopOptions.Hooks, task.LoopOptions.DeclareFailure = parseHooks(t, d), true
	task.LoopOptions.AskPeople, task.LoopOptions.Unattended, task.LoopOptions.Obstacles = d.HasArg("ask-people"), d.HasArg("unattended"), d.HasArg("obstacles")
	if patience := argumentValue(t, d, "patience"); patience != "" {
		task.LoopOptions.PatienceMS = parseDuration(t, patience).Milliseconds()
	}
	if question := argumentValue(t, d, "question"); question != "" {
		task.LoopOptions.QuestionMS = parseDuration(t, question).Milliseconds()
	}
	task.LoopOptions.LimitNotes = spec.LimitNotes{Near: argumentNumber(t, d, "near", 0), Last: argumentNumber(t, d, "last", 0)}
	l := &task.Limits
	for key, into := range map[string]*int{"turns": &l.Turns, "calls": &l.Calls, "reply-calls": &l.ReplyCalls, "parallel": &l.Parallel,
		"children": &l.Children, "malformed": &l.Malformed, "cuts": &l.Cuts, "retries": &l.Retries, "vetoes": &l.Vetoes} {
		*into = argumentNumber(t, d, key, 0)
	}
	parseWatch(t, d, &task)
	parseContext(t, d, &task)
	parseGoals(t, d, &task)
	return task
}

// toolSchema of the tools in scripts: they all want a q, a delegate wants a task.
func toolSchema(name string) string {
	if name == "delegate" {
		return agent.DelegateSpec("", true).Schema
	}
	if name == "handoff" {
		return agent.HandoffSpec().Schema
	}
	if name == "send_message" {
		return agent.SendSpec().Schema
	}
	if name == "declare_failure" {
		return agent.DeclareSpec().Schema
	}
	if i := slices.IndexFunc(agent.BacklogTools(), func(t model.ToolSpec) bool { return t.Name == name }); i >= 0 {
		return agent.BacklogTools()[i].Schema
	}
	if name == "ask_human" {
		return agent.AskSpec().Schema
	}
	for arg, tools := range map[string]string{"command": " shell ", "path": " read_file write_file edit_file grep "} {
		if strings.Contains(tools, " "+name+" ") {
			return `{"type":"object","properties":{"` + arg + `":{"type":"string"}},"required":["` + arg + `"]}`
		}
	}
	if name == "skill" {
		return `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	}
	return `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}`
}

func parseGranted(t *testing.T, d *datadriven.TestData, s agent.State) agent.Granted {
	t.Helper()
	g := agent.Granted{Reservation: argumentNumber(t, d, "reservation", s.Reservation), Output: int64(argumentNumber(t, d, "output", 4096)), Calls: int64(argumentNumber(t, d, "calls", 64)),
		Allowance: parseAllowance(t, d), Left: parseRunLeft(t, d)}
	if s.ClosingReason != "" {
		g.Closing, g.Calls, g.Output = true, 0, 768
	}
	if why, ok := d.Arg("closing"); ok {
		g.Closing, g.Calls, g.Output, g.Why = true, 0, 768, spec.Reason(why.SingleVal(t))
	}
	return g
}

// parseReply reads what a model said, line by line: `say TEXT`, `call NAME ARGS`,
// `cut NAME ARGS` for a call that was cut off, `sign DATA` for opaque data.
func parseReply(t *testing.T, d *datadriven.TestData) model.Reply {
	t.Helper()
	r := model.Reply{Stop: model.Stop(argumentValue(t, d, "stop")), UsageKnown: !d.HasArg("usage-unknown"),
		Usage: model.Usage{Input: int64(argumentNumber(t, d, "in", 100)), Output: int64(argumentNumber(t, d, "out", 20))}}
	if d.Cmd == "failed" && !d.HasArg("in") {
		r.Usage = model.Usage{}
	}
	for _, line := range strings.Split(d.Input, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "":
		case "say": // in quotes where spaces at the end matter
			if text, err := strconv.Unquote(rest); err == nil {
				rest = text
			}
			r.Message.Text += rest
		case "call", "cut":
			name, args, _ := strings.Cut(rest, " ")
			r.Message.Calls = append(r.Message.Calls, model.ToolCall{Name: name, Args: args, Cut: word == "cut"})
		case "sign":
			r.Message.Opaque = append(r.Message.Opaque, model.Opaque{Issuer: cmp.Or(argumentValue(t, d, "by"), "script/one"), Kind: "signature", Data: []byte(rest)})
		default:
			t.Fatalf("%s: a reply has lines say, call, cut and sign, not %q", d.Pos, word)
		}
	}
	return r
}

// firstArgument is the argument of a line that has no name: a call, a query, a timer.
func firstArgument(d *datadriven.TestData) string {
	if len(d.CmdArgs) == 0 || len(d.CmdArgs[0].Vals) > 0 {
		return ""
	}
	return d.CmdArgs[0].Key
}

func argumentValue(t *testing.T, d *datadriven.TestData, key string) string {
	t.Helper()
	if arg, ok := d.Arg(key); ok {
		return arg.SingleVal(t)
	}
	return ""
}

func argumentNumber(t *testing.T, d *datadriven.TestData, key string, without int) int {
	t.Helper()
	v := argumentValue(t, d, key)
	if v == "" {
		return without
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatalf("%s: %s: %v", d.Pos, key, err)
	}
	return n
}

func parseDuration(t *testing.T, text string) time.Duration {
	t.Helper()
	v, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
