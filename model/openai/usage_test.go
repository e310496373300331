package openai_test

import (
	"fmt"
	"testing"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/openai"
	"github.com/troupe-run/troupe/test/dialect/chat"
	"github.com/troupe-run/troupe/test/wiretest"
)

// TestThoughtsBesideTheOutputAreBilled: OpenAI counts what was thought as output;
// servers like it leave it out, and have it in the total alone.
func TestThoughtsBesideTheOutputAreBilled(t *testing.T) {
	for name, c := range map[string]struct {
		in, out, thought, total int64
		want                    model.Usage
	}{
		"within the output": {10, 105, 100, 115, model.Usage{Input: 10, Output: 105, Reasoning: 100}},
		"beside it":         {10, 5, 100, 115, model.Usage{Input: 10, Output: 105, Reasoning: 100}},
		"without a total":   {10, 5, 2, 0, model.Usage{Input: 10, Output: 5, Reasoning: 2}},
		"more than the sum": {10, 5, 0, 40, model.Usage{Input: 10, Output: 30}},
		"less than the sum": {10, 5, 0, 3, model.Usage{Input: 10, Output: 5}},
	} {
		counts := fmt.Sprintf(`data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"completion_tokens_details":{"reasoning_tokens":%d}}}`+"\n\n", c.in, c.out, c.total, c.thought)
		if got, _, _ := completeWith(t, openai.Config{}, wiretest.Request(), chat.Text("a"), chat.Chunk("{}", "stop"), counts, chat.Done); got.Usage != c.want || !got.UsageKnown {
			t.Errorf("%s, chat: %+v, want %+v", name, got.Usage, c.want)
		}
		whole := fmt.Sprintf(`data: {"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}],"usage":{"input_tokens":%d,"output_tokens":%d,"total_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d}}}}`+"\n\n", c.in, c.out, c.total, c.thought)
		if got, _ := respondWith(t, openai.Config{}, wiretest.Request(), whole); got.Usage != c.want || !got.UsageKnown {
			t.Errorf("%s, responses: %+v, want %+v", name, got.Usage, c.want)
		}
	}
}
