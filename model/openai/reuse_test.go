package openai_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/openai"
)

// lateReader is a transport that answers at once and leaves the body unread, as one does whose server answers early or
// whose caller gives up. It may report that it has a connection, and that it has written the request.
type lateReader struct {
	reportsConn, reportsWritten bool

	bodies []io.ReadCloser
}

func (l *lateReader) RoundTrip(r *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(r.Context())
	if l.reportsConn {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	if l.reportsWritten {
		trace.WroteRequest(httptrace.WroteRequestInfo{})
	}
	l.bodies = append(l.bodies, r.Body)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(
		"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))}, nil
}

// TestTheBufferOfABodyIsUsedAgain: the next request has the buffer of a body only when the transport reads it no more.
func TestTheBufferOfABodyIsUsedAgain(t *testing.T) {
	for _, c := range []struct{ conn, written, again bool }{{true, true, true}, {true, false, false}, {false, false, false}} {
		transport := &lateReader{reportsConn: c.conn, reportsWritten: c.written}
		client, err := openai.New(openai.Config{BaseURL: "http://h/v1", Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		again := false
		for range 10 { // a pool may lose a buffer
			transport.bodies = nil
			for _, letter := range []string{"a", "b"} {
				request := model.Request{Model: "m", MaxOutput: 10, Messages: []model.Message{{Role: model.User, Text: strings.Repeat(letter, 10_000)}}}
				if _, err := client.Complete(t.Context(), request, nil); err != nil {
					t.Fatal(err)
				}
			}
			first, err := io.ReadAll(transport.bodies[0])
			if err != nil {
				t.Fatal(err)
			}
			again = again || strings.Contains(string(first), "bbbb")
		}
		if again != c.again {
			t.Errorf("%+v: used again %v", c, again)
		}
	}
}

// TestBodiesStayWhole: no request has a part of another one, whatever ends the requests whose buffers it may have got: a
// server that answers before it has read the body or breaks the connection, and a caller that gives up.
func TestBodiesStayWhole(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		var requests, read atomic.Int64
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch n := requests.Add(1); {
			case n%7 == 0:
				panic(http.ErrAbortHandler)
			case n%3 != 0:
				var body struct{ Messages []struct{ Content string } }
				if json.NewDecoder(r.Body).Decode(&body) == nil {
					read.Add(1)
					if text := body.Messages[0].Content; strings.Trim(text, text[:1]) != "" {
						t.Errorf("a body of %q has other characters", text[:1])
					}
				}
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		}))
		s.EnableHTTP2, s.Config.ErrorLog = http2, log.New(io.Discard, "", 0)
		s.StartTLS()
		client, err := openai.New(openai.Config{BaseURL: s.URL + "/v1", Transport: s.Client().Transport})
		if err != nil {
			t.Fatal(err)
		}
		const callers, calls, bytes = 4, 30, 200_000
		var calling sync.WaitGroup
		for caller := range callers {
			calling.Go(func() {
				for call := range calls {
					ctx, cancel := context.WithCancel(t.Context())
					if call%5 == 0 {
						time.AfterFunc(time.Duration(call%4)*time.Millisecond, cancel)
					}
					text := strings.Repeat(string(rune('A'+(caller*calls+call)%26)), bytes)
					_, _ = client.Complete(ctx, model.Request{Model: "m", MaxOutput: 10, Messages: []model.Message{{Role: model.User, Text: text}}}, func(model.Delta) {})
					cancel()
				}
			})
		}
		calling.Wait()
		s.Close()
		if read.Load() < callers*calls/4 {
			t.Errorf("HTTP/2 %v: only %d bodies were read", http2, read.Load())
		}
	}
}
