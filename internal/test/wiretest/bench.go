package wiretest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// pieces is how many pieces of text a long reply has.
const pieces = 1000

// longReply is Hello with its first piece of text again and again.
func longReply(d Dialect) []string {
	i := slices.IndexFunc(d.Hello, func(e string) bool { return strings.Contains(e, `"Hello, "`) })
	return slices.Concat(d.Hello[:i], slices.Repeat(d.Hello[i:i+1], pieces), d.Hello[i+1:])
}

// Bench measures one model call through a client and a server on loopback, both in this process:
// a small request, one of an agent at work, whose answer is flushed event by event, and one with a long reply.
func Bench(b *testing.B, d Dialect) {
	for _, c := range []struct {
		name    string
		request model.Request
		events  []string
		flushed bool
		calls   int
	}{{"small", Request(), d.Calls, false, len(wantCalls)}, {"typical", typicalRequest(), d.Calls, true, len(wantCalls)}, {"long", Request(), longReply(d), false, 0}} {
		b.Run(c.name, func(b *testing.B) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if !c.flushed {
					Stream(c.events)(w, r)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				for _, e := range c.events {
					_, _ = io.WriteString(w, e)
					w.(http.Flusher).Flush()
				}
			}))
			defer s.Close()
			client, err := d.New(s.URL, modelhttp.Timeouts{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if got, err := client.Complete(b.Context(), c.request, nil); err != nil || len(got.Message.Calls) != c.calls {
					b.Fatalf("%+v, %v", got, err)
				}
			}
		})
	}
}

// typicalTurns is how many turns a typical request has in its transcript.
const typicalTurns = 9

// typicalRequest is the tenth turn of an agent with ten tools.
func typicalRequest() model.Request {
	req := Request()
	req.System, req.Tools = strings.Repeat("Be brief, and say where you looked. ", 60), nil
	for i := range 10 {
		req.Tools = append(req.Tools, model.ToolSpec{Name: fmt.Sprintf("tool_%d", i), Description: strings.Repeat("It reads a part of a file. ", 8),
			Schema: `{"type":"object","properties":{"path":{"type":"string","description":"below the directory of the run"},"from":{"type":"integer","minimum":1,"description":"the first line"},` +
				`"lines":{"type":"integer","minimum":1,"maximum":2000,"description":"how many"}},"required":["path"],"additionalProperties":false}`})
	}
	for i := range typicalTurns {
		id := fmt.Sprintf("%d-0", i)
		req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Text: "I look at the next one.", Calls: []model.ToolCall{{ID: id, Name: "tool_1", Args: `{"path":"a.go","from":1}`}}},
			model.Message{Role: model.ToolRole, Results: []model.ToolResult{{Call: id, Text: strings.Repeat("if err != nil {\n\treturn err\n}\n", 30)}}})
	}
	return req
}
