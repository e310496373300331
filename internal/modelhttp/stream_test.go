package modelhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/internal/test/cputime"
	"github.com/troupe-run/troupe/model"
)

// pieceReader returns the pieces of a text one by one.
type pieceReader struct{ pieces []string }

func (r *pieceReader) Read(p []byte) (int, error) {
	if len(r.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.pieces[0])
	if r.pieces[0] = r.pieces[0][n:]; r.pieces[0] == "" {
		r.pieces = r.pieces[1:]
	}
	return n, nil
}

// streamEvents returns the events that an attempt reads from the pieces of a stream.
func streamEvents(t *testing.T, pieces ...string) ([]string, error) {
	t.Helper()
	a := modelhttp.NewAttempt(t.Context(), roundTripFunc(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Request: r, Body: io.NopCloser(&pieceReader{pieces})}, nil
	}), modelhttp.Timeouts{})
	defer a.Close()
	var got []string
	err := a.Stream(modelhttp.NewEndpoint(&url.URL{Scheme: "http", Host: "h"}), nil, func(e modelhttp.Event) (bool, error) {
		got = append(got, e.Name+"|"+string(e.Data))
		return false, nil
	})
	return got, err
}

func TestEventsOfAStream(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   []string
	}{
		"named and not":            {"event: a\ndata: 1\n\ndata: 2\n\n", []string{"a|1", "|2"}},
		"other ends of lines":      {"event: a\r\ndata: 1\r\n\r\ndata: 2\n\n", []string{"a|1", "|2"}},
		"several lines":            {"data: 1\ndata:2\ndata:  3\n\n", []string{"|1\n2\n 3"}},
		"comments, fields, blanks": {": a\n\n\n\n:b\nid: 7\nretry: 1\nmore: 2\ndata: 1\n: c\n\n", []string{"|1"}},
		"no data":                  {"event: ping\n\ndata\n\ndata:\n\ndata: 1\n\n", []string{"|1"}},
		"a name does not stay":     {"event: a\n\ndata: 1\n\n", []string{"|1"}},
		"the last is cut":          {"data: 1\n\ndata: 2\n", []string{"|1"}},
		"nothing":                  {"", nil},
		"a line of one space":      {" \n\ndata: 1\n\n \r\n \ndata: 2\n\n ", []string{"|1", "|2"}},
		"lines that end in CR":     {"\r\r\n\ndata: 1\r\r\n\ndata: 2\r\rdata: 3\n\n", []string{"|1", "|2", "|3"}},
	} {
		for _, pieces := range [][]string{{c.stream}, strings.Split(c.stream, "")} {
			got, err := streamEvents(t, pieces...)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s in %d pieces: %v %s", name, len(pieces), err, diff)
			}
		}
	}
}

// TestStreamsAreBounded: a line, an event and a body have limits, and a long event in small
// pieces takes time in proportion to its length: the parser would scan gigabytes here if it
// looked at all of the event with each piece. It keeps blank lines until an event begins, so
// pieces of them must be collected too.
func TestStreamsAreBounded(t *testing.T) {
	const blanks = 1 << 16
	began := cputime.Used(t)
	if got, err := streamEvents(t, append(repeatPiece("\r\r\n\n", blanks), "data: 1\n\n")...); err != nil || len(got) != 1 {
		t.Errorf("%d events, %v", len(got), err)
	}
	if spent := cputime.Used(t) - began; spent > 10*time.Second { // with a scan of all of them for each piece, 30 s
		t.Errorf("%d pieces of blank lines took %s", blanks, spent)
	}
	long := strings.Repeat("a", modelhttp.MaxLine-16)
	pieces := append([]string{"data: "}, strings.SplitAfter(strings.Repeat("a", len(long)/64), "a")...)
	if got, err := streamEvents(t, append(pieces, "\n\n")...); err != nil || len(got) != 1 || len(got[0]) != len(long)/64+1 {
		t.Errorf("%d events, %v", len(got), err)
	}
	if got, err := streamEvents(t, "data: ", long, "\n\n"); err != nil || len(got) != 1 || len(got[0]) != len(long)+1 {
		t.Errorf("%d events, %v", len(got), err)
	}
	elements := func(n int) string { // of a list that is in one of them, beside text with brackets and commas
		return `data: {"a":"\\\",[[[[,,","b":[[0` + strings.Repeat(`,{"c":1,"d":2}`, n-2) + "]]}\n\n"
	}
	if got, err := streamEvents(t, elements(modelhttp.MaxElements)); err != nil || len(got) != 1 {
		t.Errorf("%d events, %v", len(got), err)
	}
	for what, stream := range map[string]string{"elements": elements(modelhttp.MaxElements + 1), "line": "data: " + long + long, "event": strings.Repeat(":\n", modelhttp.MaxEvent/2+1), "response": strings.Repeat("data: "+long+"\n\n", modelhttp.MaxBody/modelhttp.MaxLine+1)} {
		_, err := streamEvents(t, stream)
		var e *model.Error
		if !errors.As(err, &e) || e.Class != model.Undecodable || !strings.Contains(e.Message, what) || !regexp.MustCompile(`longer|more than`).MatchString(e.Message) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestConnectionsServeAgain: a stream that ends in its marker leaves its connection open,
// also if the end of the response comes later than the marker.
func TestConnectionsServeAgain(t *testing.T) {
	var connections atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range []string{"data: 1\n\n", "data: end\n\n"} {
			_, _ = io.WriteString(w, e)
			w.(http.Flusher).Flush()
		}
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	to, err := modelhttp.ParseBaseURL(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	const turns = 20
	for range turns {
		a := modelhttp.NewAttempt(t.Context(), modelhttp.SharedTransport(), modelhttp.Timeouts{})
		err := a.Stream(modelhttp.NewEndpoint(to), []byte("{}"), func(e modelhttp.Event) (bool, error) { return string(e.Data) == "end", nil })
		a.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n > turns/2 { // a busy machine may be late a few times
		t.Errorf("%d connections for %d turns", n, turns)
	}
}

func TestJoinPath(t *testing.T) {
	for base, want := range map[string]string{
		"https://h": "https://h/v1/x", "https://h/": "https://h/v1/x", "https://h/a": "https://h/a/v1/x", "https://h/a/?b=c#d": "https://h/a/v1/x",
		"https://h/a%2Fb": "https://h/a%2Fb/v1/x", "http://u:p@h:1/a/": "http://u:p@h:1/a/v1/x",
	} {
		u, err := modelhttp.ParseBaseURL(base)
		if err != nil {
			t.Fatal(err)
		}
		if got := modelhttp.JoinPath(u, "v1/x").String(); got != want {
			t.Errorf("%s: %s, want %s", base, got, want)
		}
	}
}

// TestAdapterErrorEndsTheStream: an error of the adapter ends a stream and is returned as it is.
func TestAdapterErrorEndsTheStream(t *testing.T) {
	broken := fmt.Errorf("no such event")
	a := modelhttp.NewAttempt(t.Context(), roundTripFunc(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader("data: 1\n\ndata: 2\n\n"))}, nil
	}), modelhttp.Timeouts{})
	defer a.Close()
	events := 0
	err := a.Stream(modelhttp.NewEndpoint(&url.URL{Scheme: "http", Host: "h"}), nil, func(modelhttp.Event) (bool, error) {
		events++
		return false, broken
	})
	if err != broken || events != 1 {
		t.Errorf("%v after %d events", err, events)
	}
}
