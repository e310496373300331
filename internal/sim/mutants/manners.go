package main

// ofManners are the rules of the loop's manners: hooks at their gates, what it
// watches in itself, what ends a claim, how a prompt is folded, what is tried
// again and what is not.
var ofManners = []Mutant{
	{"gate-not-waited-for", "A19: a call waits for the hooks before it", []Edit{
		{gateGo, "	if s.letThrough(c) || len(s.hooksAt(HookPreTool, c.Name)) == 0 {", "	if s.letThrough(c) || len(s.hooksAt(HookPreTool, c.Name)) >= 0 {"}}},
	{"word-of-another-node-counts", "E3: what one node's hooks let through is asked about again on another", []Edit{
		{reaskGo, "c.Passed && (!s.Task.Manners.Reask || c.Node == s.Node)", "c.Passed"}}},
	{"denied-call-runs", "A19: what hooks deny never runs", []Edit{
		{gateGo, "		c = c.fail(\"denied by \" + v.why())", "		c.Stage, c.Passed = Pending, true"}}},
	{"skipped-call-runs", "A19: what hooks skip does not run", []Edit{
		{gateGo, "		c = c.end(model.ToolResult{Text: cmp.Or(v.text, \"skipped by \"+v.why())})", "		c.Stage, c.Passed = Pending, true"}}},
	{"answered-call-runs-too", "A19: a hook's result stands for the tool's", []Edit{
		{gateGo, "			c = c.end(model.ToolResult{Text: cmp.Or(v.text, \"answered by \"+v.why()+\" instead of the tool\")})\n			break\n", ""}}},
	{"prevented-call-runs", "A19: a hook that ends the run ends it", []Edit{
		{gateGo, "		return halt(s.with(i, c.fail(c.unrun()+\": the run was ended by \"+v.why()).confessing()), PolicyBlocked, v.why())", "		c.Stage, c.Passed = Pending, true"}}},
	{"call-to-ask-about-runs", "E3: what a person is to decide waits for the person", []Edit{
		{gateGo, "		c = c.ask(v, s.Task.Manners.Ask)", "		c.Stage, c.Passed = Pending, true"}}},
	{"nobody-to-ask-is-a-yes", "E3: where nobody can be asked, no", []Edit{
		{gateGo, "		return c.fail(\"denied: \" + v.why() + \" wants a person to decide, and nobody can be asked\")", "		c.Stage, c.Passed = Pending, true\n		return c"}}},
	{"person's-no-is-a-yes", "E3: a person's no is a no", []Edit{
		{gateGo, "		return c.fail(strings.TrimSuffix(\"denied by a person: \"+text, \": \"))", "		c.Stage, c.Passed = Pending, true\n		return c"}}},
	{"failing-hook-passes", "A19: a hook that gives no verdict has its default", []Edit{
		{verdictGo, "			if p.Knows(j.hook.Failing) {", "			if false && p.Knows(j.hook.Failing) {"}}},
	{"last-hook-decides", "A19: of several hooks the strictest counts", []Edit{
		{verdictGo, "		if !j.hook.Report && at >= 0 && at < rank {", "		if !j.hook.Report && at >= 0 && at < rank+len(list)*9 {"}}},
	{"reports-decide", "E1: a hook in report-only mode decides nothing", []Edit{
		{verdictGo, "		if !j.hook.Report && at >= 0 && at < rank {", "		if at >= 0 && at < rank {"}}},
	{"nonsense-of-hooks-counts", "A19: an answer that makes no sense is no verdict", []Edit{
		{verdictGo, "			j.failed = s.nonsense(p, c, j.answer)", "			j.failed = j.answer.Failed"}}},
	{"answer-of-another-gate", "P7: an answer names its gate", []Edit{
		{hooksGo, "s.Gate.ID == f.ID && s.Gate.Point == f.Point {", "s.Gate.Point == f.Point {"}}},
	{"answer-of-another-call's-gate", "P7: an answer names the gate of its call", []Edit{
		{gateGo, "c.Gate == f.Point && c.gateID() == f.ID", "c.Gate == f.Point"}}},
	{"gate-lost-in-a-crash", "P1: a new life asks again at the gate that is open", []Edit{
		{resumeGo, "			fx = append(fx, s.atGate())\n", ""}}},
	{"call's-gate-lost-in-a-crash", "P1: and at the gates of calls", []Edit{
		{resumeGo, "			e = s.atCall(c)\n", "			continue\n"}}},
	{"hooks-left-running", "B3: hooks end with the run", []Edit{
		{turnGo, "	s, fx := s.abortGates()\n", "	var fx []Effect\n"}}},
	{"hooks-after-the-cancel", "B5: after a cancel no hooks begin", []Edit{
		{hooksGo, "	if len(at) == 0 || s.Cancel != nil {", "	if len(at) == 0 {"}}},
	{"blocks-without-end", "A17: stop hooks send a stop back 8 times in a row at most", []Edit{
		{stopGo, "s.Rounds.Blocks > BlocksMax || text == s.Rounds.Block", "text == s.Rounds.Block"}}},
	{"stop-prevented-goes-on", "A17: a stop hook that prevents ends the loop", []Edit{
		{stopGo, "	case HookPrevent:\n		return finish(s, Outcome{Reason: StopHookPrevented, Text: s.answer(), Partial: true, Detail: v.why()})\n", ""}}},
	{"tripwire-before-the-model-ignored", "E1: a tripwire ends the loop", []Edit{
		{guardGo, "	switch v.decision {\n	case HookTrip:\n		return guarded(s, v)\n", "	switch v.decision {\n"}}},
	{"reply-not-passed-acts", "E1: a reply that a guardrail did not pass does not act", []Edit{
		{guardGo, "	if v.decision == HookPass {\n		s.Rounds.Output = 0", "	if v.decision != HookTrip {\n		s.Rounds.Output = 0"}}},
	{"reply-not-passed-is-shown", "E1: what a guardrail did not pass is in no result", []Edit{
		{guardGo, "	s = s.withhold()\n	s.Rounds.Output++", "	s.Rounds.Output++"}}},

	{"forbidden-tool-runs", "A14: a forbidden tool never runs", []Edit{
		{checkGo, "	if s.forbids(t.Name) {", "	if s.forbids(t.Name) && t.Name == \"\" {"},
		{checkGo, "	if !known {\n		return c.fail", "	if !known && !s.forbids(t.Name) {\n		return c.fail"}}},
	{"forbidden-proposals-for-ever", "A28: forbidden proposals in a row end the loop", []Edit{
		{breakerGo, "i >= 0 && b.Forbidden > 0 && s.Habits.Forbidden >= b.Forbidden {", "i >= 0 && b.Forbidden > 0 && s.Habits.Forbidden >= b.Forbidden+3 {"}}},
	{"failures-for-ever", "A28: a tool that fails again and again on one target escalates", []Edit{
		{breakerGo, "list[at].Times >= limit && tripped == nil", "list[at].Times > limit && tripped == nil"}}},
	{"halted-tool-runs", "A24: a tool whose calls were not to run does not", []Edit{
		{checkGo, "s.Habits.Halted", "\"\""}}},
	{"acts-instead-of-asking", "A24: who was to ask a person does nothing else first", []Edit{
		{breakerGo, "	case s.Habits.Forced && !slices.ContainsFunc(calls, Call.asks):\n		from, text = 0, notRunAsking\n", ""}}},
	{"question-not-forced", "A24: who was to ask a person asks one", []Edit{
		{turnGo, "	case s.Habits.Forced && stop != model.StopRefusal:\n		return unasked(s, text)\n", ""}}},
	{"asks-nobody", "E4: where nobody can be asked, nobody is", []Edit{
		{checkGo, "c.Class = model.Effect; !s.Task.Manners.Ask {", "c.Class = model.Effect; c.ID == \"\" {"}}},
	{"loop-asks-nobody", "E4: and the loop itself asks nobody", []Edit{
		{askGo, "	if !s.Task.Manners.Ask {\n		return finish(", "	if s.Task.Name == \"?\" {\n		return finish("}}},
	{"denial-goes-on", "E4: a person's no ends the loop that asked how to go on", []Edit{
		{askGo, "	if f.Decision == \"deny\" {", "	if f.Decision == \"never\" {"}}},
	{"people's-time-counts", "A9: the clocks stand still while a person is asked", []Edit{
		{resumeGo, "	s.Began += s.Now - s.Parked\n", ""}}},

	{"effects-retried", "C5: only what may run twice is run again", []Edit{
		{retryGo, "	again := c.Class == model.Read || c.Class == model.Idempotent\n", "	again := c.Class != \"\"\n"}}},
	{"tools-retried-for-ever", "C5: a call is retried 3 times at most", []Edit{
		{retryGo, "c.Tries < min(s.Task.Manners.ToolRetries, ToolRetriesMax)", "c.Tries < 20"},
		{retryGo, "backoffMS[c.Tries]", "backoffMS[c.Tries%3]"}}},
	{"retried-too-early", "C5: a retry waits for its time", []Edit{
		{retryGo, "	if s.Now < c.Due {", "	if s.Now < 0 {"}}},
	{"model-retried-for-ever", "A8: attempts of a model call are bounded", []Edit{
		{"agent/pause.go", "s.Retries+s.Pause.Own < s.Task.Limits.Retries", "s.Retries < 20"}}},
	{"fallback-to-one-that-failed", "A15: a model that was given up is not called again", []Edit{
		{fallbackGo, "slices.Contains(before, chain[next].Name)", "before == nil"}}},
	{"fallbacks-without-end", "A15: the chain has up to three fallbacks", []Edit{
		{fallbackGo, "more[:min(len(more), FallbacksMax)]...", "more..."}}},
	{"failed-partial-is-kept", "A15: what a failed attempt said is a tombstone", []Edit{
		{recoverGo, "	if n := len(s.History) - 1; s.History[n].Role == model.Assistant && !s.History[n].Tombstone {", "	if n := len(s.History) - 1; s.History[n].Role == \"\" {"}}},

	{"criteria-for-ever", "A27: a completion is sent back a bounded number of times", []Edit{
		{goalGo, "	if s.Goal.Sent >= cmp.Or(r.Tries, RequireTries) {", "	if s.Goal.Sent > cmp.Or(r.Tries, RequireTries) {"}}},
	{"failure-is-evidence", "A27: evidence is a success", []Edit{
		{goalGo, "			if !r.Error && !m.Tombstone && names", "			if !m.Tombstone && names"}}},
	{"answer-without-its-schema", "A27: an answer fits its schema", []Edit{
		{goalGo, "	if err := c.answer.Validate(v); err != nil {", "	if err := c.answer.Validate(v); err != nil && text == \"\" {"}}},
	{"nudged-for-ever", "A22: continuations that bring little end", []Edit{
		{goalGo, "	if s.Goal.Small >= cmp.Or(c.Rounds, ContinueRounds) {", "	if s.Goal.Small > cmp.Or(c.Rounds, ContinueRounds) {"}}},
	{"nudged-beyond-the-budget", "A22: what is used up is not used further", []Edit{
		{goalGo, "ending != \"\" || used >= enough {", "ending != \"\" || used >= 2*enough {"}}},
	{"closing-turn-runs-calls", "A5: the closing turn runs no calls", []Edit{
		{turnGo, "	case s.Ending != \"\":\n		return closed(s, text, calls)\n", "	case s.Ending != \"\" && len(calls) == 0:\n		return closed(s, text, calls)\n"},
		{checkGo, "	left := min(int64(s.Task.Limits.ReplyCalls), s.Grant.Calls)\n", "	left := int64(s.Task.Limits.ReplyCalls)\n"}}},
	{"results-of-a-model", "A20: a model's reply brings no results", []Edit{
		{turnGo, "	m.Role, m.Results = model.Assistant, nil", "	m.Role = model.Assistant"}}},

	{"too-long-for-ever", "A23: one reactive compaction, then the end", []Edit{
		{compactGo, "s.Task.Manners.Context.Tail <= 0 || s.Ladder.Reactive || s.exhausted()", "s.Task.Manners.Context.Tail <= 0 || s.exhausted()"}}},
	{"recoveries-without-end", "D5: at most 4 recoveries in one loop", []Edit{
		{ladderGo, "s.Ladder.Used >= RecoveriesMax", "s.Ladder.Used >= 2*RecoveriesMax"}}},
	{"fold-splits-a-pair", "D3: a fold never splits a call from its result", []Edit{
		{compactGo, "	for i > s.Fold.Upto && s.answered(i) {\n		i--\n	}\n", ""}}},
	{"fold-forgets-the-task", "D3: the task stays in the prompt", []Edit{
		{foldGo, "		section(&b, \"The task, verbatim\", goal)", "		section(&b, \"The task, verbatim\", \"see above\"+goal[:0])"}}},
	{"fold-forgets-the-evidence", "D3: the evidence stays in the prompt", []Edit{
		{foldGo, "	for j, f := range evidence {\n		keep(f, s.Task.Manners.Require.Evidence[j].Contains)\n	}\n", "	_, _ = evidence, keep\n"}, {foldGo, "		keep(newest[name], \"\")", "		_ = newest[name]"}}},
	{"fold-moves-with-each-turn", "D2: what was sent stays as it was until the next compaction", []Edit{
		{promptGo, "		user(s.Fold.Text)", "		user(s.Fold.Text + s.Journal.NextAction + string(rune('a'+s.Turn)))"}}},
	{"journal-moves-with-each-turn", "D7: prompts show the journal of the last continuation", []Edit{
		{journalGo, "	if s.Journal.Shown.Digest == \"\" {\n		return d\n	}\n	return strings.TrimPrefix(d+\"\\n\\n\"+journalDigestHead+s.Journal.Shown.Digest, \"\\n\\n\")", "	if s.Journal.digest() == \"\" {\n		return d\n	}\n	return d + journalDigestHead + s.Journal.digest()"}}},
	{"summary-asked-for-ever", "D4: a failed summary falls back", []Edit{
		{compactGo, "	if other := s.Task.Manners.Context.Model != nil && !s.Folding.Own; other && s.Folding.Tries < SummaryTries {", "	if s.Folding.Tries < 6 {"}}},
	{"summary-is-a-turn", "D3: a summary is no part of the transcript", []Edit{
		{turnGo, "	if s.Purpose == ForSummary {\n		return summarized(s, f.Reply)\n	}\n", ""}}},
	{"anchor-kept-over-a-fold", "G1: what was reported of another prompt bounds nothing", []Edit{
		{compactGo, "	s.Fold, s.Anchor = f, Anchor{}", "	s.Fold, s.Anchor = f, Anchor{Messages: len(s.History), Tokens: 9, Route: s.Route}"}}},
	{"parked-without-a-question", "E4: who waits for a person says what it asks", []Edit{
		{resumeGo, "		Question: fmt.Sprintf(\"%s (call %s, attempt %d) was started and its outcome is unknown. \"+\n			\"approve: run it again; skip: go on without; or say what happened.\", c.Name, c.ID, c.Attempt),\n", ""}}},
}
