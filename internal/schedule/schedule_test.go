package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

func at(t *testing.T, text string) int64 {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v.UnixMilli()
}

func text(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// The due times of each kind of rule. Berlin leaves out 2:30 on 2026-03-29, and has 2:30 twice on 2026-10-25.
func TestDueTimes(t *testing.T) {
	for name, c := range map[string]struct {
		now  string
		wish Times
		want []string // the first due times; "": no more
	}{
		"once":                     {"2026-11-28T10:00:00Z", Times{At: "2026-11-28T10:30:00Z"}, []string{"2026-11-28T10:30:00Z", ""}},
		"in a while":               {"2026-11-28T10:00:00Z", Times{At: "+10m"}, []string{"2026-11-28T10:10:00Z", ""}},
		"time of the day":          {"2026-11-28T10:00:00Z", Times{At: "15:04", Zone: "Europe/Berlin"}, []string{"2026-11-28T14:04:00Z", ""}},
		"tomorrow":                 {"2026-11-28T10:00:00Z", Times{At: "09:00", Zone: "Europe/Berlin"}, []string{"2026-11-29T08:00:00Z", ""}},
		"date":                     {"2026-11-28T10:00:00Z", Times{At: "2026-11-30 09:00", Zone: "America/New_York"}, []string{"2026-11-30T14:00:00Z", ""}},
		"interval":                 {"2026-11-28T10:00:00Z", Times{Every: "90m"}, []string{"2026-11-28T11:30:00Z", "2026-11-28T13:00:00Z"}},
		"interval from a time":     {"2026-11-28T10:00:00Z", Times{At: "2026-11-29T00:00:00Z", Every: "24h"}, []string{"2026-11-29T00:00:00Z", "2026-11-30T00:00:00Z"}},
		"cron":                     {"2026-11-27T10:00:00Z", Times{Every: "0 9 * * 1-5"}, []string{"2026-11-30T09:00:00Z", "2026-12-01T09:00:00Z"}},
		"cron at this very moment": {"2026-11-27T09:00:00Z", Times{Every: "0 9 * * *"}, []string{"2026-11-28T09:00:00Z"}},
		"cron from a time on":      {"2026-11-27T10:00:00Z", Times{At: "2027-01-01T00:00:00Z", Every: "0 9 * * *"}, []string{"2027-01-01T09:00:00Z"}},
		"cron into summer time":    {"2026-03-28T00:00:00Z", Times{Every: "30 2 * * *", Zone: "Europe/Berlin"}, []string{"2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"}},
		"cron out of summer time":  {"2026-10-24T12:00:00Z", Times{Every: "30 2 * * *", Zone: "Europe/Berlin"}, []string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"}},
		"noon, into summer time":   {"2026-03-28T00:00:00Z", Times{Every: "0 12 * * *", Zone: "Europe/Berlin"}, []string{"2026-03-28T11:00:00Z", "2026-03-29T10:00:00Z"}},
		"interval, summer time":    {"2026-03-28T11:00:00Z", Times{Every: "24h", Zone: "Europe/Berlin"}, []string{"2026-03-29T11:00:00Z", "2026-03-30T11:00:00Z"}},
		"29 February":              {"2026-11-27T10:00:00Z", Times{Every: "0 0 29 2 *"}, []string{"2028-02-29T00:00:00Z"}},
		"trigger":                  {"2026-11-27T10:00:00Z", Times{On: "troupe.trigger.git.push"}, []string{""}},
	} {
		now, _ := time.Parse(time.RFC3339, c.now)
		rule, err := NewRule(c.wish, now)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for after := rule.StartMS - 1; len(c.want) > 0; c.want = c.want[1:] {
			due, ok := rule.Next(after)
			if got := text(due); ok && got != c.want[0] || !ok && c.want[0] != "" {
				t.Errorf("%s: %s %t, want %s", name, got, ok, c.want[0])
			}
			after = due
		}
	}
}

func TestWishesThatAreRefused(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	for want, w := range map[string]Times{
		"in the past":         {At: "2026-03-28T11:00:00Z"},
		"too far ahead":       {At: "2096-03-28T11:00:00Z"},
		"not a time":          {At: "soon"},
		"there is no":         {At: "2026-03-29 02:30", Zone: "Europe/Berlin"},
		"time zone":           {At: "+1m", Zone: "Europe/Nowhere"},
		`"../../etc/passwd"`:  {At: "+1m", Zone: "../../etc/passwd"},
		"every is 1ms":        {Every: "1ms"},
		"every has 263 bytes": {Every: strings.Repeat("0,", 127) + "0 * * * *"},
		"every is -1h0m0s":    {Every: "-1h"},
		"neither a duration":  {Every: "often"},
		`"* * * *"`:           {Every: "* * * *"},
		`"* * * * * *"`:       {Every: "* * * * * *"},
		`"@every 1s"`:         {Every: "@every 1s"},
		`"TZ=UTC 0 9 * * *"`:  {Every: "TZ=UTC 0 9 * * *"},
		`"CRON_TZ="`:          {Every: "CRON_TZ="},
		"never due":           {Every: "0 0 30 2 *"},
		"missed is":           {Every: "1h", Missed: "maybe"},
		"overlap is":          {Every: "1h", Overlap: "queue"},
		"wait for each other": {Every: "1h", Overlap: "skip", Conversation: "c"},
		"several runs begin":  {Every: "1h", Missed: "all"},
		"a trigger, or times": {At: "+1m", On: "x"},
		"no due times":        {On: "x", Missed: "all"},
		`on is "*"`:           {On: "*"},
		`on is "a.>"`:         {On: "a.>"},
		`on is "A"`:           {On: "A"},
		`on is "a.b.c.d.e"`:   {On: "a.b.c.d.e"},
		`on is "troupe.cmd.`:  {On: "troupe.cmd.run x"},
		`on is "$JS.API.>"`:   {On: "$JS.API.>"},
	} {
		if _, err := NewRule(w, now); !errors.Is(err, errRule) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", w, err, want)
		}
	}
}

// history is a schedule of every minute from 10:00 on, up to some facts.
func history(t *testing.T, rule Rule, facts ...Entry) *State {
	t.Helper()
	rule.StartMS, rule.EveryMS = at(t, "2026-11-28T10:00:00Z"), 60_000
	s := &State{}
	s.Apply(Entry{Place: 1, At: at(t, "2026-11-28T09:30:00Z"), Fact: Scheduled{Request: []byte("{}"), Rule: rule}})
	for i, e := range facts {
		e.Place = uint64(i + 2)
		s.Apply(e)
	}
	return s
}

func TestNext(t *testing.T) {
	ten := at(t, "2026-11-28T10:00:00Z")
	minute := func(n int64) int64 { return ten + n*60_000 }
	fired := []Entry{{At: minute(0), Fact: Due{AfterMS: ten - 1, DueMS: minute(0)}}, {At: minute(0), Fact: Fired{DueMS: minute(0), Run: "r0"}}}
	once, skip, all := Rule{Missed: MissedOnce, Overlap: OverlapParallel}, Rule{Missed: MissedSkip, Overlap: OverlapParallel}, Rule{Missed: MissedAll, Overlap: OverlapParallel}
	apart := Rule{Missed: MissedOnce, Overlap: OverlapSkip}
	for name, c := range map[string]struct {
		s     *State
		now   int64
		works bool
		want  Action
	}{
		"none":                   {&State{}, minute(0), false, Stop{}},
		"before":                 {history(t, once), minute(0) - 1, false, Wait{minute(0)}},
		"due":                    {history(t, once), minute(0), false, Append{Due{AfterMS: ten - 1, DueMS: minute(0)}}},
		"decided":                {history(t, once, fired[0]), minute(0), false, Open{DueMS: minute(0), Run: new(State).RunID("s", minute(0), "")}},
		"begun":                  {history(t, once, fired...), minute(0) + 1, false, Wait{minute(1)}},
		"decided, a day later":   {history(t, once, fired[0]), minute(1440), false, Open{DueMS: minute(0), Run: new(State).RunID("s", minute(0), "")}},
		"once, late":             {history(t, once), minute(0) + LateMS + 1, false, Append{Due{AfterMS: ten - 1, DueMS: minute(1), Missed: 1}}},
		"once, hours late":       {history(t, once, fired...), minute(180), false, Append{Due{AfterMS: minute(0), DueMS: minute(180), Missed: 179}}},
		"skip, on time":          {history(t, skip), minute(0) + LateMS - 1, false, Append{Due{AfterMS: ten - 1, DueMS: minute(0)}}},
		"skip, late":             {history(t, skip, fired...), minute(180) + 1, false, Append{Due{AfterMS: minute(0), DueMS: minute(179), Missed: 178, Why: WhyLate}}},
		"all":                    {history(t, all, fired...), minute(5), false, Append{Due{AfterMS: minute(0), DueMS: minute(1)}}},
		"all, too many":          {history(t, all, fired...), minute(MissedMax + 7), false, Append{Due{AfterMS: minute(0), DueMS: minute(8), Missed: 7}}},
		"overlap":                {history(t, apart, fired...), minute(1), true, Append{Due{AfterMS: minute(0), DueMS: minute(1), Why: WhyOverlap}}},
		"overlap over":           {history(t, apart, fired...), minute(1), false, Append{Due{AfterMS: minute(0), DueMS: minute(1)}}},
		"parallel":               {history(t, once, fired...), minute(1), true, Append{Due{AfterMS: minute(0), DueMS: minute(1)}}},
		"deleted":                {history(t, once, Entry{At: ten, Fact: Ended{}}), minute(1), false, Stop{}},
		"decided twice":          {history(t, once, fired[0], Entry{At: minute(1), Fact: Due{AfterMS: minute(0), DueMS: minute(1)}}), minute(1), false, Open{DueMS: minute(0), Run: new(State).RunID("s", minute(0), "")}},
		"decided before":         {history(t, once, fired[0], fired[1], fired[0]), minute(0), false, Wait{minute(1)}},
		"decided too early":      {history(t, once, Entry{At: minute(0) - 1, Fact: Due{AfterMS: ten - 1, DueMS: minute(0)}}), minute(0), false, Append{Due{AfterMS: ten - 1, DueMS: minute(0)}}},
		"refused":                {history(t, once, fired[0], Entry{At: ten, Fact: NewRefused(minute(0), "", "no")}), minute(0), false, Wait{minute(1)}},
		"refused, of another":    {history(t, once, fired[0], Entry{At: ten, Fact: NewRefused(minute(9), "", "no")}), minute(0), false, Open{DueMS: minute(0), Run: new(State).RunID("s", minute(0), "")}},
		"trigger":                {&State{Request: []byte("{}"), Rule: Rule{On: "x"}}, minute(0), false, Listen{}},
		"clock of a node is old": {history(t, once, fired...), minute(-600), false, Wait{minute(1)}},
	} {
		got, err := c.s.Next("s", c.now, func(string) (bool, error) { return c.works, nil })
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
	if early := history(t, once, Entry{At: minute(0) - 250, Fact: Due{AfterMS: ten - 1, DueMS: minute(0)}}); early.EarlyMS(Due{DueMS: minute(0)}) != 250 {
		t.Errorf("it is early by %d ms", early.EarlyMS(Due{DueMS: minute(0)}))
	}
}

// A condensed log says what the log said, unless another entry came between: then it has no effect.
func TestCondensing(t *testing.T) {
	ten := at(t, "2026-11-28T10:00:00Z")
	s := history(t, Rule{Missed: MissedOnce})
	for i := range int64(EntriesMax) {
		due := ten + (i/2)*60_000
		f := Fact(Due{AfterMS: s.LastMS, DueMS: due})
		if i%2 == 1 {
			f = Fired{DueMS: due, Run: fmt.Sprint(i)}
		}
		s.Apply(Entry{Place: s.Place + 1, At: due, Fact: f})
	}
	f, ok := s.Condense()
	if !ok {
		t.Fatal("the log is not condensed")
	}
	body, err := mailbox.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	decoded, ok, err := Decode(f.Kind(), func(into any) error { return mailbox.Unmarshal(body, into) })
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	var fresh State
	e := Entry{Place: s.Place + 1, At: ten, Fact: decoded}
	fresh.Apply(e)
	if fresh.LastRun != s.LastRun || fresh.Fired != s.Fired || fresh.LastMS != s.LastMS || fresh.Rule != s.Rule || fresh.Condensed != e.Place || fresh.Fired != EntriesMax/2 {
		t.Errorf("%+v, want %+v", fresh, s)
	}
	s.Apply(Entry{Place: s.Place + 1, At: ten, Fact: NewRefused(1, "", "")})
	s.Apply(Entry{Place: s.Place + 1, At: ten, Fact: decoded})
	if s.Condensed != 0 {
		t.Error("it forgot an entry")
	}
}

// Nodes with clocks of their own race, die between any two steps, and all are away for a while. Each due time begins at
// most one run, and none is lost unless the rule says so.
func TestNodesThatRace(t *testing.T) {
	for seed := range uint64(400) {
		playRace(t, rand.New(rand.NewPCG(seed, 1)), seed)
	}
}

type racer struct {
	skewMS int64
	seen   int // entries of the log that it has read
	todo   Action
}

func playRace(t *testing.T, r *rand.Rand, seed uint64) {
	t.Helper()
	start := at(t, "2026-11-28T10:00:00Z")
	rule := Rule{StartMS: start, EveryMS: 60_000 * (1 + r.Int64N(3)), Missed: []string{MissedSkip, MissedOnce, MissedAll}[r.IntN(3)], Overlap: OverlapParallel}
	log := []Entry{{Place: 1, At: start - 1000, Fact: Scheduled{Request: []byte("{}"), Rule: rule}}}
	runs := map[string]int64{} // that were opened, by id: when they were due
	nodes := []*racer{{}, {skewMS: r.Int64N(120_000) - 60_000}, {skewMS: r.Int64N(2000) - 1000}}
	now := start - 1000
	append1 := func(f Fact) { log = append(log, Entry{Place: uint64(len(log) + 1), At: now, Fact: f}) }
	for range 400 {
		if now += r.Int64N(20_000); r.IntN(50) == 0 {
			now += r.Int64N(20 * 60_000) // no node was there
		}
		n := nodes[r.IntN(len(nodes))]
		switch {
		case r.IntN(10) == 0:
			n.todo, n.seen = nil, 0 // it died, and another begins
		case n.todo == nil:
			n.seen = len(log)
			s := replay(log[:n.seen])
			act, err := s.Next("s", now+n.skewMS, nil)
			if err != nil {
				t.Fatal(err)
			}
			n.todo = act
		default:
			switch act := n.todo.(type) {
			case Append:
				append1(act.Fact)
			case Open:
				if due, again := runs[act.Run]; again && due != act.DueMS {
					t.Fatalf("seed %d: two due times have the run %s", seed, act.Run)
				}
				if runs[act.Run] = act.DueMS; r.IntN(4) > 0 { // else it dies before it appends
					append1(Fired{DueMS: act.DueMS, Run: act.Run})
				}
			}
			n.todo = nil
		}
	}
	judgeRace(t, seed, log, now, runs)
}

func replay(log []Entry) *State {
	s := &State{}
	for _, e := range log {
		s.Apply(e)
	}
	return s
}

func judgeRace(t *testing.T, seed uint64, log []Entry, now int64, runs map[string]int64) {
	t.Helper()
	s := replay(log)
	var opened []int64
	for _, due := range runs {
		opened = append(opened, due)
	}
	slices.Sort(opened)
	if len(slices.Compact(slices.Clone(opened))) != len(runs) {
		t.Errorf("seed %d: a due time has two runs: %v", seed, opened)
	}
	passed := 0
	for due, ok := s.Rule.Next(s.Rule.StartMS - 1); ok && due <= s.LastMS; due, ok = s.Rule.Next(due) {
		passed++
	}
	pending := 0
	if s.Pending != 0 {
		pending = 1
	}
	if passed != s.Fired+s.Missed+pending || len(runs) < s.Fired || len(runs) > s.Fired+pending {
		t.Errorf("seed %d: %d due times, %d fired, %d missed, %d pending, %d runs", seed, passed, s.Fired, s.Missed, pending, len(runs))
	}
	seen := &State{}
	for _, e := range log {
		before := seen.LastMS
		if seen.Apply(e); before != 0 && seen.LastMS != before && seen.LastMS > e.At {
			t.Errorf("seed %d: %s was decided before it was due", seed, text(seen.LastMS))
		}
	}
	if all := (now - s.Rule.StartMS) / s.Rule.EveryMS; s.Rule.Missed == MissedAll && s.Missed > 0 && all < MissedMax {
		t.Errorf("seed %d: %d due times were lost", seed, s.Missed)
	}
}

// A message of a trigger is taken once, whatever nodes say about it, and a schedule remembers the newest ones.
func TestMessages(t *testing.T) {
	s := &State{}
	s.Apply(Entry{Place: 1, At: 1, Fact: Scheduled{Request: []byte("{}"), Rule: Rule{On: "x"}}})
	for i := range SeenMax + 5 {
		s.Apply(Entry{Place: uint64(i + 2), At: int64(i), Fact: Taken{ID: fmt.Sprint(i), Run: "a"}})
		s.Apply(Entry{Place: uint64(i + 2), At: int64(i), Fact: Taken{ID: fmt.Sprint(i), Run: "b"}})
	}
	if m, ok := s.Find(fmt.Sprint(SeenMax)); !ok || m.Run != "a" || len(s.Messages) != SeenMax || s.Fired != SeenMax+5 {
		t.Errorf("%+v %t, %d messages, %d fired", m, ok, len(s.Messages), s.Fired)
	}
	if _, ok := s.Find("4"); ok {
		t.Error("it remembers an old message")
	}
	last := s.Messages[len(s.Messages)-1].At
	if wait := s.TriggerWaitMS(last); wait != triggerSpanMS-TriggerRate+1 {
		t.Errorf("the next message waits for %d ms", wait)
	}
}

// A refused message began no run: the newest run is the one of the message before.
func TestApply_ARefusedRunIsNotTheLastRun(t *testing.T) {
	ten := at(t, "2026-11-28T10:00:00Z")
	s := history(t, Rule{On: "x"})
	apply := func(atMS int64, f Fact) { s.Apply(Entry{Place: s.Place + 1, At: atMS, Fact: f}) }
	want := func(when, run string, atMS int64) {
		t.Helper()
		if s.LastRun != run || s.LastRunMS != atMS {
			t.Errorf("%s: the last run is %q of %d, want %q of %d", when, s.LastRun, s.LastRunMS, run, atMS)
		}
	}
	apply(ten, Taken{ID: "#1", Run: "r1"})
	apply(ten, NewRefused(0, "r1", "no"))
	want("the first is refused", "", 0)
	apply(ten+1, Taken{ID: "#2", Run: "r2"})
	apply(ten+2, Taken{ID: "#3", Run: "r3"})
	apply(ten+3, NewRefused(0, "r3", "no"))
	want("the third is refused", "r2", ten+1)
	apply(ten+4, Taken{ID: "#4", Run: "r4"})
	apply(ten+5, NewRefused(0, "r2", "no"))
	want("an older one is refused", "r4", ten+4)
}

func TestNames(t *testing.T) {
	if id, ok := OfLog(LogOf("nightly")); !ok || id != "nightly" || !mailbox.IsReserved(LogOf("nightly").Run()) {
		t.Errorf("%s %t", id, ok)
	}
	var s State
	a, b := s.RunID("s", 1, ""), s.RunID("s", 2, "")
	if a == b || a > b || a != s.RunID("s", 1, "") || a == s.RunID("t", 1, "") || a == s.RunID("s", 1, "m") || len(a) != 26 || strings.ToLower(a) != a {
		t.Error(a, b)
	}
}

// The salt of a schedule is in the ids of its runs, also after its log was condensed.
func TestSaltIsInRunIDs(t *testing.T) {
	ids := map[string]bool{}
	for _, salt := range []string{"", "a", "b"} {
		s := &State{}
		s.Apply(Entry{Place: 1, At: 1, Fact: Scheduled{Request: []byte("{}"), Salt: []byte(salt)}})
		s.Apply(Entry{Place: 2, At: 2, Fact: Scheduled{Request: []byte("{}"), Salt: []byte("second")}})
		again := &State{}
		again.Apply(Entry{Place: 3, At: 3, Fact: Condensed{After: 2, State: *s}})
		if again.RunID("s", 1, "") != s.RunID("s", 1, "") {
			t.Errorf("salt %q: another id after the log was condensed", salt)
		}
		ids[s.RunID("s", 1, "")] = true
	}
	if len(ids) != 3 {
		t.Errorf("%v", ids)
	}
}

// A schedule that was away for years decides about its due times in parts. Each is counted, and the newest begin their runs.
func TestVeryManyMissedTimes(t *testing.T) {
	start := at(t, "2016-11-28T10:00:00Z")
	for missed, want := range map[string]int{MissedSkip: 0, MissedOnce: 1, MissedAll: MissedMax} {
		for _, rule := range []Rule{{EveryMS: 60_000}, {Cron: "* * * * *", Zone: "Europe/Berlin"}} {
			rule.StartMS, rule.Missed, rule.Overlap = start, missed, OverlapParallel
			now, s, steps := start+(3*lookMax+7)*60_000, &State{}, 0
			s.Apply(Entry{Place: 1, At: start, Fact: Scheduled{Request: []byte("{}"), Rule: rule}})
			for ; steps < 300; steps++ {
				act, err := s.Next("s", now, nil)
				if err != nil {
					t.Fatal(err)
				}
				e := Entry{Place: s.Place + 1, At: now}
				switch act := act.(type) {
				case Append:
					e.Fact = act.Fact
				case Open:
					e.Fact = Fired{DueMS: act.DueMS, Run: act.Run}
				}
				if e.Fact == nil {
					break
				}
				s.Apply(e)
			}
			if missed == MissedSkip { // the newest two are not late
				want = s.Fired
			}
			if s.Fired != want || s.Fired+s.Missed != 3*lookMax+8 {
				t.Errorf("%s %+v: %d fired, %d missed", missed, rule, s.Fired, s.Missed)
			}
		}
	}
}
