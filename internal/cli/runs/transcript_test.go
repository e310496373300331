package runs

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/model"
)

// A transcript shows where a compaction put a summary in place of what is above,
// and hides what was struck.
func TestTranscriptMarksCompactions(t *testing.T) {
	out, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }() // only read
	text := strings.Join(newTranscriptPage(&console.Console{Out: out}, transcriptDoc{Agent: "root", Name: "lead", System: "be brief", Messages: []model.Message{
		{Role: model.User, Text: "compare"}, {Role: model.Assistant, Text: "half a word", Tombstone: true},
		{Role: model.Assistant, Text: "I look\x1b[2J", Calls: []model.ToolCall{{ID: "1-0", Name: "grep", Args: `{"pattern":"x"}`}}},
		{Role: model.ToolRole, Results: []model.ToolResult{{Call: "1-0", Text: "nothing", Error: true}}},
		{Role: model.Assistant, Text: "done", Usage: &model.Usage{Input: 1200, Output: 7}},
	}, Folds: []client.Fold{{Upto: 4, Turn: 3, Text: "a summary"}, {Upto: 5, Turn: 9, Deep: true, Plain: true}}}, transcriptFlags{usage: true}).draw(), "\n")
	want := `lead (root)
be brief

user
compare

assistant
I look\x1b[2J
→ 1-0 grep {"pattern":"x"}

tool
✗ 1-0 grep nothing

── compacted at turn 3: a summary of 9 bytes replaces the 4 messages above

assistant  1.2k in, 7 out, 0 cached
done

── pruned deep at turn 9: an excerpt of 0 bytes replaces the 5 messages above`
	if d := cmp.Diff(want, text); d != "" {
		t.Error(d)
	}
}
