package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/httpapi"
)

// A client may send an agent many long messages, which it reads in one step. The events of that one entry are more than a
// message of NATS may have, and a page ends with an entry: past a limit they have no texts, or nobody could read the
// events of the run. An answer over HTTP has a limit of bytes, too.
func TestManyLongMessagesLeaveTheEventsReadable(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	const messages, bytesOfOne = 12, 250 << 10
	h, w := startWeb(t)
	c, ctx := connectClient(t, h), testContext(t)
	id := beginRun(t, c, client.RunRequest{Prompt: "wait", MaxTokens: 100_000_000, Model: writeScript(t, "default: [{calls: [{name: ask_human, args: {question: 'Go on?'}}]}, {text: done}]")})
	q := parkedQuestion(t, c, id)
	for i := range messages {
		if err := c.Steer(ctx, client.SteerRequest{RunID: id, Request: fmt.Sprint("m", i), Text: strings.Repeat("x", bytesOfOne)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Answer(ctx, client.AnswerRequest{RunID: id, Request: client.NewID(), Query: q.Query, Decision: spec.TextOnly, Text: "yes"}); err != nil {
		t.Fatal(err)
	}
	waitFinished(t, c, id, spec.Completed)
	said, cursor := 0, ""
	for more := true; more; {
		var page httpapi.EventList
		w.get("/api/v1/runs/"+id+"/events?limit=10000&cursor="+url.QueryEscape(cursor), http.StatusOK, &page)
		size := 0
		for _, raw := range page.Events {
			var e struct{ Kind string }
			if err := json.Unmarshal(raw, &e); err != nil {
				t.Fatal(err)
			}
			if size += len(raw); e.Kind == event.KindMessageUser {
				said++
			}
		}
		if size > 3<<20 || len(page.Events) == 0 {
			t.Fatalf("a page of %d events has %d bytes", len(page.Events), size)
		}
		cursor, more = page.Cursor, page.More
	}
	if said < messages {
		t.Errorf("%d events of %d messages", said, messages)
	}
}
