package wiretest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/cassette"
	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// RunRecorded runs the suite with clients that record each attempt, play it
// again from the files, and demand the same reply, deltas and error: of a good
// stream, and of every fault of the suite. with makes an adapter that sends its
// requests by a transport.
func RunRecorded(t *testing.T, d Dialect, with func(root string, t modelhttp.Timeouts, by http.RoundTripper) (model.Client, error)) {
	var tries atomic.Int64
	t.Cleanup(func() { // when all parts of the suite are over
		if tries.Load() == 0 {
			t.Error("nothing was played again")
		}
	})
	d.New = func(root string, timeouts modelhttp.Timeouts) (model.Client, error) {
		return &recordingClient{t: t, make: func(by http.RoundTripper) (model.Client, error) { return with(root, timeouts, by) }, tries: &tries}, nil
	}
	Run(t, d)
}

// recordingClient is a client whose every attempt is made twice.
type recordingClient struct {
	t     *testing.T
	make  func(http.RoundTripper) (model.Client, error)
	tries *atomic.Int64
}

// attemptResult is everything that an attempt returns.
type attemptResult struct {
	Reply  model.Reply
	Deltas []model.Delta
	Err    *model.Error
}

func (r *recordingClient) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	dir := r.t.TempDir()
	rec, err := cassette.NewRecorder(cassette.Config{Dir: dir, Scrub: scrubKey})
	if err != nil {
		r.t.Error(err)
		return model.Reply{}, err
	}
	client, err := r.make(rec)
	if err != nil {
		return model.Reply{}, err
	}
	var was attemptResult
	var failed error
	was.Reply, failed = client.Complete(ctx, req, teeDeltas(&was, emit))
	errors.As(failed, &was.Err)
	if rec.Err() != nil {
		r.t.Error(rec.Err())
	}
	r.replayRecording(ctx, dir, req, was)
	return was.Reply, failed
}

func teeDeltas(h *attemptResult, emit func(model.Delta)) func(model.Delta) {
	return func(d model.Delta) {
		h.Deltas = append(h.Deltas, d)
		if emit != nil {
			emit(d)
		}
	}
}

// replayRecording replays the recording, and compares. An attempt that its caller
// stopped cannot be stopped at the same place again.
func (r *recordingClient) replayRecording(ctx context.Context, dir string, req model.Request, was attemptResult) {
	play, err := cassette.NewPlayer(cassette.PlayConfig{Dir: dir, Scrub: scrubKey})
	if err != nil {
		r.t.Error(err)
		return
	}
	if _, all := play.Played(); all == 0 || ctx.Err() != nil || was.Err != nil && was.Err.Class == model.Undecodable {
		return // nothing was sent, or more came than is kept
	}
	client, err := r.make(play)
	if err != nil {
		r.t.Error(err)
		return
	}
	var is attemptResult
	var failed error
	is.Reply, failed = client.Complete(context.WithoutCancel(ctx), req, teeDeltas(&is, nil))
	errors.As(failed, &is.Err)
	if diff := cmp.Diff(was, is); diff != "" {
		r.t.Errorf("%s: played again it is not the same (-was +is): %s", r.t.Name(), diff)
	}
	r.tries.Add(1)
}

// scrubKey replaces the scrubber of a node: it redacts one value. Adapters write
// the same replacement.
func scrubKey(s string) string { return strings.ReplaceAll(s, Key, "[redacted]") }
