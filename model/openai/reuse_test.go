package openai_test

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"

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
