package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a node may run where there is no table of time zones

	"github.com/robfig/cron/v3"

	"github.com/troupe-run/troupe/internal/bus/names"
)

// What happens with due times at which no node was there.
const (
	MissedSkip = "skip" // they begin no run
	MissedOnce = "once" // one run replaces all of them
	MissedAll  = "all"  // each of them begins a run, the newest MissedMax
)

// What happens with a due time while the run before is at work. A schedule of a conversation has no such rule: its runs
// wait in the lane.
const (
	OverlapSkip     = "skip"     // it begins no run
	OverlapParallel = "parallel" // it begins a run
)

const (
	// EveryMin is the shortest interval.
	EveryMin = time.Second
	// EveryMax is the longest interval.
	EveryMax = 10 * 366 * 24 * time.Hour
	// MissedMax is how many missed due times MissedAll begins runs for.
	MissedMax = 100
	// LateMS is how long after its due time a run is on time: a due time that is older was missed.
	LateMS = 60_000
	// lookMax is how many due times one decision looks at.
	lookMax = 100_000
	// yearsAhead is how far ahead a due time may be.
	yearsAhead = 10
)

// Rule says when runs begin.
type Rule struct {
	// StartMS is the first due time, or the earliest one of a cron expression. Unix milliseconds.
	StartMS int64  `msgpack:"s,omitempty"`
	EveryMS int64  `msgpack:"e,omitempty"`
	Cron    string `msgpack:"c,omitempty"`
	// Zone is the time zone of the cron expression.
	Zone    string `msgpack:"z,omitempty"`
	Missed  string `msgpack:"m,omitempty"`
	Overlap string `msgpack:"o,omitempty"`
	// On is the name of the trigger: messages on its subject begin runs.
	On string `msgpack:"n,omitempty"`
	// Conversation: the runs belong to one, and wait for each other in its lane.
	Conversation bool `msgpack:"v,omitempty"`
}

// Times is what a request says about when its runs begin.
type Times struct{ At, Every, Zone, Missed, Overlap, On, Conversation string }

// IsEmpty reports whether a request says nothing: its run begins now.
func (t Times) IsEmpty() bool { return t.At == "" && t.Every == "" && t.On == "" }

// errRule: see Problem.
var errRule = errors.New("schedule: invalid rule")

// Problem describes an error in the requested times, with the remedy.
type Problem struct{ Text, Hint string }

func (p *Problem) Error() string { return p.Text + ": " + p.Hint }

// Unwrap makes each Problem an errRule.
func (p *Problem) Unwrap() error { return errRule }

func problem(hint, format string, args ...any) error {
	return &Problem{Text: fmt.Sprintf(format, args...), Hint: hint}
}

// NewRule makes the rule that a request asks for at a time.
func NewRule(w Times, now time.Time) (Rule, error) {
	if w.On != "" {
		return newTrigger(w, now)
	}
	r := Rule{Zone: w.Zone, Missed: w.Missed, Overlap: w.Overlap, Conversation: w.Conversation != ""}
	zone, err := time.LoadLocation(w.Zone)
	if err != nil || w.Zone == "Local" {
		return r, problem("name one of the IANA list, such as Europe/Berlin", "the time zone %.80q is unknown", w.Zone)
	}
	if err := r.completeChoices(); err != nil {
		return r, err
	}
	first := time.Time{}
	if w.At != "" {
		if first, err = ParseTime(w.At, now, zone); err != nil {
			return r, err
		}
		switch {
		case first.Before(now.Add(-LateMS * time.Millisecond)):
			return r, problem("name a time to come", "at %.80q is %s, in the past", w.At, first.Format(time.RFC3339))
		case first.After(now.AddDate(yearsAhead, 0, 0)):
			return r, problem(fmt.Sprintf("name a time within %d years", yearsAhead), "at %.80q is too far ahead", w.At)
		}
		r.StartMS = first.UnixMilli()
	}
	if w.Every != "" {
		err = r.setEvery(w.Every, now)
	}
	if err == nil {
		if _, ok := r.Next(r.StartMS - 1); !ok {
			err = problem("check day and month", "every %.80q is never due", w.Every)
		}
	}
	return r, err
}

// newTrigger makes the rule of a schedule whose runs begin with messages.
func newTrigger(w Times, now time.Time) (Rule, error) {
	switch {
	case w.At != "" || w.Every != "":
		return Rule{}, problem("make two schedules", "a schedule has a trigger, or times")
	case w.Missed != "" || w.Overlap != "":
		return Rule{}, problem("leave missed and overlap out: messages wait until a node takes them, and each begins a run",
			"a trigger has no due times")
	}
	name := strings.TrimPrefix(w.On, names.Names{}.TriggerPrefix())
	if _, err := (names.Names{}).TriggerSubject(name); err != nil {
		return Rule{}, problem("use one to four words of a-z, 0-9, - and _ with points between, and no wildcards: deploys or github.push", "on is %.80q", w.On)
	}
	return Rule{On: name, StartMS: now.UnixMilli(), Conversation: w.Conversation != ""}, nil
}

// completeChoices checks the choices, and fills in their defaults.
func (r *Rule) completeChoices() error {
	switch r.Missed {
	case "":
		r.Missed = MissedOnce
	case MissedSkip, MissedOnce, MissedAll:
	default:
		return problem("use skip, once or all", "missed is %.40q", r.Missed)
	}
	switch r.Overlap {
	case "":
		if r.Overlap = OverlapSkip; r.Conversation {
			r.Overlap = OverlapParallel // the lane orders them
		} else if r.Missed == MissedAll {
			return problem("use --conversation, in which they wait for each other, or --overlap parallel",
				"with missed all several runs begin at once")
		}
	case OverlapSkip, OverlapParallel:
		if r.Conversation {
			return problem("leave overlap out", "runs of a conversation wait for each other")
		}
	default:
		return problem("use skip or parallel", "overlap is %.40q", r.Overlap)
	}
	return nil
}

// setEvery reads a duration or a cron expression.
func (r *Rule) setEvery(text string, now time.Time) error {
	if d, err := time.ParseDuration(text); err == nil {
		if d < EveryMin || d > EveryMax {
			return problem(fmt.Sprintf("use %s to %d hours", EveryMin, int(EveryMax.Hours())), "every is %s", d)
		}
		if r.EveryMS = d.Milliseconds(); r.StartMS == 0 {
			r.StartMS = now.Add(d).UnixMilli()
		}
		return nil
	}
	if len(text) > EveryBytesMax {
		return problem(fmt.Sprintf("at most %d bytes; use several schedules for one task", EveryBytesMax), "every has %d bytes", len(text))
	}
	if _, err := parseCron(text, r.Zone); err != nil {
		return problem("use a duration such as 90m, or five fields such as '0 9 * * 1-5' (minute hour day month weekday)",
			"every %.80q is neither a duration nor a cron expression", text)
	}
	if r.Cron = text; r.StartMS == 0 {
		r.StartMS = now.UnixMilli() + 1
	}
	return nil
}

// EveryBytesMax bounds the text of a cron expression: it is parsed each time its schedule is looked at, and each list of
// schedules shows it.
const EveryBytesMax = 256

// cronFields are minute, hour, day of the month, month and day of the week.
var cronFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

var errCron = errors.New("schedule: not a cron expression")

func parseCron(text, zone string) (s cron.Schedule, err error) {
	defer func() { // the parser panics on some texts that name a zone
		if recover() != nil {
			err = errCron
		}
	}()
	if strings.Contains(text, "=") {
		return nil, errCron
	}
	if zone == "" {
		zone = "UTC"
	}
	if s, err = cronFields.Parse("CRON_TZ=" + zone + " " + text); err != nil {
		return nil, fmt.Errorf("%w: %w", errCron, err)
	}
	return s, nil
}

// Next returns the first due time after another one; ok is false if there is none.
func (r Rule) Next(afterMS int64) (dueMS int64, ok bool) { return r.times()(afterMS) }

// times returns Next for many due times: it reads the cron expression once.
func (r Rule) times() func(afterMS int64) (dueMS int64, ok bool) {
	if r.Cron == "" || r.On != "" {
		return r.nextInterval
	}
	s, err := parseCron(r.Cron, r.Zone)
	if err != nil {
		return func(int64) (int64, bool) { return 0, false }
	}
	return func(afterMS int64) (int64, bool) {
		next := s.Next(time.UnixMilli(max(afterMS, r.StartMS-1)))
		return next.UnixMilli(), !next.IsZero()
	}
}

func (r Rule) nextInterval(afterMS int64) (dueMS int64, ok bool) {
	switch {
	case r.On != "":
		return 0, false
	case afterMS < r.StartMS:
		return r.StartMS, true
	case r.EveryMS > 0:
		return r.StartMS + ((afterMS-r.StartMS)/r.EveryMS+1)*r.EveryMS, true
	}
	return 0, false
}

// timeForms are the forms of a time without a zone.
var timeForms = []string{"2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05"}

// ParseTime reads a time: RFC 3339, a date and a time in a zone, a time of the day (the next one), or "+10m".
func ParseTime(text string, now time.Time, zone *time.Location) (time.Time, error) {
	if after, ok := strings.CutPrefix(text, "+"); ok {
		if d, err := time.ParseDuration(after); err == nil && d >= 0 {
			return now.Add(d), nil
		}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, form := range timeForms {
		if t, err := time.ParseInLocation(form, text, zone); err == nil {
			return t, checkWallTime(t, text, form)
		}
	}
	if clock, err := time.Parse("15:04", text); err == nil {
		y, m, d := now.In(zone).Date()
		t := time.Date(y, m, d, clock.Hour(), clock.Minute(), 0, 0, zone)
		if !t.After(now) {
			t = time.Date(y, m, d+1, clock.Hour(), clock.Minute(), 0, 0, zone)
		}
		return t, checkWallTime(t, text, "15:04")
	}
	return time.Time{}, problem("use +10m, 15:04, '2026-11-30 09:00' or 2026-11-30T09:00:00+01:00",
		"at %.80q is not a time", text)
}

// checkWallTime refuses a time of the day that a change to summer time leaves out.
func checkWallTime(t time.Time, text, form string) error {
	if t.Format(form) != text {
		return problem("the clocks go forward then: name an hour later", "there is no %s in %s", text, t.Location())
	}
	return nil
}
