package modelhttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// slowBody is a response body that gives a piece after every pause, in the time of
// a synctest bubble, and then nothing until its request is over.
type slowBody struct {
	ctx    context.Context
	pause  time.Duration
	pieces []string
}

func (d *slowBody) Read(p []byte) (int, error) {
	if len(d.pieces) == 0 {
		<-d.ctx.Done()
		return 0, d.ctx.Err()
	}
	timer := time.NewTimer(d.pause)
	defer timer.Stop()
	select {
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	case <-timer.C:
	}
	n := copy(p, d.pieces[0])
	d.pieces = d.pieces[1:]
	return n, nil
}

func (d *slowBody) Close() error { return nil }

type roundTripFunc func(*http.Request) (*http.Response, error)

func (t roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// readStream reads a stream to its end.
func readStream(a *modelhttp.Attempt) error {
	to := modelhttp.NewEndpoint(&url.URL{Scheme: "http", Host: "127.0.0.1", Path: "/"})
	return a.Stream(to, nil, func(modelhttp.Event) (bool, error) { return false, nil })
}

func repeatPiece(s string, n int) []string { return strings.SplitAfter(strings.Repeat(s, n), s)[:n] }

func TestTimersRunFromLineToLine(t *testing.T) {
	const pause = 80 * time.Second
	for name, c := range map[string]struct {
		pause  time.Duration
		pieces []string
		after  time.Duration
		want   string
	}{
		"nothing":                 {pause, nil, modelhttp.DefaultFirstByte, "no first byte of the response within 2m0s"},
		"bytes without a line":    {time.Second, repeatPiece(".", 1000), time.Second + modelhttp.DefaultIdle, "no event within 1m30s"},
		"one byte":                {pause, []string{"."}, pause + modelhttp.DefaultIdle, "no event within 1m30s"},
		"keep-alives only":        {pause, repeatPiece(":\n", 50), modelhttp.DefaultContent, "no content of the reply within 10m0s"},
		"lines that end in CR":    {pause, repeatPiece(":\r", 5), 5*pause + modelhttp.DefaultIdle, "no event within 1m30s"},
		"lines, then silence":     {pause, repeatPiece(":\n", 5), 5*pause + modelhttp.DefaultIdle, "no event within 1m30s"},
		"half a line, then bytes": {pause, []string{":\n", "a", "b"}, pause + modelhttp.DefaultIdle, "no event within 1m30s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := modelhttp.NewAttempt(t.Context(), roundTripFunc(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: &slowBody{r.Context(), c.pause, c.pieces}}, nil
			}), modelhttp.Timeouts{})
			defer a.Close()
			began := time.Now()
			err := readStream(a)
			var e *model.Error
			if !errors.As(err, &e) || e.Class != model.Network || e.Message != c.want || time.Since(began) != c.after {
				t.Errorf("%s: %v after %s, want %s", name, err, time.Since(began), c.after)
			}
		})
	}
}

func TestHeadersAreWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := modelhttp.NewAttempt(t.Context(), roundTripFunc(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), modelhttp.Timeouts{Headers: time.Second})
		defer a.Close()
		began := time.Now()
		err := readStream(a)
		var e *model.Error
		if !errors.As(err, &e) || e.Message != "no response headers within 1s" || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// TestTheMediaTypeOfAnErrorHasNoSecret: a server may answer with the key that it was sent.
func TestTheMediaTypeOfAnErrorHasNoSecret(t *testing.T) {
	const key = "AbC-Def-123"
	a := modelhttp.NewAttempt(t.Context(), roundTripFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"Text/X-" + key + "; a=" + key}}, Body: http.NoBody}, nil
	}), modelhttp.Timeouts{}, key)
	defer a.Close()
	err := readStream(a)
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.Misconfigured || !strings.Contains(e.Message, `"Text/X-[redacted]"`) {
		t.Errorf("%v", err)
	}
}
