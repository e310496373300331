package request

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/schedule"
)

// addScheduleFlags adds the flags that make a schedule of a run.
func (r *Flags) addScheduleFlags(f *pflag.FlagSet) {
	q := &r.Request
	f.StringVar(&q.At, "at", "",
		"begin the run at a time, on a node that stays (troupe up), and print the id of the schedule: +10m, 15:04, "+
			"'2026-11-30 09:00' or RFC 3339")
	f.StringVar(&q.Every, "every", "",
		"begin a run again and again: a duration such as 1h, or five fields of cron such as '0 9 * * 1-5'; with --at "+
			"from then on")
	f.StringVar(&q.Zone, "zone", "", "time zone of --at and --every, such as Europe/Berlin (default that of this machine)")
	f.StringVar(&q.Missed, "missed", "",
		"what due times begin at which no node was there: skip, once (one run for all), all (default once)")
	f.StringVar(&q.Overlap, "overlap", "",
		"what a due time begins while the run before works: skip (nothing), parallel (default skip; runs of a "+
			"conversation wait)")
	f.StringVar(&q.On, "on", "",
		"begin a run with each message on the NATS subject troupe.trigger.NAME; its text is added to the prompt, marked "+
			"as not the user's")
}

// IsScheduled reports whether the request makes a schedule.
func (r *Flags) IsScheduled() bool {
	return r.Request.At != "" || r.Request.Every != "" || r.Request.On != ""
}

// completeSchedule fills in the time zone of this machine, because the node may be in another one. It refuses times that
// no node can read.
func (r *Flags) completeSchedule(getenv func(string) string) error {
	q := &r.Request
	if q.Zone == "" && (q.At != "" || q.Every != "") {
		q.Zone = localZone(getenv)
	}
	zone, err := time.LoadLocation(q.Zone)
	if err == nil && q.At != "" {
		_, err = schedule.ParseTime(q.At, time.Now(), zone)
	}
	if err == nil && q.Every != "" {
		_, err = schedule.NewRule(schedule.Times{Every: q.Every, Zone: q.Zone}, time.Now())
	}
	if bad := (*schedule.Problem)(nil); errors.As(err, &bad) {
		return exit.UsageError(bad.Hint, "%s", bad.Text)
	}
	return nil // the node refuses a zone that it does not know
}

// localZone is the IANA name of the time zone of this machine; "" (UTC) if it has none.
func localZone(getenv func(string) string) string {
	names := []string{strings.TrimPrefix(getenv("TZ"), ":")}
	if path, err := filepath.EvalSymlinks("/etc/localtime"); err == nil {
		if _, name, ok := strings.Cut(path, "zoneinfo/"); ok {
			names = append(names, name)
		}
	}
	if data, err := os.ReadFile("/etc/timezone"); err == nil {
		names = append(names, strings.TrimSpace(string(data)))
	}
	for _, name := range names {
		if _, err := time.LoadLocation(name); err == nil && name != "" && name != "Local" {
			return name
		}
	}
	return ""
}
