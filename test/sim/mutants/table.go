package main

// Edit is an operation on a marked site. An empty Site means the site with the mutant's name.
type Edit struct {
	Site string
	Do   Operation
}

// Mutant is the program without one of its rules.
type Mutant struct {
	Name  string
	Rule  string // the rule of the protocol that it drops
	Edits []Edit
}

// own returns one edit, of the site with the mutant's name.
func own(do Operation) []Edit { return []Edit{{Do: do}} }

// Texts of operations that several edits share, or that are long.
const (
	runs = "c.Stage, c.Gate.Passed = Pending, true"
	// The digest is that of the arguments which a person has agreed to: without it the call is refused again as it begins.
	runsAsAgreed = runs + "\nc.Gate.Permit.Digest = s.tools.digest(c)"
	oldStart     = "last := a.shells[len(a.shells)-1]\nlast.start, last.state.Reader.Start = \"again\"+string(a.id), \"again\"+string(a.id)"
	aliveAgain   = "if mine && e.Epoch == l.currentEpoch && l.Phase == Replaying {\nl.Phase, out.Activated = Active, true\nreturn nil\n}"
)

// ofLives lists mutants of the rules of activations, outbox messages and logs.
var ofLives = []Mutant{
	{"acts-before-own-resumed", "P1: a shell only folds until it has read its own Resumed", own(Drop)},
	{"restart-reuses-its-start", "P1: a restart under one lease is another start",
		[]Edit{
			{"restart-counts", Drop},
			{"restart-launches", InsertAfter(oldStart)},
			{"claim-is-own", InsertAfter(aliveAgain)},
		}},
	{"later-resumed-is-not-heeded", "P1: one that reads a later Resumed falls silent",
		[]Edit{{"superseded-is-silent", Replace(`l.currentNonce = l.Start`)}, {"superseded-stops", Drop}}},
	{"equal-epoch-comes-into-force", "P1: a claim must be higher than the one in force",
		[]Edit{{"claim-is-higher", ReplaceTerm(1, 1, `l.currentEpoch.Higher(e.Epoch)`)}}},
	{"superseded-entries-count", "P1, P8: a superseded activation decides nothing",
		[]Edit{{"own-entry-counts", Within(1, 2, Never)}}},
	{"zombie-started-obeyed", "P2: a Started counts only under the epoch in force",
		[]Edit{{"own-entry-counts", AndAlso(`item.Kind != "started"`)}, {"started-in-its-life", Without(3, 3)}}},
	{"evidence-of-silent-dropped", "P4: what a tool returned counts whoever posts it",
		[]Edit{{"own-entry-counts", Without(2, 2)}}},
	{"higher-epoch-not-reclaimed", "P5: a higher epoch in the log is claimed over", own(Drop)},
	{"watermark-skipped", "P6: what is not above the watermark was read before",
		[]Edit{{"read-before", Within(2, 2, Never)}}},
	{"watermark-without-index", "P6: messages of one entry are told apart", []Edit{{"below-watermark", Without(2, 2)}}},
	{"gives-up-sending", "P6: the same bytes again until acknowledged", own(Replace(`f.acked = true`))},
	{"two-in-flight", "P6: one message in flight to one receiver", own(Without(2, 3))},
	{"forgotten-lane-listed-twice", "P6: a lane is ready once", own(Without(2, 2))},
	{"floor-too-high", "P12: the floor is the acknowledged prefix",
		own(InsertBefore("if len(o.open) > 0 {\nreturn o.open[0].n\n}"))},
	{"unsent-messages-forgotten", "P1, P12: messages above the floor go out after a takeover",
		own(InsertAfter(`l.Outbox = Outbox{}`))},
	{"hash-check-dropped", "P13: a wrong hash is damage", own(Never)},
	{"hash-of-lost-activation-only-logged", "P13: an entry of an activation whose Resumed is gone counts", own(Without(3, 3))},
	{"back-check-dropped", "P13: a log shorter than what was heard is damage", []Edit{{"back-check", Never}}},
	{"back-check-off-by-one", "P13: a watermark met exactly is damage too",
		[]Edit{{"back-check", ReplaceTerm(3, 3, `item.N < m.n`)}}},
	{"begins-before-verified", "P13: no side effect begins before the supervisor has verified the log",
		[]Edit{{"begins-when-verified", Always}}},
	{"verified-for-another-activation", "P13: one activation of a log is verified",
		[]Edit{{"begins-when-verified", ReplaceTerm(1, 1, `s.LogVerification.Answered != ""`)}}},
	{"verified-begins-nothing", "P13: what has waited for the answer begins", own(Never)},
	{"verification-asked-each-time", "P13: an agent asks once in an activation", own(Never)},
	{"back-sent-again-is-damage", "P13: a ReportLog sent again is no damage",
		[]Edit{{"back-check", Without(2, 3)}, {"back-check", ReplaceTerm(3, 3, `item.N < m.n`)}}},
	{"closed-log-is-mute", "P25: a closed actor repeats its last Finish", own(Drop)},
	{"members-are-not-asked", "P25: a supervisor that follows a crash asks its members",
		[]Edit{{"members-asked", Never}, {"ask-armed", Replace(`return s, fx`)}}},
	{"lost-messages-are-not-counted", "P25: a member that has sent more than the log of the run has names a loss",
		own(Always)},
	{"headless-log-goes-on", "P26: a log that begins with no task is damaged", own(Never)},
	{"absence-counts", "A9: limits count time at work, not while nobody has the agent", own(Unchanged)},
	{"waiting-for-children-counts", "A9: limits count time at work, not while only children work", own(Never)},
	{"facts-after-closed", "P14: after Closed nothing counts",
		[]Edit{{"closed-reads-nothing", Drop}, {"task-once", AndAlso(`s.Phase != Done`)}}},
	{"closes-with-a-full-outbox", "P14: an actor closes when all its messages are out", own(Without(3, 3))},
	{"commands-twice", "P9: a request counts once", own(Within(1, 4, Never))},
	{"difference-not-said", "F4: a claim says what its node has otherwise", own(AndAlso(`l.Damage != ""`))},
	{"forged-before-first-claim", "P8: an own entry belongs to an activation", own(Without(1, 3))},
}

// ofLoop are the rules of the agent loop.
var ofLoop = []Mutant{
	{"begins-from-the-reply", "P2: a side effect begins after its Started was read back", own(Never)},
	{"effect-run-again-alone", "P2: an unknown outcome goes to a person", []Edit{{"repeatable-call", Always}}},
	{"attempt-not-counted", "P4: results count per attempt",
		own(Replace(`c.Attempt, c.Activation = max(c.Attempt, 1), s.Activation`))},
	{"late-result-of-other-attempt", "P4, P7: a result answers its own attempt", own(Without(2, 2))},
	{"started-of-other-attempt", "P7: Started names its attempt",
		[]Edit{{"started-of-its-attempt", ReplaceTerm(1, 1, `c.Stage == Ended`)}}},
	{"stale-stop-allowed", "P7: a verdict names its proposal",
		[]Edit{{"verdict-of-its-proposal", ReplaceTerm(1, 1, `s.Phase == "" || s.Phase == Done`)}}},
	{"stale-grant", "P7: a grant names its reservation", own(Without(2, 2))},
	{"stale-reply", "P7: a reply names its reservation",
		[]Edit{{"reply-of-its-reservation", ReplaceTerm(1, 1, `s.Phase != Thinking && s.Phase != Reserving`)}}},
	{"provider-ids-kept", "P7: call ids are ours, by turn and index",
		own(Replace(`m.Calls[i].ID = fmt.Sprintf("call_%d", i)`))},
	{"lost-reply-waited-for", "P1: a model call of a lost activation is over", own(Drop)},
	{"lost-reservation-used-again", "P21: a reservation is for one attempt",
		own(Replace("s.Open = true\nreturn s, []Effect{newModelCall(s)}"))},
	{"call-after-cancel", "B5: after a cancel nothing begins",
		[]Edit{{"begins-unless-canceled", Without(2, 2)}, {"cancel-of-unstarted", Without(1, 3)}}},
	{"started-after-cancel", "B5: what was about to begin does not", []Edit{{"cancel-of-unstarted", Without(2, 3)}}},
	{"grant-after-cancel", "B5: a grant that comes after the cancel is not used",
		[]Edit{{"cancel-while-reserving", Unchanged}, {"granted-after-cancel", Drop}}},
	{"waiting-not-canceled", "B6: one that waits for a person is canceled",
		own(InsertBefore("if s.Phase == Waiting {\nreturn s, nil\n}"))},
	{"unknown-tool-runs", "A12: an unknown tool does not run", []Edit{{"unknown-tool", Never}}},
	{"cut-args-run", "A11: cut arguments do not run", own(Never)},
	{"bad-args-run", "A14: arguments are validated", own(Never)},
	{"results-out-of-order", "C3: results enter in the order asked",
		own(Replace(`results[len(results)-1-i] = c.Result`))},
	{"effect-beside-others", "C3: what is not safe runs alone", own(Replace(`return c.needsRecord() && !before.needsRecord()`))},
	{"tombstone-sent", "A15: a tombstone is never sent",
		[]Edit{{"plain-tombstones", Without(1, 2)}, {"prompt-tombstones", Without(2, 2)}}},
	{"neighbours-not-joined", "A2: roles alternate", own(Always)},
	{"refused-calls-unanswered", "B2: every call has one result on every exit", own(Unchanged)},
	{"no-clip", "style 8: clip before append", own(Without(2, 3))},
	{"no-clone", "style 8: clone before write", own(Drop)},
	{"steers-not-clipped", "style 8: clip before append", own(Replace(`s.PendingSteers = append(s.PendingSteers, f.Text)`))},
	{"early-timer-ends", "P11: a timer counts only if the stamp says so", own(Never)},
	{"other-prompt-goes-on", "F4: another prompt waits for a person", own(Without(1, 2))},
	{"other-class-goes-on", "F4: a tool of another class waits for a person", own(Never)},
	{"agreed-for-any-other", "F4: a person agrees to one difference", own(ReplaceTerm(2, 2, `agreed != ""`))},
	{"reservation-used-before-the-answer", "F4: nothing is sent before a person has agreed", own(Never)},
	{"spared-reservation-kept", "P21: an unused reservation is returned", own(Drop)},
}

// ofRun are the rules of the supervisor and the pool.
var ofRun = []Mutant{
	{"hooks-not-inherited", "E6: the hooks of a parent bind its children", own(Drop)},
	{"hooks-not-passed-on", "E6: they bind the children of its children too", own(Drop)},
	{"changed-arguments-not-judged", "E6, A19: what one hook makes of a call is judged by all others", own(Always)},
	{"denies-not-united", "E6: what is denied above stays denied", own(Replace(`denied = slices.Clone(def.Deny)`))},
	{"lost-call-is-free", "P21: unknown is spent", own(Replace(`lost := Amount{}`))},
	{"unseen-settlement-ignored", "P21: settling a reservation that was never seen closes it for good", own(Unchanged)},
	{"closed-reservation-reopens", "P7: closed reservations stay closed",
		[]Edit{{"closed-reservation", Without(1, 2)}, {"read-before", AndAlso(`item.Kind != "reserve"`)}}},
	{"held-not-counted", "G1: what is held is not free", own(Replace(`room := p.Limit.Room(p.Spent.Plus(p.Kept))`))},
	{"closing-money-not-kept", "G3: a closing turn is kept for everyone", []Edit{{"closing-turn-kept", Drop}}},
	{"kept-not-returned", "G3: what was kept is free after the end", own(Drop)},
	{"share-not-held", "G5: what is carved for an agent is free for no other", own(Drop)},
	{"share-used-twice", "G5: what agents below use of a share is used up", own(Drop)},
	{"share-not-returned", "G5: the rest of a share is free after the end", own(Drop)},
	{"share-not-carved", "G5: an agent with a share holds it from its start", own(Never)},
	{"bound-without-tail", "P21: the bound covers what was added since the anchor", own(Never)},
	{"overrun-ends-nothing", "P22: an overrun ends the run by its closing path", own(Never)},
	{"overrun-not-booked", "P22: an overrun is booked",
		own(Replace(`p.Overrun = p.Overrun.Plus(Amount{Tokens: 0 * over.Tokens})`))},
	{"long-prompt-reserved-as-short", "P22: money is reserved at the dearest rate that applies", own(Drop)},
	{"queue-never-drained", "P21: who waits is answered when others settle", []Edit{{"queue-drained", Never}}},
	{"queue-overtaken", "P21: the queue is in order of arrival", own(InsertAfter(`it.Last()`))},
	{"grants-during-cancel", "B5: a canceled run grants nothing", own(AndAlso(`s.Phase == Over`))},
	{"drains-during-cancel", "B5: a canceled run grants nothing to those who wait",
		[]Edit{{"queue-drained", Without(2, 2)}}},
	{"child-after-cancel", "B5: a Delegate after the cancel starts nothing",
		[]Edit{{"delegate-after-the-end", Without(1, 4)}}},
	{"child-of-a-stopping-parent", "B5: nor after the cancel of its parent",
		[]Edit{{"delegate-after-the-end", Without(3, 4)}}},
	{"child-of-the-dead", "B5: nor after its parent's end",
		[]Edit{{"delegate-after-the-end", ReplaceTerm(1, 1, `s.Cancel != nil`)}}},
	{"orphans-live-on", "B5: children end with their parent", own(Always)},
	{"cancel-tells-only-the-root", "B5: a cancel reaches every member", own(AndAlso(`m.ID == spec.Root`))},
	{"live-children-unlimited", "G5: children per agent are limited", own(Never)},
	{"children-never-counted-down", "G5: an ended child makes room", own(Drop)},
	{"agents-unlimited", "G5: agents per run are limited", own(Never)},
	{"depth-unlimited", "G5: depth is limited", []Edit{{"depth-limit", Never}, {"leaf-by-depth", Never}}},
	{"child-joins-twice", "DESIGN 6: the same delegation finds the same child",
		[]Edit{{"child-exists", Within(2, 3, Never)}, {"read-before", AndAlso(`item.Kind != "delegate"`)}}},
	{"answer-before-the-end", "DESIGN 6: a parent hears the answer after the child's end",
		own(InsertAfter(`fx = append(fx, Tell{To: from, Fact: childReport(m)})`))},
	{"published-twice", "DESIGN 6: a run ends once", own(Without(2, 2))},
	{"ended-member-moves", "DESIGN 6: the result of a run that is over stays what it was", own(Always)},
	{"limits-change-after-the-end", "DESIGN 6: so it does when its limits are set late", own(Never)},
	{"damage-told-by-the-same-life", "P1, P13: the current activation cannot claim again under its epoch; damage takes a new one",
		[]Edit{{"damage-takes-an-epoch", Drop}, {"own-claim-lost", AndAlso(`!l.damageClaimRequested`)}}},
	{"damage-of-a-member-ignored", "P13: damage halts the run",
		[]Edit{{"member-damaged", Never}, {"own-log-damaged", Never}}},
	{"veto-for-ever", "G2: vetoes in a row are bounded",
		[]Edit{{"veto-limit", Raise("1 << 20")}, {"turn-limit", Never}}},
	{"policy-change-ignored", "G2: a policy that is set counts at the next decision", []Edit{{"policy-change-ignored", Drop}}},
	{"verdict-without-version", "G2: a verdict names the version of the policy", []Edit{{"verdict-without-version", DropField("Version")}}},
}
