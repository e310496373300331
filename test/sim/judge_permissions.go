package sim

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// permissionJudge decides about calls by its own reading of the rules: the definitions of the run, from the agent up to
// the root. It knows what people approved.
type permissionJudge struct {
	*watchedAgent
	asked    map[string]askedCall       // by query
	approved []approval                 // by people
	people   map[string]map[string]bool // the people who have approved each query
	taint    *taintJudge
	narrowed []spec.Narrowing // what operators have taken from the agent, as its own log says
	line     []string         // the lineage, once it is known: the log of an ancestor may be damaged later
}

// askedCall is what a question was about when it was asked.
type askedCall struct {
	call, tool, args, digest string
	due                      int64
	people                   int // who must approve it
}

// approval is what a person has answered to a question about a call, or the people whom it needs.
type approval struct {
	askedCall
	at     int64 // when the answer was read
	starts int   // the first attempt that has begun by it; 0: none
}

// isLate reports whether the question had expired before.
func (a approval) isLate() bool { return a.due > 0 && a.at >= a.due }

// lineage are the names of an agent and its ancestors.
func (j *permissionJudge) lineage() (names []string) {
	if j.line != nil {
		return j.line
	}
	for id := j.actor.id; id != ""; {
		name, parent := j.nameOf(id)
		if name == "" {
			return names
		}
		names, id = append(names, name), parent
	}
	j.line = names
	return names
}

// nameOf is the name of an agent, and its parent: by its own log or, if that has lost its beginning, by the run's.
func (j *permissionJudge) nameOf(id spec.ID) (name string, parent spec.ID) {
	for _, a := range j.population.actors {
		if a.id == id && a.shadow.agent != nil && a.shadow.agent.State.Task.Name != "" {
			task := a.shadow.agent.State.Task
			return task.Name, task.Parent
		}
	}
	m, _ := j.population.super.shadow.super.State.Member(id)
	return m.Name, m.Parent
}

// decide is the strictest of what the rules of the agent and of its ancestors say about a tool.
func (j *permissionJudge) decide(tool string, class model.Class) spec.HookDecision {
	o := j.population.super.shadow.super.State.Run
	if o.Permissions == nil {
		return spec.HookPass
	}
	strictest, asksNobody := j.decideNarrowed(tool, class)
	if strictest == spec.HookDeny {
		return strictest
	}
	for _, name := range j.lineage() {
		mode, rules := o.Permissions.Mode, []spec.Permissions{*o.Permissions}
		for _, d := range o.Definitions {
			if d.Name == name && d.Permissions != nil {
				rules = append(rules, *d.Permissions)
				if own := d.Permissions.Mode; own != "" && (mode == "" || slices.Index(spec.PermissionModes, own) < slices.Index(spec.PermissionModes, mode)) {
					mode = own
				}
			}
		}
		names := func(list func(spec.Permissions) []spec.PermissionRule) bool {
			return slices.ContainsFunc(rules, func(p spec.Permissions) bool {
				return slices.ContainsFunc(list(p), func(r spec.PermissionRule) bool { return r.Text == tool })
			})
		}
		changes := class != model.Read && tool != "ask_human"
		tainted := j.taint.decide(tool, strictestTaint(rules), rules)
		asks := names(func(p spec.Permissions) []spec.PermissionRule { return p.Ask }) || class == model.Irreversible || tainted == spec.HookAsk
		switch {
		case tainted == spec.HookDeny:
			return spec.HookDeny
		case names(func(p spec.Permissions) []spec.PermissionRule { return p.Deny }), mode == spec.ModePlan && changes, (mode == spec.ModeDontAsk || asksNobody) && asks:
			return spec.HookDeny
		case asks:
			strictest = spec.HookAsk
		}
	}
	return strictest
}

// isUnattended reports whether the agent, or one above it, is unattended.
func (j *permissionJudge) isUnattended() bool {
	o := j.population.super.shadow.super.State.Run
	return o.LoopOptions.Unattended || slices.ContainsFunc(o.Definitions, func(d supervisor.Definition) bool {
		return d.LoopOptions.Unattended && slices.Contains(j.lineage(), d.Name)
	})
}

// noteQuestion keeps what a question is about.
func (j *permissionJudge) noteQuestion(after *agent.State, out activation.Stepped) {
	for _, m := range out.Messages {
		var q agent.Park
		if m.Kind != q.Kind() || mailbox.Unmarshal(m.Body, &q) != nil || q.Call == "" {
			continue
		}
		for _, c := range after.Calls {
			if c.ID == q.Call {
				people := 1
				if c.Name != "ask_human" {
					people = j.quorum()
				}
				j.asked[q.Query] = askedCall{q.Call, c.Name, c.Args, q.Digest, q.Due, people}
			}
		}
	}
}

// quorum is how many people must approve a call of the agent: the most that it or an ancestor wants.
func (j *permissionJudge) quorum() int {
	o := j.population.super.shadow.super.State.Run
	if o.Permissions == nil {
		return 1
	}
	most := max(1, o.Permissions.Approvals)
	for _, name := range j.lineage() {
		for _, d := range o.Definitions {
			if d.Name == name && d.Permissions != nil {
				most = max(most, d.Permissions.Approvals)
			}
		}
	}
	return most
}

// isAccepted reports whether an answer counts: it is about the call that is asked about, in time, and the last one of
// the people who must approve.
func (j *permissionJudge) isAccepted(e agent.Answered, now int64) bool {
	q := j.asked[e.Query]
	return j.isValid(e, now) && (e.Decision != spec.Approve || q.people < 2 || j.approvers(e) >= q.people)
}

// isValid reports whether an answer is about the call that is asked about, and in time.
func (j *permissionJudge) isValid(e agent.Answered, now int64) bool {
	q := j.asked[e.Query]
	return (e.Digest == "" || e.Digest == q.digest) && (q.due == 0 || now < q.due)
}

// approvers counts the people who have approved what a query is about, with the one of an answer.
func (j *permissionJudge) approvers(e agent.Answered) int {
	n, name := len(j.people[e.Query]), strings.ToLower(e.By)
	if name != "" && !j.people[e.Query][name] {
		n++
	}
	return n
}

// inTime is the answer, or a denial if it comes too late.
func (j *permissionJudge) inTime(e agent.Answered, now int64) agent.Answered {
	if !j.isAccepted(e, now) {
		e.Decision = "deny"
	}
	return e
}

// noteFact keeps what people say, and checks what the clock says.
func (j *permissionJudge) noteFact(before, after *agent.State, f activation.Fact) {
	j.taint.noteFact(before, after, f)
	switch f.Kind {
	case "submitted":
		j.lineage()
		j.narrowed = narrowingsOf(after.Task)
	case "permissions_narrowed":
		j.noteNarrowing(before, decodeFact[agent.PermissionsNarrowed](j.population, f))
	case "answered":
		j.noteAnswer(before, after, decodeFact[agent.Answered](j.population, f))
	case "woke":
		j.checkExpiry(before, after)
	case "replied":
		if slices.ContainsFunc(after.Calls, func(c agent.Call) bool {
			return c.Stage == agent.Ended && j.decide(c.Name, c.Class) == spec.HookDeny && c.Result.Error
		}) {
			j.reach.hit(placeRuleDenied)
		}
	}
}

// hooksOf are the hooks of a task at a point, with the one that asks about a call for the permissions.
func (j *callJudge) hooksOf(st *agent.State, p spec.HookPoint, tool string) []spec.Hook {
	at := hooksAt(st, p, tool)
	if p == spec.HookPreTool && j.permits.decide(tool, classOf(st, tool)) == spec.HookAsk {
		at = append(slices.Clip(at), spec.Hook{Name: spec.PermissionHook, Point: p, Failing: spec.HookDeny})
	}
	return at
}

// withoutQuery are hooks without what the loop wants to know of the node.
func withoutQuery(hooks []spec.Hook) []spec.Hook {
	hooks = slices.Clone(hooks)
	for i := range hooks {
		if hooks[i].Name == spec.PermissionHook {
			hooks[i].Rules = ""
		}
	}
	return hooks
}

// noteAnswer keeps what a person approves. An answer about other arguments changes nothing.
func (j *permissionJudge) noteAnswer(before, after *agent.State, e agent.Answered) {
	if !asksPerson(before) || before.Suspended.Question.Query != e.Query {
		return
	}
	q := j.asked[e.Query]
	if e.Digest != "" && e.Digest != q.digest {
		j.reach.hit(placeAnswerRefused)
	}
	if e.Digest != "" && e.Digest != q.digest && after.Suspended.Question.Query != e.Query {
		j.fail(approvalOnce, "%s: an answer about other arguments than those of %s counts", j.actor.id, q.call)
	}
	if e.Decision == spec.Approve && (e.Digest == "" || e.Digest == q.digest) && (q.people < 2 || j.approvers(e) >= q.people) {
		j.approved = append(j.approved, approval{askedCall: q, at: after.Now})
	}
	if e.Decision != spec.Approve || !j.isValid(e, after.Now) {
		return
	}
	if j.isAccepted(e, after.Now) && q.people > 1 {
		j.reach.hit(placeTwoApproved)
	}
	if j.people[e.Query] == nil {
		j.people[e.Query] = map[string]bool{}
	}
	if e.By != "" {
		j.people[e.Query][strings.ToLower(e.By)] = true
	}
}

// checkExpiry checks that the clock answers a question only when its time is over.
func (j *permissionJudge) checkExpiry(before, after *agent.State) {
	q := before.Suspended.Question
	if !asksPerson(before) || q.Query == after.Suspended.Question.Query {
		return
	}
	j.reach.hit(placeQuestionExpired)
	if q.Due == 0 || after.Now < q.Due {
		j.fail(questionsExpireInTime, "%s: the question %s has expired too early", j.actor.id, q.Query)
	}
}

// checkBegin checks that a call that begins is one that the rules allow, or that a person
// approved with these arguments.
func (j *permissionJudge) checkBegin(after *agent.State, c agent.Call) {
	switch class := classOf(after, c.Name); j.decide(c.Name, class) {
	case spec.HookDeny:
		j.fail(deniedNeverRuns, "%s begins %s (%s), which a rule denies", j.actor.id, c.ID, c.Name)
	case spec.HookAsk:
		j.checkApproval(c, class)
		j.reach.hit(placeApprovedCall)
	}
}

// checkApproval checks that a call begins by an approval that is its own, and that an attempt of a side effect is the only
// one that its approval starts.
func (j *permissionJudge) checkApproval(c agent.Call, class model.Class) {
	i := len(j.approved) - 1
	for i >= 0 && j.approved[i].call != c.ID {
		i--
	}
	if i < 0 {
		for _, a := range j.approved {
			if a.tool == c.Name && a.starts > 0 {
				j.fail(approvalOnce, "%s begins %s (%s), and the only approval of this tool has started %s",
					j.actor.id, c.ID, c.Name, a.call)
			}
		}
		j.fail(approvalFirst, "%s begins %s (%s), and nobody has approved it", j.actor.id, c.ID, c.Name)
	}
	a, attempt := &j.approved[i], max(c.Attempt, 1)
	again := a.starts > 0 && a.starts != attempt && (class == model.Effect || class == model.Irreversible)
	switch {
	case a.isLate():
		j.fail(approvalOnce, "%s begins %s (%s) by an approval at %d, and its question expired at %d",
			j.actor.id, c.ID, c.Name, a.at, a.due)
	case a.args != c.Args:
		j.fail(approvalOnce, "%s begins %s (%s) with %s, and a person approved %q",
			j.actor.id, c.ID, c.Name, c.Args, a.args)
	case again:
		j.fail(approvalOnce, "%s begins attempt %d of %s (%s), and its approval has started attempt %d",
			j.actor.id, attempt, c.ID, c.Name, a.starts)
	}
	if a.starts == 0 {
		a.starts = attempt
	}
}

// classOf is the class of a tool as the agent was offered it.
func classOf(after *agent.State, tool string) model.Class {
	for _, t := range after.Task.Tools {
		if t.Name == tool {
			return t.Class
		}
	}
	return model.Read
}
