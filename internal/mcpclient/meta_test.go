package mcpclient

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/troupe-run/troupe/tool"
)

// A server reads in _meta whose call it serves, with the key that is the same for every attempt, and reports figures of the
// call in _meta of its result. What is no figure is counted as lost.
//
//behaviour:shows C6
func TestAServerKnowsItsCallAndReportsFigures(t *testing.T) {
	var got sdk.Meta
	def := loopbackServer(t, buildServer(testTools{"scan": func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		got = maps.Clone(r.Params.Meta)
		return &sdk.CallToolResult{Meta: sdk.Meta{"run.troupe/metrics": map[string]any{"rows": 12, "bad name": 1, "text": "x"}},
			Content: []sdk.Content{&sdk.TextContent{Text: "scanned"}}}, nil
	}}))
	r := toolSet(t, openHub(t), def, t.TempDir()).Call(testContext(t), "mcp__stage__scan", tool.Call{Run: "r", Agent: "root", Turn: 3, ID: "3-0",
		Key: "r.root.3-0", Attempt: 2, Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Args: []byte(`{}`)})
	if r.Error || r.Text != "scanned" || fmt.Sprint(r.Metrics.Map()) != "map[rows:12]" || r.MetricsLost != 2 {
		t.Errorf("%+v", r)
	}
	if at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(got["run.troupe/deadline"])); err != nil || time.Until(at) <= 0 {
		t.Errorf("the deadline is %v, %v", got["run.troupe/deadline"], err)
	}
	delete(got, "run.troupe/deadline")
	delete(got, "progressToken")
	want := "map[run.troupe/agent:root run.troupe/attempt:2 run.troupe/call:3-0 run.troupe/idempotency-key:r.root.3-0 run.troupe/run:r run.troupe/turn:3 " +
		"traceparent:00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v", got)
	}
}
