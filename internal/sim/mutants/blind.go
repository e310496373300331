package main

const outletGo = "actors/life/entry.go"

// blind mutants were written by somebody who had not seen the simulator.
var blind = []Mutant{
	{"blind-started-begins-again", "P2: a Started that is in the log twice begins its call once", []Edit{
		{dispatchGo, "	if c.Stage != Starting || c.Attempt != f.Attempt {", "	if c.Stage == Ended || c.Stage == Pending || c.Attempt != f.Attempt {"}}},
	{"blind-cancel-leaves-starting", "B5: after a cancel nothing begins whose Started had not come round", []Edit{
		{cancelGo, "		case c.Stage == Pending || c.Stage == Starting || c.Stage == Retrying:", "		case c.Stage == Pending || c.Stage == Retrying:"}}},
	{"blind-lost-call-is-free", "P21: a model call that nobody heard of again is spent", []Edit{
		{resumeGo, "Settle{Lease: s.Lease, Lost: !never, Turn: s.Turn + 1}", "Settle{Lease: s.Lease, Turn: s.Turn + 1}"}}},
	{"blind-effect-runs-again", "F3: a side effect of unknown outcome is not run again by itself", []Edit{
		{resumeGo, "c.Class == model.Read || c.Class == model.Idempotent:", "c.Class != model.Irreversible:"}}},
	{"blind-unknown-usage-is-free", "G1: a reply without usage is charged in full", []Edit{
		{turnGo, "Lost: !r.UsageKnown}", "}"}}},
	{"blind-settling-wakes-nobody", "G1: who waits for the pool is answered when another settles", []Edit{
		{moneyGo, "		s = s.put(m)\n	}\n	return s.drain()", "		s = s.put(m)\n	}\n	return s, nil"}}},
	{"blind-canceled-agent-delegates", "B5: a Delegate of a canceled agent begins nothing", []Edit{
		{superGo, "		m := *member\n		m.Stopping = true\n", "		m := *member\n"}, {superGo, "	m.Stopping = true\n	s, fx", "	s, fx"}}},
	{"blind-child-admitted-without-room", "P23: a child is admitted only if its closing turn fits", []Edit{
		{poolGo, "!p.priced(own, first) || !fits(keep, p.room()) ||", "!p.priced(own, first) ||"}}},
	{"blind-closing-turn-kept-too-small", "G3: what is kept for the closing turn covers the reply before it", []Edit{
		{poolGo, "keep = k.closingBound(k.Input + out)", "keep = k.closingBound(k.Input)"}}},
	{"blind-zombie-reply-counts", "F7: what a superseded life heard of its model decides nothing", []Edit{
		{lifeGo, "!inForce && item.Kind != \"returned\":", "!inForce && item.Kind != \"returned\" && item.Kind != \"replied\":"},
		{turnGo, "	if s.Phase != Thinking || f.Lease != s.Lease {\n		return s, nil\n	}\n	s.ModelMS", "	if s.Phase != Thinking {\n		return s, nil\n	}\n	s.ModelMS"}}},
	{"blind-last-letter-twice", "P6: the newest letter of a sender counts once", []Edit{
		{lifeGo, "n == m.n && i > m.i }", "n == m.n && i >= m.i }"}}},
	{"blind-floor-above-what-is-out", "P12: the floor is below every letter that is not out", []Edit{
		{outletGo, "if f := l.Outbox.Floor(); f > l.base", "if f := l.N; f > l.base"}}},
	{"blind-missing-head-unnoticed", "P13: a log that has lost its head is damaged", []Edit{
		{claimGo, "	if e.Floor >= l.N || e.Floor > l.base &&", "	if e.Floor >= l.N {\n		return\n	}\n	if e.Floor > l.base &&"}}},
	{"blind-damage-not-confessed", "P13: a log that is not whole ends the run as damaged", []Edit{
		{claimGo, "	case mine && l.Damage != \"\" && !l.confess:", "	case mine && l.Damage == \"never\" && !l.confess:"},
		{lifeGo, "	if l.Damage != \"\" && l.Phase == Alive && !l.confess {", "	if l.Damage == \"never\" && l.Phase == Alive && !l.confess {"}}},
	{"blind-lane-stays-asleep", "P6: a letter that waited for a flight goes out after it", []Edit{
		{outboxGo, "	} else {\n		o.list(to, l)\n	}\n", "	}\n"}}},
	{"blind-account-never-left", "G1: who has ended keeps nothing back from others", []Edit{
		{membersGo, "	s.Pool = s.Pool.Leave(string(m.ID))\n", ""}}},
	{"blind-answer-of-another-proposal", "P7: a verdict names the proposal that it answers", []Edit{
		{stopGo, "	if !s.proposes(f.Proposal) {\n		return s, nil\n	}\n	s.Vetoes = 0", "	if s.Phase != Stopping {\n		return s, nil\n	}\n	s.Vetoes = 0"}}},
	{"blind-given-up-keeps-waiting", "G7: the parent of an agent that is given up hears of it", []Edit{
		{superGo, "	m.Outcome, m.Silent = o, s.Cancel != nil\n	s, fx := end(s, m)\n", "	m.Outcome, m.Silent, m.Done = o, s.Cancel != nil, true\n	s, fx := s.put(m), []Effect(nil)\n"}}},
}
