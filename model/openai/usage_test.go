package openai_test

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/troupe-run/troupe/internal/test/dialect/chat"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/openai"
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

// TestRunningUsageIsNotFinal: some servers send the usage so far with each chunk. It counts once
// the reply has ended; a stream that breaks off before its last usage is spent up to its reservation.
func TestRunningUsageIsNotFinal(t *testing.T) {
	usage := func(out int) string { return fmt.Sprintf(`"usage":{"prompt_tokens":10,"completion_tokens":%d}`, out) }
	running := "data: {\"choices\":[]," + usage(1) + "}\n\n"
	final := "data: {\"choices\":[]," + usage(7) + "}\n\n"
	stop := chat.Chunk("{}", "stop")
	both := `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],` + usage(7) + "}\n\n"
	for name, c := range map[string]struct {
		events []string
		output int64 // 0: unknown
	}{
		"before the end":             {[]string{running}, 0},
		"before the last usage":      {[]string{running, stop}, 0},
		"after the last usage":       {[]string{running, stop, final}, 7},
		"after an end with usage":    {[]string{running, both}, 7},
		"after the line of the end":  {[]string{running, stop, chat.Done}, 1},
		"without a reason to end":    {[]string{running, final, chat.Done}, 7},
		"usage, a reason, no usage":  {[]string{final, stop}, 0},
		"usage twice after a reason": {[]string{stop, running, final}, 7},
	} {
		s := httptest.NewServer(wiretest.CutStream(append([]string{chat.Text("a")}, c.events...)...))
		client, err := openai.New(openai.Config{BaseURL: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		got, _ := client.Complete(t.Context(), wiretest.Request(), nil)
		s.Close()
		if got.Message.Text != "a" || got.UsageKnown != (c.output > 0) || got.UsageKnown && got.Usage.Output != c.output {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
