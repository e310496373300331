package recording

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// takeAgent makes the file of one agent of a run. Its logs are judged as those of a restored run will be, so that no
// file is written that cannot be restored.
func takeAgent(f runfile.File, who string) (runfile.File, error) {
	run := f.Header.Run
	if report := verify.Logs(f.Entries); len(report.Findings) > 0 || report.Damaged {
		return f, exit.UsageError("`troupe verify "+run+"` shows what is wrong", "agent %.80s of %s: the logs of the run are not whole", who, run)
	}
	id := client.NewID()
	entries, err := runfile.TakeAgent(f.Entries, spec.ID(who), id, time.Now().UnixMilli())
	var r *replay.Run
	if err == nil {
		r, err = judgeTaken(entries)
	}
	if err != nil {
		return f, exit.UsageError("`troupe describe "+run+"` shows the ids of its agents; `troupe dump "+run+"` writes the whole run", "agent %.80s of %s: %v", who, run, err)
	}
	f.Header.Run, f.Header.Result, f.Entries = id, nil, entries
	switch {
	case r.Super.Phase == supervisor.Over:
		f.Header.State = string(client.RunFinished)
	case r.Super.IsParked():
		f.Header.State = string(client.RunParked)
	default:
		f.Header.State = string(client.RunLive)
	}
	named := runfile.NamedBlobs(entries)
	f.Blobs = maps.Clone(f.Blobs)
	maps.DeleteFunc(f.Blobs, func(ref string, _ []byte) bool { return !slices.Contains(named, ref) })
	return f, nil
}

// judgeTaken refuses logs that do not keep the rules, or from which this version comes to other decisions.
func judgeTaken(entries []mailbox.Message) (*replay.Run, error) {
	if report := verify.Logs(entries); len(report.Findings) > 0 {
		return nil, fmt.Errorf("%w: %s", runfile.ErrOneAgent, report.Findings[0])
	}
	r := replay.Logs(entries, replay.Options{})
	if err := cmp.Or(r.Err(), r.ReadErr); err != nil {
		return nil, fmt.Errorf("%w: %w", runfile.ErrOneAgent, err)
	}
	return r, nil
}
