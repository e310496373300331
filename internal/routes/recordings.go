package routes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/troupe-run/troupe/internal/cassette"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/model"
)

// Recordings record a node's exchanges with its models, or replay them. The zero value does
// neither.
type Recordings struct {
	rec  *cassette.Recorder
	play *cassette.Player
	dir  string // of either; "": none
}

// Dir is the directory of the recording; "" without one.
func (t Recordings) Dir() string { return t.dir }

// ErrRecordings: a node either records or replays.
var ErrRecordings = errors.New("routes: a node either records model replies or replays recordings, not both")

// OpenRecordings records to one directory or replays from the other; at most one is given.
func OpenRecordings(record, replay string, mask *redact.Masker) (t Recordings, err error) {
	switch {
	case record != "" && replay != "":
		return t, ErrRecordings
	case record != "":
		t.rec, err = cassette.NewRecorder(cassette.Config{Dir: record, Scrub: mask.MaskValues})
	case replay != "":
		t.play, err = cassette.NewPlayer(cassette.PlayConfig{Dir: replay, Scrub: mask.MaskValues})
	}
	if err != nil {
		err = fmt.Errorf("routes: %w", err)
	}
	t.dir = cmp.Or(record, replay)
	return t, err
}

// httpTransport carries the requests; nil is the network.
func (t Recordings) httpTransport() http.RoundTripper {
	switch {
	case t.rec != nil:
		return t.rec
	case t.play != nil:
		return t.play
	}
	return nil
}

// modelEnv returns the environment by which a model is chosen. A replay uses that of the
// recording, and nothing of the real one: no key, no address.
func (t Recordings) modelEnv(real func(string) string) func(string) string {
	if t.play == nil {
		return real
	}
	recorded := t.play.Label().Env
	return func(name string) string {
		if slices.Contains(provider.KeyVariables(), name) || slices.Contains(provider.AddressVariables(), name) {
			return recorded[name]
		}
		return real(name)
	}
}

// replayedClient reports no rates: those of the recording no longer apply.
type replayedClient struct{ model.Client }

// Complete implements model.Client.
func (c replayedClient) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	reply, err := c.Client.Complete(ctx, req, emit)
	reply.Limits = model.RateLimits{}
	return reply, err
}

// DefaultRoute returns the route of a run that names none.
func (t Recordings) DefaultRoute(named string) string {
	if named == "" && t.play != nil {
		return t.play.Label().Model
	}
	return named
}

// PromptTime returns the time for prompts.
func (t Recordings) PromptTime() time.Time {
	if t.play != nil && !t.play.Label().At.IsZero() {
		return t.play.Label().At
	}
	return time.Now()
}

// BeginRun records that a run begins.
func (t Recordings) BeginRun(dir string, c provider.Choice, now time.Time, real func(string) string) (note string, err error) {
	if err := t.checkSeparateDir(dir); err != nil {
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
	for _, name := range provider.KeyVariables() {
		if real(name) != "" {
			l.Env[name] = cassette.Masked
		}
	}
	for _, name := range provider.AddressVariables() {
		if v := real(name); v != "" {
			l.Env[name] = cassette.Address(v)
		}
	}
	if !c.UsesHTTP() {
		note = c.Name() + " makes no HTTP requests: only its name can be recorded; the run's log has its replies"
	}
	return note, t.rec.Begin(l)
}

// checkSeparateDir refuses a run in the very directory of the recording: in a directory that contains
// the recording the tools hide it, but here nothing would be left.
func (t Recordings) checkSeparateDir(dir string) error {
	if t.dir == "" || dir == "" {
		return nil
	}
	tape, err := os.Stat(t.dir)
	if err != nil {
		return fmt.Errorf("routes: %w", err)
	}
	if work, err := os.Stat(dir); err == nil && os.SameFile(tape, work) {
		return refuse.Bad("keep the recording in another directory, see docs/cassettes.md", "dir: %s is the recording", dir)
	}
	return nil
}

// CountReplayed returns how many recorded exchanges were replayed, and how many there are; none if
// this node does not replay.
func (t Recordings) CountReplayed() (played, all int) {
	if t.play == nil {
		return 0, 0
	}
	return t.play.Played()
}

// Close returns the errors of the recording.
func (t Recordings) Close() error {
	if t.rec == nil {
		return nil
	}
	return t.rec.Err()
}
