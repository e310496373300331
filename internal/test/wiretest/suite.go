// Package wiretest is the conformance suite of provider adapters: what every
// model.Client over HTTP must do when the wire is well, slow, cut or hostile.
// The servers of the suite are real, on loopback.
package wiretest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// Key is the secret that the suite gives to clients and looks for in errors.
const Key = "sk-test-4f1c9a77e0b2"

// Dialect is how one provider speaks. All streams are lists of whole events.
type Dialect struct {
	// New makes a client of the server at root (no path) that uses Key.
	New func(root string, t modelhttp.Timeouts) (model.Client, error)
	// Hello contains the text "Hello, " and "wörld", and reports HelloUsage.
	Hello      []string
	HelloUsage model.Usage
	// NoUsage is Hello without any usage in it.
	NoUsage []string
	// Calls contains the text "I look." and calls read_file {"path":"a.go"} and
	// grep {"pattern":"x y","glob":"*.go"}, their pieces interleaved.
	Calls []string
	// NoMarks is Calls without the events that mark the end of calls and reply.
	NoMarks []string
	// Limit contains the text "I look." and is cut by the output limit inside the arguments
	// of read_file: {"path":"a
	Limit []string
	// WholeCalls means that calls arrive whole or not at all, so that Limit contains none.
	WholeCalls bool
	// Refusal and Overload: a refused reply, and an overload error in a stream.
	Refusal, Overload []string
	// ErrorBody renders the body of an error response of a kind the provider knows.
	ErrorBody func(kind, message string) string
	// TooLong, BadRequest are such bodies, for status 400.
	TooLong, BadRequest string
	// Thinking is a reply with the signed thinking of its model, and a call.
	// Its issuer is judged to be the model of Request.
	Thinking []string
	// ErrorEvent renders an error of a kind as an event of a stream.
	ErrorEvent func(kind, message string) string
	// Judge judges the body of a request; every request of the suite is judged.
	Judge func(body []byte) error
}

// wantCalls are the calls of the stream Calls.
var wantCalls = []model.ToolCall{
	{Name: "read_file", Args: `{"path":"a.go"}`},
	{Name: "grep", Args: `{"pattern":"x y","glob":"*.go"}`},
}

// Run runs the suite. Much of it waits, so its parts run side by side.
func Run(t *testing.T, d Dialect) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Dialect)
	}{
		{"hello", testHello}, {"usage", testUsage}, {"calls", testCalls}, {"no marks", noMarks}, {"limit", testLimit}, {"refusal", testRefusal},
		{"first delta before the last byte", firstDelta}, {"calls cut", cutEverywhere}, {"every stream cut", cutAll},
		{"statuses", testStatuses}, {"error in the stream", errorEvent}, {"timers", testTimers}, {"cancel", testCancel},
		{"hostile", testHostile}, {"invalid UTF-8", invalidUTF8}, {"not a stream", notAStream}, {"secrets", testSecrets},
		{"transcripts", testTranscripts}, {"at once", atOnce}, {"faults in phases", testMatrix}, {"media that cannot be sent", testUnshowable},
		{"unsent", testUnsent}, {"keep-alives", keepAlives}, {"endless", testEndless},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, d)
		})
	}
}

// Request is a small valid request.
func Request() model.Request {
	return model.Request{Model: "m-1", System: "Be brief.", MaxOutput: 1000,
		Messages: []model.Message{{Role: model.User, Text: "Hello?"}},
		Tools:    []model.ToolSpec{{Name: "read_file", Description: "Reads a file.", Schema: `{"type":"object","properties":{"path":{"type":"string"}}}`}},
	}
}

// Stream answers with events, and closes the connection properly.
func Stream(events []string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, strings.Join(events, ""))
	}
}

// startServer starts a server and a client of it.
func startServer(t *testing.T, d Dialect, h http.HandlerFunc, timeouts modelhttp.Timeouts) model.Client {
	t.Helper()
	s := httptest.NewServer(judgeRequests(t, d, h))
	t.Cleanup(s.Close)
	c, err := d.New(s.URL, timeouts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// judgeRequests lets a handler answer only requests that the judge accepts. The same body is
// judged once.
func judgeRequests(t *testing.T, d Dialect, h http.HandlerFunc) http.HandlerFunc {
	var last atomic.Value
	last.Store("")
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && last.Load() != string(body) {
			err = d.Judge(body)
			last.Store(string(body))
		}
		if err != nil && r.Context().Err() == nil {
			t.Errorf("%s: %v", body, err)
		}
		h(w, r)
	}
}

// modelError demands a *model.Error.
func modelError(t *testing.T, err error) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T is not a *model.Error: %v", err, err)
	}
	return e
}

func testHello(t *testing.T, d Dialect) {
	var text strings.Builder
	got, err := startServer(t, d, Stream(d.Hello), modelhttp.Timeouts{}).Complete(t.Context(), Request(), func(x model.Delta) {
		if x.Kind == model.TextDelta {
			text.WriteString(x.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := model.Reply{Message: model.Message{Role: model.Assistant, Text: "Hello, wörld"},
		Stop: model.StopEnd, Usage: d.HelloUsage, UsageKnown: true, Served: "m-1-served"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if text.String() != got.Message.Text {
		t.Errorf("deltas say %q", text.String())
	}
}

func testUsage(t *testing.T, d Dialect) {
	zero := regexp.MustCompile(`(tokens|TokenCount)":\d+`)
	var zeros, absurd []string
	for _, e := range d.Hello {
		zeros, absurd = append(zeros, zero.ReplaceAllString(e, `$1":0`)), append(absurd, zero.ReplaceAllString(e, `$1":9000000000000000000`))
	}
	for _, events := range [][]string{d.NoUsage, zeros, absurd} { // no price times the last is a number
		got, err := startServer(t, d, Stream(events), modelhttp.Timeouts{}).Complete(t.Context(), Request(), nil)
		if err != nil || got.UsageKnown || got.Message.Text != "Hello, wörld" {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func testCalls(t *testing.T, d Dialect) {
	got, err := startServer(t, d, Stream(d.Calls), modelhttp.Timeouts{}).Complete(t.Context(), Request(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantCalls, got.Message.Calls); diff != "" {
		t.Error(diff)
	}
	if got.Message.Text != "I look." || got.Stop != model.StopTools || !got.UsageKnown {
		t.Errorf("%+v", got)
	}
}

// noMarks checks that calls that decode are calls, even if no event marks their end.
func noMarks(t *testing.T, d Dialect) {
	got, err := startServer(t, d, Stream(d.NoMarks), modelhttp.Timeouts{}).Complete(t.Context(), Request(), nil)
	if e := modelError(t, err); e.Class != model.Network || e.Unbilled {
		t.Errorf("%+v", e)
	}
	if diff := cmp.Diff(wantCalls, got.Message.Calls); diff != "" {
		t.Error(diff)
	}
	if got.UsageKnown {
		t.Error("usage is known of a stream that was cut")
	}
}

func testLimit(t *testing.T, d Dialect) {
	got, err := startServer(t, d, Stream(d.Limit), modelhttp.Timeouts{}).Complete(t.Context(), Request(), nil)
	if err != nil || got.Stop != model.StopMaxOutput || !got.UsageKnown {
		t.Fatalf("%+v, %v", got, err)
	}
	want := []model.ToolCall{{Name: "read_file", Args: `{"path":"a`, Cut: true}}
	if d.WholeCalls {
		want = nil
	}
	if diff := cmp.Diff(want, got.Message.Calls); diff != "" {
		t.Error(diff)
	}
}

func testRefusal(t *testing.T, d Dialect) {
	got, err := startServer(t, d, Stream(d.Refusal), modelhttp.Timeouts{}).Complete(t.Context(), Request(), nil)
	if err != nil || got.Stop != model.StopRefusal {
		t.Errorf("%+v, %v", got, err)
	}
}

// firstDelta checks that deltas arrive early: the server sends its last events only after the first delta came out.
func firstDelta(t *testing.T, d Dialect) {
	seen := make(chan struct{})
	c := startServer(t, d, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		n := 0
		for ; n < len(d.Hello) && !strings.Contains(d.Hello[n], "Hello"); n++ {
			_, _ = io.WriteString(w, d.Hello[n])
		}
		_, _ = io.WriteString(w, d.Hello[n])
		w.(http.Flusher).Flush()
		select {
		case <-seen:
		case <-r.Context().Done():
			return
		}
		_, _ = io.WriteString(w, strings.Join(d.Hello[n+1:], ""))
	}, modelhttp.Timeouts{})
	first := true
	got, err := c.Complete(t.Context(), Request(), func(model.Delta) {
		if first {
			first = false
			close(seen)
		}
	})
	if err != nil || got.Message.Text != "Hello, wörld" {
		t.Errorf("%+v, %v", got, err)
	}
}

// cutEverywhere ends the stream Calls at each of its cut positions, properly and
// abruptly.
func cutEverywhere(t *testing.T, d Dialect) {
	reportSample(t)
	whole, positions := strings.Join(d.Calls, ""), cutPositions(d.Calls)
	var at atomic.Int64
	var abrupt atomic.Bool
	c := startServer(t, d, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, whole[:at.Load()])
		w.(http.Flusher).Flush()
		if abrupt.Load() {
			panic(http.ErrAbortHandler)
		}
	}, modelhttp.Timeouts{})
	complete := 0
	seen := map[string]bool{}
	for _, hard := range []bool{false, true} {
		abrupt.Store(hard)
		for _, n := range positions {
			at.Store(int64(n))
			got, err := c.Complete(t.Context(), Request(), nil)
			if err == nil {
				complete++
			} else if e := modelError(t, err); e.Class != model.Network || e.Unbilled {
				t.Fatalf("cut at %d: %+v", n, e)
			}
			wellFormed(t, n, got, err == nil)
			sendOnce(t, d, seen, got)
		}
	}
	if complete < 2 || complete >= len(positions) {
		t.Errorf("%d of %d cuts left a complete reply", complete, 2*len(positions))
	}
}

// sendOnce sends the remains of a cut in another request, if no cut left the same before.
func sendOnce(t *testing.T, d Dialect, seen map[string]bool, got model.Reply) {
	t.Helper()
	if key := fmt.Sprintf("%+v", got.Message); !seen[key] {
		seen[key] = true
		followUp(t, d, got)
	}
}

// cutAll ends every other stream of a dialect at each of its cut positions: what
// arrived can be part of the next request.
func cutAll(t *testing.T, d Dialect) {
	reportSample(t)
	cuts, bytes, left := 0, 0, 0
	for _, events := range [][]string{d.Hello, d.Limit, d.Refusal, d.Overload, d.Thinking} {
		whole, positions := strings.Join(events, ""), cutPositions(events)
		var at atomic.Int64
		c := startServer(t, d, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, whole[:at.Load()])
		}, modelhttp.Timeouts{})
		seen := map[string]bool{}
		for _, n := range positions {
			at.Store(int64(n))
			got, err := c.Complete(t.Context(), Request(), nil)
			if err != nil {
				modelError(t, err)
			}
			sendOnce(t, d, seen, got)
		}
		cuts, bytes, left = cuts+len(positions), bytes+len(whole), left+len(seen)
	}
	t.Logf("cut at %d places of %d bytes, %d different histories judged", cuts, bytes, left)
}

// wellFormed checks the remains of a cut stream.
func wellFormed(t *testing.T, n int, got model.Reply, complete bool) {
	t.Helper()
	if got.Message.Role != model.Assistant || !strings.HasPrefix("I look.", got.Message.Text) || len(got.Message.Calls) > len(wantCalls) {
		t.Fatalf("cut at %d: %+v", n, got)
	}
	for i, c := range got.Message.Calls {
		want := wantCalls[i]
		switch {
		case c.ID != "" || c.Name != want.Name && c.Name != "":
			t.Fatalf("cut at %d: %+v", n, c)
		case c.Cut && (complete || json.Valid([]byte(c.Args)) || !strings.HasPrefix(want.Args, c.Args)):
			t.Fatalf("cut at %d: wrongly cut %+v", n, c)
		case !c.Cut && c.Args != want.Args:
			t.Fatalf("cut at %d: wrongly whole %+v", n, c)
		}
	}
	if complete && len(got.Message.Calls) != len(wantCalls) {
		t.Fatalf("cut at %d: no error, and %d calls", n, len(got.Message.Calls))
	}
}

func testCancel(t *testing.T, d Dialect) {
	c := startServer(t, d, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range d.Hello {
			_, _ = io.WriteString(w, e)
			if strings.Contains(e, "Hello") {
				break
			}
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}, modelhttp.Timeouts{})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	got, err := c.Complete(ctx, Request(), func(model.Delta) { stop() })
	if e := modelError(t, err); e.Class != model.Aborted || e.Unbilled || got.Message.Text != "Hello, " || got.UsageKnown {
		t.Errorf("%+v, %+v", got, e)
	}
	got, err = c.Complete(ctx, Request(), nil)
	if e := modelError(t, err); e.Class != model.Aborted || got.Message.Role != model.Assistant {
		t.Errorf("%+v, %+v", got, e)
	}
}

// atOnce checks that a client is safe for concurrent use.
func atOnce(t *testing.T, d Dialect) {
	c := startServer(t, d, Stream(d.Calls), modelhttp.Timeouts{})
	results := make(chan error)
	const callers = 8
	for range callers {
		go func() {
			got, err := c.Complete(t.Context(), Request(), func(model.Delta) {})
			if err == nil && !cmp.Equal(got.Message.Calls, wantCalls) {
				err = errors.New("mixed up: " + cmp.Diff(wantCalls, got.Message.Calls))
			}
			results <- err
		}()
	}
	for range callers {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
