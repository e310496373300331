package main

// Edit replaces one text, which must occur exactly once, in one file.
type Edit struct{ File, Old, New string }

// Mutant is the program without one of its rules.
type Mutant struct {
	Name  string
	Rule  string // what it drops, with the rule of the protocol
	Edits []Edit
}

const (
	lifeGo     = "actors/life/life.go"
	claimGo    = "actors/life/claim.go"
	outboxGo   = "actors/life/outbox.go"
	turnGo     = "agent/turn.go"
	dispatchGo = "agent/dispatch.go"
	resumeGo   = "agent/resume.go"
	driftGo    = "agent/drift.go"
	cancelGo   = "agent/cancel.go"
	stopGo     = "agent/stop.go"
	checkGo    = "agent/check.go"
	recoverGo  = "agent/recover.go"
	promptGo   = "agent/prompt.go"
	timerGo    = "agent/timer.go"
	limitGo    = "agent/limit.go"
	goalGo     = "agent/goal.go"
	hooksGo    = "agent/hooks.go"
	gateGo     = "agent/gate.go"
	guardGo    = "agent/guard.go"
	verdictGo  = "agent/verdict.go"
	retryGo    = "agent/retry.go"
	fallbackGo = "agent/fallback.go"
	breakerGo  = "agent/breaker.go"
	askGo      = "agent/ask.go"
	compactGo  = "agent/compact.go"
	foldGo     = "agent/fold.go"
	ladderGo   = "agent/ladder.go"
	journalGo  = "agent/journal.go"
	stateGo    = "agent/state.go"
	reaskGo    = "agent/reask.go"
	poolGo     = "budget/pool.go"
	priceGo    = "budget/price.go"
	moneyGo    = "supervisor/money.go"
	membersGo  = "supervisor/members.go"
	rightsGo   = "supervisor/rights.go"
	superGo    = "supervisor/cancel.go"
	shellGo    = "internal/sim/shell.go"
)

// ofLives are the rules of lives, letters and logs.
var ofLives = []Mutant{
	{"acts-before-own-resumed", "P1: a shell only folds until it has read its own Resumed", []Edit{
		{lifeGo, "	if l.Phase != Alive {\n		out.World = nil\n	}\n", ""}}},
	{"restart-reuses-its-start", "P1: a restart under one lease is another start", []Edit{
		{shellGo, "	a.starts++\n	s.launch(a)", "	s.launch(a)\n	last := a.shells[len(a.shells)-1]\n	last.start, last.life.Start = \"again\"+string(a.id), \"again\"+string(a.id)"},
		{claimGo, "	mine := e.Start == l.Start && l.Start != \"\"\n", "	mine := e.Start == l.Start && l.Start != \"\"\n	if mine && e.Epoch == l.force && l.Phase == Folding {\n		l.Phase, out.Came = Alive, true\n		return nil\n	}\n"}}},
	{"later-resumed-is-not-heeded", "P1: one that reads a later Resumed falls silent", []Edit{
		{claimGo, "		l.Phase = Silent\n		return nil", "		l.forcer = l.Start"}}},
	{"equal-epoch-comes-into-force", "P1: a claim must be higher than the one in force", []Edit{
		{claimGo, "	if !e.Epoch.Higher(l.force) {", "	if l.force.Higher(e.Epoch) {"}}},
	{"superseded-entries-count", "P1, P8: a superseded life decides nothing", []Edit{
		{lifeGo, "!inForce && item.Kind != \"returned\"", "false"}}},
	{"zombie-started-obeyed", "P2: a Started counts only under the epoch in force", []Edit{
		{lifeGo, "!inForce && item.Kind != \"returned\"", "!inForce && item.Kind != \"returned\" && item.Kind != \"started\""},
		{dispatchGo, "s.Phase != Acting || f.Life != s.Life", "s.Phase != Acting"}}},
	{"evidence-of-silent-dropped", "P4: what a tool returned counts whoever posts it", []Edit{
		{lifeGo, "!inForce && item.Kind != \"returned\"", "!inForce"}}},
	{"higher-epoch-not-reclaimed", "P5: a higher epoch in the log is claimed over", []Edit{
		{claimGo, "			out.Reclaim = true\n", ""}}},
	{"watermark-skipped", "P6: what is not above the watermark was read before", []Edit{
		{lifeGo, "!damaged && !fresh && !halts", "!damaged && false"}}},
	{"watermark-without-index", "P6: letters of one entry are told apart", []Edit{
		{lifeGo, "return n > m.n || n == m.n && i > m.i", "return n > m.n"}}},
	{"gives-up-sending", "P6: the same bytes again until acknowledged", []Edit{
		{"internal/sim/schedule.go", "		s.note(\"append fails, to be tried again: %s\", f.name)\n", "		f.acked = true\n"}}},
	{"two-in-flight", "P6: one message in flight to one receiver", []Edit{
		{outboxGo, "if !l.listed && l.flying == 0 && len(l.queue) > 0", "if !l.listed && len(l.queue) > 0"}}},
	{"forgotten-lane-listed-twice", "P6: a lane is ready once", []Edit{
		{outboxGo, "if len(l.queue) == 0 && !l.listed {", "if len(l.queue) == 0 {"}}},
	{"floor-too-high", "P12: the floor is the acknowledged prefix", []Edit{
		{outboxGo, "func (o *Outbox) Floor() uint64 { return o.floor }", "func (o *Outbox) Floor() uint64 {\n	if len(o.open) > 0 {\n		return o.open[0].n\n	}\n	return o.floor\n}"}}},
	{"unsent-letters-forgotten", "P1, P12: letters above the floor go out after a takeover", []Edit{
		{claimGo, "		l.Phase, out.Came = Alive, true\n", "		l.Phase, out.Came = Alive, true\n		l.Outbox = Outbox{}\n"}}},
	{"hash-check-dropped", "P13: a wrong hash is damage", []Edit{
		{claimGo, "		if counts {\n			out.Err = fmt.Errorf(\"%w: entry", "		if false {\n			out.Err = fmt.Errorf(\"%w: entry"}}},
	{"hash-of-lost-life-only-logged", "P13: an entry of a life whose Resumed is gone counts", []Edit{
		{lifeGo, " || e.Epoch.Higher(l.force), out)", ", out)"}}},
	{"back-check-dropped", "P13: a log shorter than what was heard is damage", []Edit{
		{lifeGo, "damaged := life != \"\" && !heard && !fresh", "damaged := life != \"\" && !heard && !fresh && false"}}},
	{"back-check-off-by-one", "P13: a watermark met exactly is damage too", []Edit{
		{lifeGo, "!heard && !fresh", "!heard && item.N < m.n"}}},
	{"begins-before-vouched", "P13: no side effect begins before the supervisor has vouched for the log", []Edit{
		{"agent/vouch.go", "case !s.Task.Manners.Vouch || s.Vouch.Answered == s.Life:", "case s.Life != \"\":"}}},
	{"vouched-for-another-life", "P13: vouched is one life of a log", []Edit{
		{"agent/vouch.go", "s.Vouch.Answered == s.Life:\n", "s.Vouch.Answered != \"\":\n"}}},
	{"vouched-begins-nothing", "P13: what has waited for the answer begins", []Edit{
		{"agent/vouch.go", "		if c.Stage == Starting {", "		if c.Stage == Starting && false {"}}},
	{"vouch-sent-each-time", "P13: an agent asks once in a life", []Edit{
		{"agent/vouch.go", "case s.Vouch.Asked == s.Life:", "case false:"}}},
	{"back-sent-again-is-damage", "P13: a Back sent again is no damage", []Edit{
		{lifeGo, "damaged := life != \"\" && !heard && !fresh", "damaged := life != \"\" && item.N < m.n"}}},
	{"closed-log-is-mute", "P25: a closed actor repeats its last Finish", []Edit{
		{"actors/life/ended.go", "		out.Repeat = []Letter{*l.last}\n	default:", "	default:"}}},
	{"members-are-not-asked", "P25: a supervisor that follows a crash asks its members", []Edit{
		{"supervisor/status.go", "	case now || s.Now >= s.askDue():\n", "	case false:\n"}, {"supervisor/status.go", "	return s, append(fx, Arm{Timer: askTimer, Due: s.AskDue})", "	return s, fx"}}},
	{"lost-messages-are-not-counted", "P25: a member that has sent more than the log of the run has names a loss", []Edit{
		{"supervisor/status.go", "if m.Done || sent <= m.Heard+1 {", "if m.Done || sent <= m.Heard+1 || true {"}}},
	{"headless-log-goes-on", "P26: a log that begins with no task is damaged", []Edit{
		{lifeGo, "	if err := l.checkFirst(e); err != nil {", "	if err := l.checkFirst(e); err != nil && false {"}}},
	{"absence-counts", "A9: limits count time at work, not while nobody has the agent", []Edit{
		{"agent/worktime.go", "	return s.skip(s.Now - last)\n}\n\n// overslept", "	return s\n}\n\n// overslept"}}},
	{"waiting-for-children-counts", "A9: limits count time at work, not while only children work", []Edit{
		{"agent/worktime.go", "	case waits && !s.Stands:\n", "	case waits && !s.Stands && s.Now < 0:\n"}}},
	{"facts-after-closed", "P14: after Closed nothing counts", []Edit{
		{lifeGo, "	if l.Phase == Closed {\n		l.spokenTo(m.Data, &out)\n		return out\n	}\n", ""},
		{turnGo, "	if s.Phase != \"\" {\n		return s, nil\n	}\n	s.Task = f.Task", "	if s.Phase != \"\" && s.Phase != Done {\n		return s, nil\n	}\n	s.Task = f.Task"}}},
	{"closes-with-letters-out", "P14: an actor closes when all its letters are out", []Edit{
		{lifeGo, "l.machine.Ended() && l.Outbox.Empty()", "l.machine.Ended()"}}},
	{"commands-twice", "P9: a request counts once", []Edit{
		{lifeGo, "		if known || item.ID == \"\"", "		if known && false || item.ID == \"\""}}},
	{"difference-not-said", "F4: a claim says what its node has otherwise", []Edit{
		{claimGo, "	case mine && l.differs():", "	case mine && l.differs() && l.Damage != \"\":"}}},
	{"forged-before-first-claim", "P8: an own entry belongs to a life", []Edit{
		{lifeGo, "inForce := e.Start != \"\" && e.Epoch", "inForce := e.Epoch"}}},
}

// ofLoop are the rules of the agent loop.
var ofLoop = []Mutant{
	{"begins-from-the-reply", "P2: a side effect begins after its Started was read back", []Edit{
		{dispatchGo, "		return s.with(i, c).beginRecorded(i)", "		c.Stage = Running\n		return s.with(i, c), s.callTool(c)"}}},
	{"effect-run-again-alone", "P2: an unknown outcome goes to a person", []Edit{
		{resumeGo, "c.Class == model.Read || c.Class == model.Idempotent:", "c.Class != \"\":"}}},
	{"attempt-not-counted", "P4: results count per attempt", []Edit{
		{dispatchGo, "c.Attempt, c.Life = c.Attempt+1, s.Life", "c.Attempt, c.Life = max(c.Attempt, 1), s.Life"}}},
	{"late-result-of-other-attempt", "P4, P7: a result answers its own attempt", []Edit{
		{dispatchGo, "c.Stage != Running || c.Attempt != f.Attempt {", "c.Stage != Running {"}}},
	{"started-of-other-attempt", "P7: Started names its attempt", []Edit{
		{dispatchGo, "c.Stage != Starting || c.Attempt != f.Attempt", "c.Stage == Ended"}}},
	{"stale-stop-allowed", "P7: a verdict names its proposal", []Edit{
		{stopGo, "	if !s.proposes(f.Proposal) {\n		return s, nil\n	}\n	s.Vetoes = 0", "	if s.Phase == \"\" || s.Phase == Done {\n		return s, nil\n	}\n	s.Vetoes = 0"}}},
	{"stale-grant", "P7: a grant names its lease", []Edit{
		{turnGo, "	if s.Phase != Leasing || f.Lease != s.Lease {\n		return s, nil\n	}\n	if s.Cancel != nil {\n		return finishCanceled(s)\n	}\n	if len(s.grave()) > 0 {\n		return s.spare()\n	}\n	if s.Purpose == ForSummary {\n		return summaryGranted", "	if s.Phase != Leasing {\n		return s, nil\n	}\n	if s.Cancel != nil {\n		return finishCanceled(s)\n	}\n	if len(s.grave()) > 0 {\n		return s.spare()\n	}\n	if s.Purpose == ForSummary {\n		return summaryGranted"}}},
	{"stale-reply", "P7: a reply names its lease", []Edit{
		{turnGo, "	if s.Phase != Thinking || f.Lease != s.Lease {\n		return s, nil\n	}\n	s.ModelMS", "	if s.Phase != Thinking && s.Phase != Leasing {\n		return s, nil\n	}\n	s.ModelMS"}}},
	{"provider-ids-kept", "P7: call ids are ours, by turn and index", []Edit{
		{turnGo, "fmt.Sprintf(\"%d-%d\", s.Turn+1, i)", "fmt.Sprintf(\"call_%d\", i)"}}},
	{"lost-reply-waited-for", "P1: a model call of a lost life is over", []Edit{
		{resumeGo, "		return then(fx)(lostModelCall(s, whole))\n", ""}}},
	{"lost-lease-used-again", "P21: a lease is for one attempt", []Edit{
		{resumeGo, "	return then(fx)(anotherAttempt(s))", "	s.Open = true\n	return s, []Effect{s.callModel()}"}}},
	{"call-after-cancel", "B5: after a cancel nothing begins", []Edit{
		{dispatchGo, "c.Stage != Pending || s.Cancel != nil", "c.Stage != Pending"},
		{cancelGo, "		case c.Stage == Pending || c.Stage == Starting ||", "		case c.Stage == Starting ||"}}},
	{"started-after-cancel", "B5: what was about to begin does not", []Edit{
		{cancelGo, "		case c.Stage == Pending || c.Stage == Starting ||", "		case c.Stage == Pending ||"}}},
	{"grant-after-cancel", "B5: a grant that comes after the cancel is not used", []Edit{
		{cancelGo, "	case Leasing:\n		return finishCanceled(s)\n", "	case Leasing:\n		return s, nil\n"},
		{turnGo, "	if s.Cancel != nil {\n		return finishCanceled(s)\n	}\n	if len(s.grave()) > 0 {\n		return s.spare()\n	}\n	if s.Purpose == ForSummary {\n		return summaryGranted", "	if len(s.grave()) > 0 {\n		return s.spare()\n	}\n	if s.Purpose == ForSummary {\n		return summaryGranted"}}},
	{"waiting-not-canceled", "B6: one that waits for a person is canceled", []Edit{
		{cancelGo, "	return then(fx)(finish(s, s.aborted(ByCancel)))\n}\n\n// cancelCalls", "	if s.Phase == Waiting {\n		return s, nil\n	}\n	return then(fx)(finish(s, s.aborted(ByCancel)))\n}\n\n// cancelCalls"}}},
	{"unknown-tool-runs", "A12: an unknown tool does not run", []Edit{
		{checkGo, "	if !known {\n		return c.fail", "	if !known && t.Name == \"\" {\n		return c.fail"}}},
	{"cut-args-run", "A11: cut arguments do not run", []Edit{
		{checkGo, "	if t.Cut {\n", "	if t.Cut && t.Args == \"\" {\n"}}},
	{"bad-args-run", "A14: arguments are validated", []Edit{
		{checkGo, "if err := fits.Validate(decoded); err != nil {", "if err := fits.Validate(decoded); err != nil && args == \"\" {"}}},
	{"results-out-of-order", "C3: results enter in the order asked", []Edit{
		{dispatchGo, "		results[i] = c.Result\n", "		results[len(results)-1-i] = c.Result\n"}}},
	{"effect-beside-others", "C3: what is not safe runs alone", []Edit{
		{dispatchGo, "			return false\n		case open && d.delegate():", "			return c.recorded() && !d.recorded()\n		case open && d.delegate():"}}},
	{"tombstone-sent", "A15: a tombstone is never sent", []Edit{
		{promptGo, "		if m.Tombstone || i > 0 &&", "		if i > 0 &&"},
		{promptGo, "if i < len(s.History) && !s.History[i].Tombstone {", "if i < len(s.History) {"}}},
	{"neighbours-not-joined", "A2: roles alternate", []Edit{
		{promptGo, "if n == 0 || m.Role != model.User || sent[n-1].Role != model.User {", "if n >= 0 {"}}},
	{"refused-calls-unanswered", "B2: every call has one result on every exit", []Edit{
		{turnGo, "	return s.say(model.Message{Role: model.ToolRole, Results: results})", "	return s"}}},
	{"no-clip", "style 8: clip before append", []Edit{
		{stateGo, "if s.tape == nil || s.tape.taken != n || cap(s.History) == n {", "if s.tape == nil || cap(s.History) == n {"}}},
	{"no-clone", "style 8: clone before write", []Edit{
		{stateGo, "	s.Calls = slices.Clone(s.Calls)\n	s.Calls[i] = c", "	s.Calls[i] = c"}}},
	{"steers-not-clipped", "style 8: clip before append", []Edit{
		{turnGo, "append(s.Steers[:len(s.Steers):len(s.Steers)], f.Text)", "append(s.Steers, f.Text)"}}},
	{"early-timer-ends", "P11: a timer counts only if the stamp says so", []Edit{
		{timerGo, "if due := s.Began + s.Task.Limits.HardMS; s.Now < due {", "if due := s.Began + s.Task.Limits.HardMS; s.Now < due && s.Now < 0 {"}}},
	{"other-prompt-goes-on", "F4: another prompt waits for a person", []Edit{
		{driftGo, "	case PromptVersion, WorkspaceVersion:\n		return true", "	case PromptVersion:\n		return false\n	case WorkspaceVersion:\n		return true"}}},
	{"other-class-goes-on", "F4: a tool of another class waits for a person", []Edit{
		{driftGo, "	return class != string(s.Task.Tools[i].Class)", "	return class == \"\""}}},
	{"agreed-for-any-other", "F4: a person agrees to one difference", []Edit{
		{driftGo, "ok && agreed == found {", "ok && agreed != \"\" {"}}},
	{"lease-used-before-the-answer", "F4: nothing is sent before a person has agreed", []Edit{
		{turnGo, "	if len(s.grave()) > 0 {\n		return s.spare()", "	if len(s.grave()) > 1<<20 {\n		return s.spare()"}}},
	{"spared-lease-kept", "P21: a lease that is not used is given back", []Edit{
		{driftGo, "	s.Drift.Spare = true\n", ""}}},
}

// ofRun are the rules of the supervisor and the pool.
var ofRun = []Mutant{
	{"hooks-not-inherited", "E6: the hooks of a parent bind its children", []Edit{
		{rightsGo, "	t.Manners.Hooks = inheritHooks(", "	_ = inheritHooks("}}},
	{"hooks-not-passed-on", "E6: they bind the children of its children too", []Edit{
		{membersGo, "	m.binding = bindingHooks(t)\n	first := agent.FirstAsk(t)\n	if first", "	first := agent.FirstAsk(t)\n	if first"}}},
	{"denies-not-united", "E6: what is denied above stays denied", []Edit{
		{rightsGo, "slices.Concat(deny, def.Deny)", "slices.Clone(def.Deny)"}}},
	{"lost-call-is-free", "P21: unknown is spent", []Edit{
		{poolGo, "	lost := Amount{Tokens: a.Held.Tokens, Nano: a.Held.Nano}\n", "	lost := Amount{}\n"}}},
	{"unseen-settlement-ignored", "P21: settling a lease that was never seen closes it for good", []Edit{
		{poolGo, "		used = Amount{}\n	}\n	a.Closed", "		return p\n	}\n	a.Closed"}}},
	{"closed-lease-reopens", "P7: closed leases stay closed", []Edit{
		{poolGo, "	case lease <= a.Closed, lease <= a.Open:\n", "	case lease <= a.Open:\n"}, {lifeGo, "!damaged && !fresh && !halts", "!damaged && item.Kind != \"reserve\" && !fresh && !halts"}}},
	{"held-not-counted", "G1: what is held is not free", []Edit{
		{poolGo, "return p.Limit.Room(p.Spent.Plus(p.Held).Plus(p.Kept))", "return p.Limit.Room(p.Spent.Plus(p.Kept))"}}},
	{"closing-money-not-kept", "G3: a closing turn is kept for everyone", []Edit{
		{poolGo, "			keep = k.closingBound(k.Input + out)\n", ""}}},
	{"kept-not-returned", "G3: what was kept is free after the end", []Edit{
		{poolGo, "	a.Kept = Amount{}\n	return p.with(who, a)", "	return p.with(who, a)"}}},
	{"bound-without-tail", "P21: the bound covers what was added since the anchor", []Edit{
		{promptGo, "		for _, m := range s.History[s.Anchor.Messages:] {\n			n += budget.Message(m)", "		for _, m := range s.History[s.Anchor.Messages:] {\n			n += 0 * budget.Message(m)"}}},
	{"overrun-ends-nothing", "P22: an overrun ends the run by its closing path", []Edit{
		{moneyGo, "!over.Zero()", "over.Tokens < 0"}}},
	{"overrun-not-booked", "P22: an overrun is booked", []Edit{
		{poolGo, "	p.Overrun = p.Overrun.Plus(Amount{Tokens: over.Tokens, Nano: over.Nano})", "	p.Overrun = p.Overrun.Plus(Amount{Tokens: 0 * over.Tokens})"}}},
	{"long-prompt-reserved-as-short", "P22: money is reserved at the dearest rate that applies", []Edit{
		{priceGo, "			flat = flat.Dearer(p.of(t))\n", "			flat.Input += 0 * t.Above\n"}}},
	{"queue-never-drained", "P21: who waits is answered when others settle", []Edit{
		{moneyGo, "	for s.Waiting() > 0 && s.Cancel == nil {", "	for s.Waiting() > 1<<20 && s.Cancel == nil {"}}},
	{"queue-overtaken", "P21: the queue is in order of arrival", []Edit{
		{moneyGo, "		it := s.queue.Iterator()\n", "		it := s.queue.Iterator()\n		it.Last()\n"}}},
	{"grants-during-cancel", "B5: a canceled run grants nothing", []Edit{
		{moneyGo, "	if s.Cancel != nil {\n		return s, fx", "	if s.Cancel != nil && s.Phase == Over {\n		return s, fx"}}},
	{"drains-during-cancel", "B5: a canceled run grants nothing to those who wait", []Edit{
		{moneyGo, "s.Waiting() > 0 && s.Cancel == nil", "s.Waiting() > 0"}}},
	{"child-after-cancel", "B5: a Delegate after the cancel starts nothing", []Edit{
		{membersGo, "	case s.Cancel != nil || s.Phase != Live || parent.Stopping || parent.Done:", "	case s.Phase != Live || parent.Stopping || parent.Done:"}}},
	{"child-of-a-stopping-parent", "B5: nor after the cancel of its parent", []Edit{
		{membersGo, "s.Phase != Live || parent.Stopping || parent.Done:", "s.Phase != Live || parent.Done:"}}},
	{"child-of-the-dead", "B5: nor after its parent's end", []Edit{
		{membersGo, "	case s.Cancel != nil || s.Phase != Live || parent.Stopping || parent.Done:", "	case s.Cancel != nil:"}}},
	{"orphans-live-on", "B5: children end with their parent", []Edit{
		{membersGo, "	if m.Children == 0 {\n		return s, nil", "	if m.Children >= 0 {\n		return s, nil"}}},
	{"cancel-tells-only-the-root", "B5: a cancel reaches every member", []Edit{
		{superGo, "		if !m.Done {\n			fx = append(fx, Tell{To: m.ID, Fact: f})", "		if m.ID == agent.Root && !m.Done {\n			fx = append(fx, Tell{To: m.ID, Fact: f})"}}},
	{"live-children-unlimited", "G5: children per agent are limited", []Edit{
		{membersGo, "	case parent.Children >= l.Children:", "	case parent.Children >= 1<<20:"}}},
	{"children-never-counted-down", "G5: an ended child makes room", []Edit{
		{membersGo, "		parent.Children--\n", ""}}},
	{"agents-unlimited", "G5: agents per run are limited", []Edit{
		{membersGo, "	case s.Count() >= l.Agents:", "	case s.Count() >= 1<<20:"}}},
	{"depth-unlimited", "G5: depth is limited", []Edit{
		{membersGo, "	case parent.Depth+1 >= l.Depth:", "	case parent.Depth >= 1<<20:"},
		{membersGo, "m.Depth+1 >= s.Run.Limits.Depth", "m.Depth >= 1<<20"}}},
	{"child-joins-twice", "DESIGN 6: the same delegation finds the same child", []Edit{
		{membersGo, "!ok || exists ||", "!ok || exists && false ||"}, {lifeGo, "!damaged && !fresh && !halts", "!damaged && item.Kind != \"delegate\" && !fresh && !halts"}}},
	{"answer-before-the-end", "DESIGN 6: a parent hears the answer after the child's end", []Edit{
		{membersGo, "	s, fx := join(s.put(parent), m, t, f.Past)\n	if m.Background {", "	s, fx := join(s.put(parent), m, t, f.Past)\n	fx = append(fx, Tell{To: from, Fact: report(m)})\n	if m.Background {"}}},
	{"published-twice", "DESIGN 6: a run ends once", []Edit{
		{membersGo, "	if !ok || m.Done {\n		return s.heardOf(m), nil\n	}\n	m.Outcome, m.Turns", "	if !ok {\n		return s.heardOf(m), nil\n	}\n	m.Outcome, m.Turns"}}},
	{"damage-told-by-the-same-life", "P1, P13: a life in force cannot claim again under its epoch; damage takes a new one", []Edit{
		{claimGo, "	l.confess, out.Reclaim = true, true\n	l.Epoch = mailbox.Epoch{Lease: l.force.Lease, Start: l.force.Start + 1}\n", "	l.confess, out.Reclaim = true, true\n"},
		{claimGo, "		if mine && l.Phase == Folding && e.Epoch == l.Epoch {", "		if mine && l.Phase == Folding && e.Epoch == l.Epoch && !l.confess {"}}},
	{"damage-of-a-member-ignored", "P13: damage halts the run", []Edit{
		{membersGo, "	if f.Damaged != \"\" {\n		s, more := damaged", "	if f.Damaged == \"?\" {\n		s, more := damaged"}, {resumeGo, "	if f.Damaged != \"\" {\n		s = s.settleCalls", "	if f.Damaged == \"?\" {\n		s = s.settleCalls"}}},
	{"veto-for-ever", "G2: vetoes in a row are bounded", []Edit{
		{"supervisor/policy.go", "Final: m.Vetoes > VetoesMax", "Final: m.Vetoes > 1<<20"}, {limitGo, "	case s.Turn >= s.Task.Limits.Turns:", "	case s.Turn >= 1<<20:"}}},
}
