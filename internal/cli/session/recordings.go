package session

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
)

// Recordings say where the exchanges with models are kept, or come from.
type Recordings struct{ record, replay string }

// AddFlags adds --record and --replay.
func (t *Recordings) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&t.record, "record", "", "record the exchanges with models in this directory, without secrets")
	f.StringVar(&t.replay, "replay", "",
		"replay recorded exchanges with models from this directory, without a key or network")
}

const needsOwnNode = "leave -s and --detach out, or use another --store-dir"

// Check refuses what cannot be: the models are asked where the node runs.
func (t *Recordings) Check(work string, elsewhere, detached bool) error {
	switch {
	case t.record == "" && t.replay == "":
		return nil
	case t.record != "" && t.replay != "":
		return exit.UsageError("leave one of them out", "--record and --replay contradict each other")
	case elsewhere || detached:
		return exit.UsageError(needsOwnNode, "--record and --replay need a node in this process")
	}
	for _, dir := range []*string{&t.record, &t.replay} {
		if *dir == "" {
			continue
		}
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return fmt.Errorf("directory %s: %w", *dir, err)
		}
		*dir = abs
		if there, err := filepath.Abs(work); err == nil && work != "" && there == abs { // before a recorder writes into it
			return exit.UsageError("keep the recording in another directory, see docs/cassettes.md",
				"dir: %s is the recording", work)
		}
	}
	return nil
}

// RequireOwnNode rejects a node that another process runs.
func (t *Recordings) RequireOwnNode(s *Session) error {
	if t.record == "" && t.replay == "" || s.Node != nil {
		return nil
	}
	return exit.UsageError(needsOwnNode,
		"--record and --replay need a node in this process, and process %d has the state directory", s.OwnerPID)
}

// ReportUnplayed reports how many recorded exchanges were never requested.
func (t *Recordings) ReportUnplayed(a *console.Console, s *Session) {
	if t.replay == "" || s.Node == nil || a.Quiet {
		return
	}
	if played, all := s.Node.CountReplayed(); played < all {
		a.Say(a.ErrStyle.Yellow(fmt.Sprintf("note: %d of the %d recorded exchanges were not asked for: the run went another way than when it was recorded", all-played, all)))
	}
}
