package wiretest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// Bench measures one model call through a client and a server on loopback, both in this process:
// a small request, and one of an agent at work, whose answer is flushed event by event.
func Bench(b *testing.B, d Dialect) {
	for _, c := range []struct {
		name    string
		request model.Request
		flushed bool
	}{{"small", Request(), false}, {"typical", typicalRequest(), true}} {
		b.Run(c.name, func(b *testing.B) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if !c.flushed {
					Stream(d.Calls)(w, r)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				for _, e := range d.Calls {
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
				if got, err := client.Complete(b.Context(), c.request, nil); err != nil || len(got.Message.Calls) != len(wantCalls) {
					b.Fatalf("%+v, %v", got, err)
				}
			}
		})
	}
}

// typicalRequest is the tenth turn of an agent with ten tools.
func typicalRequest() model.Request {
	req := Request()
	req.System, req.Tools = strings.Repeat("Be brief, and say where you looked. ", 60), nil
	for i := range 10 {
		req.Tools = append(req.Tools, model.ToolSpec{Name: fmt.Sprintf("tool_%d", i), Description: strings.Repeat("It reads a part of a file. ", 8),
			Schema: `{"type":"object","properties":{"path":{"type":"string","description":"below the directory of the run"},"from":{"type":"integer","minimum":1,"description":"the first line"},` +
				`"lines":{"type":"integer","minimum":1,"maximum":2000,"description":"how many"}},"required":["path"],"additionalProperties":false}`})
	}
	for i := range 9 {
		id := fmt.Sprintf("%d-0", i)
		req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Text: "I look at the next one.", Calls: []model.ToolCall{{ID: id, Name: "tool_1", Args: `{"path":"a.go","from":1}`}}},
			model.Message{Role: model.ToolRole, Results: []model.ToolResult{{Call: id, Text: strings.Repeat("if err != nil {\n\treturn err\n}\n", 30)}}})
	}
	return req
}
