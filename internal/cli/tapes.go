package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"
)

// tapeFlags say where the exchanges with models are kept, or come from.
type tapeFlags struct{ record, replay string }

func (t *tapeFlags) add(f *pflag.FlagSet) {
	f.StringVar(&t.record, "record", "", "keep the exchanges with models in this directory, without secrets")
	f.StringVar(&t.replay, "replay", "", "play the exchanges with models from this directory, without a key or a network")
}

const tapesHere = "leave -s and --detach out, or use another --store-dir"

// check refuses what cannot be: the models are asked where the node runs.
func (t *tapeFlags) check(work string, elsewhere, detached bool) error {
	switch {
	case t.record == "" && t.replay == "":
		return nil
	case t.record != "" && t.replay != "":
		return usage("leave one of them out", "--record and --replay contradict each other")
	case elsewhere || detached:
		return usage(tapesHere, "--record and --replay need a node in this process")
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
			return usage("keep the recording in another directory, see docs/cassettes.md", "dir: %s is the recording", work)
		}
	}
	return nil
}

// here rejects a node that another process runs.
func (t *tapeFlags) here(s *seat) error {
	if t.record == "" && t.replay == "" || s.host != nil {
		return nil
	}
	return usage(tapesHere, "--record and --replay need a node in this process, and process %d has the state directory", s.joined)
}

// left reports how many recorded exchanges were never requested.
func (t *tapeFlags) left(a *console, s *seat) {
	if t.replay == "" || s.host == nil || a.quiet {
		return
	}
	if played, all := s.host.Played(); played < all {
		a.say(a.errors.Yellow(fmt.Sprintf("note: %d of the %d recorded exchanges were not asked for: the run went another way than when it was recorded", all-played, all)))
	}
}
