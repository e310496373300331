package anthropic_test

import (
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/test/dialect/messages"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model/anthropic"
)

// TestRunningUsageIsNotFinal: the count of the output is final once the reply has ended, and what a
// second beginning says changes nothing.
func TestRunningUsageIsNotFinal(t *testing.T) {
	delta := func(reason string, output int) string {
		return messages.Event("message_delta", fmt.Sprintf(`"delta":{%s},"usage":{"output_tokens":%d}`, reason, output))
	}
	const ended = `"stop_reason":"end_turn"`
	stop := messages.Event("message_stop", "")
	for name, c := range map[string]struct {
		events []string
		output int64 // 0: unknown
	}{
		"before the end":         {[]string{delta("", 1)}, 0},
		"before the last usage":  {[]string{delta("", 1), messages.Event("message_delta", `"delta":{`+ended+`}`)}, 0},
		"after the last usage":   {[]string{delta("", 1), delta(ended, 500)}, 500},
		"without a reason":       {[]string{delta("", 500), stop}, 500},
		"usage after the reason": {[]string{delta(ended, 1), delta("", 500)}, 500},
		"a second beginning":     {[]string{delta(ended, 500), messages.Start(messages.Usage)}, 500},
		"an empty beginning":     {[]string{delta(ended, 500), messages.Start("")}, 500},
	} {
		s := httptest.NewServer(wiretest.CutStream(append([]string{messages.Start(messages.Usage), messages.Begin(0, messages.TextBlock), messages.Text(0, "a")}, c.events...)...))
		client, err := anthropic.New(anthropic.Config{BaseURL: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		got, _ := client.Complete(t.Context(), wiretest.Request(), nil)
		s.Close()
		if got.Message.Text != "a" || got.Served != "m-1-served" || got.UsageKnown != (c.output > 0) || got.UsageKnown && (got.Usage.Output != c.output || got.Usage.Input != 25) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestLongSignaturesTakeLinearMemory: a signature in thousands of pieces is copied a few times, not
// once for each piece.
func TestLongSignaturesTakeLinearMemory(t *testing.T) {
	const pieces, size = 1 << 13, 1 << 8
	events := []string{messages.Start(messages.Usage), messages.Begin(0, `{"type":"thinking","thinking":""}`)}
	for range pieces {
		events = append(events, messages.Delta(0, `{"type":"signature_delta","signature":"`+strings.Repeat("s", size)+`"}`))
	}
	events = append(events, messages.End(0), messages.Finish("end_turn"), messages.Event("message_stop", ""))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, _, _ := exchangeWith(t, anthropic.Config{}, wiretest.Request(), events...)
	runtime.ReadMemStats(&after)
	if len(got.Message.Opaque) != 1 || len(got.Message.Opaque[0].Data) < pieces*size {
		t.Errorf("%d blocks", len(got.Message.Opaque))
	}
	const most = 64 * pieces * size // 8 GB if each piece copies all before it
	if spent := after.TotalAlloc - before.TotalAlloc; spent > most {
		t.Errorf("%d bytes were allocated, at most %d", spent, most)
	}
}
