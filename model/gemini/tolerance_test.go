package gemini_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/gemini"
)

// TestServersThatWriteOtherTypes: what a gateway means is read all the same.
func TestServersThatWriteOtherTypes(t *testing.T) {
	event := func(fields string) string { return "data: {" + fields + "}\n\n" }
	candidate := func(parts, more string) string {
		return event(`"modelVersion":7,"candidates":[{"index":0.0,"content":{"role":1,"parts":[` + parts + `]}` + more + `}]`)
	}
	for name, c := range map[string]struct {
		events []string
		want   model.Reply
	}{
		"numbers and texts": {[]string{candidate(`{"text":7},{"text":"a","thoughtSignature":8,"thought":"no"}`, `,"finishReason":"STOP"`),
			event(`"usageMetadata":{"promptTokenCount":"35","cachedContentTokenCount":7.0,"candidatesTokenCount":11.0,"thoughtsTokenCount":4}`)},
			model.Reply{Message: model.Message{Text: "7a"}, Stop: model.StopEnd, Usage: model.Usage{Input: 28, Output: 15, CacheRead: 7, Reasoning: 4}, UsageKnown: true, Served: "7"}},
		"a name is a number":   {[]string{candidate(`{"functionCall":{"name":7,"args":{"x":1}}}`, `,"finishReason":"STOP"`)}, model.Reply{Message: model.Message{Calls: []model.ToolCall{{Name: "7", Args: `{"x":1}`}}}, Stop: model.StopTools, Served: "7"}},
		"content of no use":    {[]string{candidate(`{"text":"a"}`, ""), event(`"candidates":[{"content":"b"}],"promptFeedback":"","usageMetadata":[]`), event(`"candidates":{}`), candidate("", `,"finishReason":"STOP"`)}, model.Reply{Message: model.Message{Text: "a"}, Stop: model.StopEnd, Served: "7"}},
		"errors that are none": {[]string{event(`"error":null`), event(`"error":""`), event(`"error":{}`), event(`"error":false`), candidate(`{"text":"a"}`, `,"finishReason":"STOP"`)}, model.Reply{Message: model.Message{Text: "a"}, Stop: model.StopEnd, Served: "7"}},
	} {
		c.want.Message.Role = model.Assistant
		got, _, _ := completeWith(t, gemini.Config{}, wiretest.Request(), c.events...)
		got.Message.Opaque = nil
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
