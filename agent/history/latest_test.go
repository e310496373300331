package history_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/model"
)

// One message with many large results does not leave the next run of a conversation without a history.
func TestLatestKeepsTheTaskBesideLargeResults(t *testing.T) {
	calls, results := model.Message{Role: model.Assistant}, model.Message{Role: model.ToolRole}
	for i := range 64 {
		id := fmt.Sprint("c", i)
		calls.Calls = append(calls.Calls, model.ToolCall{ID: id, Name: "read_file", Args: "{}"})
		results.Results = append(results.Results, model.ToolResult{Call: id, Text: strings.Repeat("x", 20<<10)})
	}
	past := history.Transcript{Form: history.Form, Messages: []model.Message{{Role: model.User, Text: "Count the pumps."}, calls, results}}
	latest, left := past.Latest()
	if left != 0 || len(latest.Messages) != 3 || latest.Messages[0].Text != "Count the pumps." {
		t.Fatalf("%d messages were left out, %d are there", left, len(latest.Messages))
	}
	if n := message.BytesOf(latest.Messages[2]); n < history.LatestBytesMax/8 || n > history.LatestBytesMax/2 {
		t.Errorf("its results have %d bytes", n)
	}
	if len(past.Messages[2].Results[0].Text) != 20<<10 {
		t.Error("the transcript of the earlier run has changed")
	}
}
