package judges_test

import (
	"net/http/httptest"
	"testing"

	claude "github.com/anthropics/anthropic-sdk-go"
	claudeoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"
	gpt "github.com/openai/openai-go/v3"
	gptoption "github.com/openai/openai-go/v3/option"
	gptresponses "github.com/openai/openai-go/v3/responses"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/internal/test/dialect/chat"
	"github.com/troupe-run/troupe/internal/test/dialect/messages"
	"github.com/troupe-run/troupe/internal/test/dialect/responses"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
)

// heard is what is compared of a reply.
type heard struct {
	Text           string
	Calls          []model.ToolCall // without ids; of a call that was cut, what came of it
	Stop           model.Stop
	Prompt, Output int64
	Failed         bool // the stream held an error
}

// TestSDKsReadTheSameReplies: the SDKs read the same replies out of the streams of the suites.
func TestSDKsReadTheSameReplies(t *testing.T) {
	for name, c := range map[string]struct {
		dialect wiretest.Dialect
		hear    func(t *testing.T, root string) heard
	}{"chat": {chat.Dialect(), hearChat}, "responses": {responses.Dialect(), hearResponses}, "messages": {messages.Dialect(), hearMessages}} {
		d := c.dialect
		for kind, events := range map[string][]string{"hello": d.Hello, "calls": d.Calls, "refusal": d.Refusal, "thinking": d.Thinking, "limit": d.Limit, "overload": d.Overload, "no usage": d.NoUsage} {
			if events == nil {
				continue
			}
			t.Run(name+" "+kind, func(t *testing.T) {
				s := httptest.NewServer(wiretest.Stream(events))
				defer s.Close()
				client, err := d.New(s.URL, modelhttp.Timeouts{})
				if err != nil {
					t.Fatal(err)
				}
				got, err := client.Complete(t.Context(), wiretest.Request(), nil)
				if (err != nil) != (kind == "overload") {
					t.Fatal(err)
				}
				ours := heard{Text: got.Message.Text, Calls: got.Message.Calls, Stop: got.Stop, Failed: err != nil}
				for i := range ours.Calls {
					ours.Calls[i].Cut = false
				}
				want := c.hear(t, s.URL)
				switch {
				case got.UsageKnown:
					ours.Prompt, ours.Output = got.Usage.Prompt(), got.Usage.Output
				case err != nil:
					want.Prompt, want.Output = 0, 0 // what was counted before an error is not final
				}
				if diff := cmp.Diff(want, ours); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func hearChat(t *testing.T, root string) heard {
	client := gpt.NewClient(gptoption.WithBaseURL(root+"/v1"), gptoption.WithAPIKey("k"), gptoption.WithMaxRetries(0))
	stream := client.Chat.Completions.NewStreaming(t.Context(), gpt.ChatCompletionNewParams{Model: "m"})
	var all gpt.ChatCompletionAccumulator
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	m := all.Choices[0].Message
	h := heard{Text: m.Content + m.Refusal, Prompt: all.Usage.PromptTokens, Output: all.Usage.CompletionTokens, Failed: stream.Err() != nil,
		Stop: stopOf(all.Choices[0].FinishReason, map[string]model.Stop{"stop": model.StopEnd, "tool_calls": model.StopTools, "length": model.StopMaxOutput})}
	if m.Refusal != "" {
		h.Stop = model.StopRefusal
	}
	for _, c := range m.ToolCalls {
		h.Calls = append(h.Calls, model.ToolCall{Name: c.Function.Name, Args: c.Function.Arguments})
	}
	return h
}

// stopOf is the word of troupe for the reason of an SDK; no reason, and one that no stream of the
// suites has, is unknown.
func stopOf(reason string, words map[string]model.Stop) model.Stop {
	if stop, ok := words[reason]; ok {
		return stop
	}
	return model.StopUnknown
}

func hearResponses(t *testing.T, root string) heard {
	client := gpt.NewClient(gptoption.WithBaseURL(root+"/v1"), gptoption.WithAPIKey("k"), gptoption.WithMaxRetries(0))
	stream := client.Responses.NewStreaming(t.Context(), gptresponses.ResponseNewParams{Model: "m"})
	h := heard{Stop: model.StopUnknown}
	refused := false
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case gptresponses.ResponseTextDeltaEvent:
			h.Text += e.Delta
		case gptresponses.ResponseRefusalDeltaEvent:
			h.Text += e.Delta
			refused = true
		case gptresponses.ResponseOutputItemDoneEvent:
			if call := e.Item.AsFunctionCall(); e.Item.Type == "function_call" {
				h.Calls = append(h.Calls, model.ToolCall{Name: call.Name, Args: call.Arguments})
			}
		case gptresponses.ResponseCompletedEvent:
			h.Prompt, h.Output, h.Stop = e.Response.Usage.InputTokens, e.Response.Usage.OutputTokens, model.StopEnd
		case gptresponses.ResponseIncompleteEvent:
			h.Prompt, h.Output = e.Response.Usage.InputTokens, e.Response.Usage.OutputTokens
			h.Stop = stopOf(e.Response.IncompleteDetails.Reason, map[string]model.Stop{"max_output_tokens": model.StopMaxOutput})
		case gptresponses.ResponseFailedEvent:
			h.Failed = true
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err) // this API reports errors as events
	}
	switch {
	case h.Stop == model.StopEnd && refused:
		h.Stop = model.StopRefusal
	case h.Stop == model.StopEnd && len(h.Calls) > 0:
		h.Stop = model.StopTools // this API has no word of its own for that
	}
	return h
}

func hearMessages(t *testing.T, root string) heard {
	client := claude.NewClient(claudeoption.WithBaseURL(root), claudeoption.WithAPIKey("k"), claudeoption.WithMaxRetries(0))
	stream := client.Messages.NewStreaming(t.Context(), claude.MessageNewParams{Model: "m"})
	var m claude.Message
	args := map[int64]string{} // Accumulate puts {} in the place of arguments that were cut
	for stream.Next() {
		e := stream.Current()
		if err := m.Accumulate(e); err != nil {
			t.Fatal(err)
		}
		args[e.Index] += e.Delta.PartialJSON
	}
	u := m.Usage
	h := heard{Prompt: u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens, Output: u.OutputTokens, Failed: stream.Err() != nil,
		Stop: stopOf(string(m.StopReason), map[string]model.Stop{"end_turn": model.StopEnd, "tool_use": model.StopTools, "max_tokens": model.StopMaxOutput, "refusal": model.StopRefusal})}
	for i, b := range m.Content {
		switch b.Type { // AsAny returns blocks that have ended and decode
		case "text":
			h.Text += b.Text
		case "tool_use":
			h.Calls = append(h.Calls, model.ToolCall{Name: b.Name, Args: args[int64(i)]})
		}
	}
	return h
}
