package host

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/troupe-run/troupe/model/cassette"
	"github.com/troupe-run/troupe/model/pick"
)

// tapes record what a node exchanges with its models, or play it; most nodes do
// neither.
type tapes struct {
	rec  *cassette.Recorder
	play *cassette.Player
	dir  string // of either; "": none
}

// errTapes: a node records or plays.
var errTapes = errors.New("host: a node records what its models say, or plays what was recorded, not both")

func openTapes(cfg Config, x exits) (t tapes, err error) {
	switch {
	case cfg.Record != "" && cfg.Replay != "":
		return t, errTapes
	case cfg.Record != "":
		t.rec, err = cassette.NewRecorder(cassette.Config{Dir: cfg.Record, Scrub: x.mask.Values})
	case cfg.Replay != "":
		t.play, err = cassette.NewPlayer(cassette.PlayConfig{Dir: cfg.Replay, Scrub: x.mask.Values})
	}
	if err != nil {
		err = fmt.Errorf("host: %w", err)
	}
	t.dir = cmp.Or(cfg.Record, cfg.Replay)
	return t, err
}

// transport carries the requests; nil is the network.
func (t tapes) transport() http.RoundTripper {
	switch {
	case t.rec != nil:
		return t.rec
	case t.play != nil:
		return t.play
	}
	return nil
}

// env is the environment that a model is chosen by. A replay has that of the
// recording, and nothing of the real one: no key, no address.
func (t tapes) env(real func(string) string) func(string) string {
	if t.play == nil {
		return real
	}
	recorded := t.play.Label().Env
	return func(name string) string {
		if slices.Contains(pick.Keys(), name) || slices.Contains(pick.Addresses(), name) {
			return recorded[name]
		}
		return real(name)
	}
}

// model is the route of a run that names none.
func (t tapes) model(named string) string {
	if named == "" && t.play != nil {
		return t.play.Label().Model
	}
	return named
}

// now is the time that prompts name.
func (t tapes) now() time.Time {
	if t.play != nil && !t.play.Label().At.IsZero() {
		return t.play.Label().At
	}
	return time.Now()
}

// begin takes note of a run that begins.
func (t tapes) begin(dir string, c pick.Choice, now time.Time, real func(string) string) (note string, err error) {
	if err := t.apart(dir); err != nil {
		return "", err
	}
	switch {
	case t.play != nil:
		t.play.At(dir)
		return "", nil
	case t.rec == nil:
		return "", nil
	}
	l := cassette.Label{Model: c.Name(), Dir: dir, At: now, Env: map[string]string{}}
	for _, name := range pick.Keys() {
		if real(name) != "" {
			l.Env[name] = cassette.Masked
		}
	}
	for _, name := range pick.Addresses() {
		if v := real(name); v != "" {
			l.Env[name] = cassette.Address(v)
		}
	}
	if !c.Wired() {
		note = c.Name() + " is asked without a wire: there is nothing to record but the label; the log of the run holds what it said"
	}
	return note, t.rec.Begin(l)
}

// apart refuses a run in the very directory of the recording: below it the tools
// leave the recording out, but this would be all that they have.
func (t tapes) apart(dir string) error {
	if t.dir == "" || dir == "" {
		return nil
	}
	tape, err := os.Stat(t.dir)
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	if work, err := os.Stat(dir); err == nil && os.SameFile(tape, work) {
		return bad("keep the recording in another directory, see docs/cassettes.md", "dir: %s is the recording", dir)
	}
	return nil
}

// Played is how many recorded exchanges were played, of how many there are;
// none if this node does not play.
func (h *Host) Played() (played, all int) {
	if h.tapes.play == nil {
		return 0, 0
	}
	return h.tapes.play.Played()
}

// close says what could not be recorded.
func (t tapes) close() error {
	if t.rec == nil {
		return nil
	}
	return t.rec.Err()
}
