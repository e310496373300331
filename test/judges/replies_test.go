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
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/test/dialect/chat"
	"github.com/troupe-run/troupe/test/dialect/messages"
	"github.com/troupe-run/troupe/test/dialect/responses"
	"github.com/troupe-run/troupe/test/wiretest"
)

// heard is what is compared of a reply.
type heard struct {
	Text           string
	Calls          []model.ToolCall
	Prompt, Output int64
}

// TestSDKsHearTheSame: the SDKs read the same replies out of the streams of the suites.
func TestSDKsHearTheSame(t *testing.T) {
	for name, c := range map[string]struct {
		dialect wiretest.Dialect
		hear    func(t *testing.T, root string) heard
	}{"chat": {chat.Dialect(), hearChat}, "responses": {responses.Dialect(), hearResponses}, "messages": {messages.Dialect(), hearMessages}} {
		for kind, events := range map[string][]string{"hello": c.dialect.Hello, "calls": c.dialect.Calls, "refusal": c.dialect.Refusal, "thinking": c.dialect.Thinking} {
			if events == nil {
				continue
			}
			t.Run(name+" "+kind, func(t *testing.T) {
				s := httptest.NewServer(wiretest.Stream(events))
				defer s.Close()
				client, err := c.dialect.New(s.URL, modelhttp.Timeouts{})
				if err != nil {
					t.Fatal(err)
				}
				got, err := client.Complete(t.Context(), wiretest.Request(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.hear(t, s.URL), heard{got.Message.Text, got.Message.Calls, got.Usage.Prompt(), got.Usage.Output}); diff != "" {
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
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	m := all.Choices[0].Message
	h := heard{Text: m.Content + m.Refusal, Prompt: all.Usage.PromptTokens, Output: all.Usage.CompletionTokens}
	for _, c := range m.ToolCalls {
		h.Calls = append(h.Calls, model.ToolCall{Name: c.Function.Name, Args: c.Function.Arguments})
	}
	return h
}

func hearResponses(t *testing.T, root string) heard {
	client := gpt.NewClient(gptoption.WithBaseURL(root+"/v1"), gptoption.WithAPIKey("k"), gptoption.WithMaxRetries(0))
	stream := client.Responses.NewStreaming(t.Context(), gptresponses.ResponseNewParams{Model: "m"})
	var h heard
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case gptresponses.ResponseTextDeltaEvent:
			h.Text += e.Delta
		case gptresponses.ResponseRefusalDeltaEvent:
			h.Text += e.Delta
		case gptresponses.ResponseOutputItemDoneEvent:
			if call := e.Item.AsFunctionCall(); e.Item.Type == "function_call" {
				h.Calls = append(h.Calls, model.ToolCall{Name: call.Name, Args: call.Arguments})
			}
		case gptresponses.ResponseCompletedEvent:
			h.Prompt, h.Output = e.Response.Usage.InputTokens, e.Response.Usage.OutputTokens
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return h
}

func hearMessages(t *testing.T, root string) heard {
	client := claude.NewClient(claudeoption.WithBaseURL(root), claudeoption.WithAPIKey("k"), claudeoption.WithMaxRetries(0))
	stream := client.Messages.NewStreaming(t.Context(), claude.MessageNewParams{Model: "m"})
	var m claude.Message
	for stream.Next() {
		if err := m.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	u := m.Usage
	h := heard{Prompt: u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens, Output: u.OutputTokens}
	for _, b := range m.Content {
		switch b := b.AsAny().(type) {
		case claude.TextBlock:
			h.Text += b.Text
		case claude.ToolUseBlock:
			h.Calls = append(h.Calls, model.ToolCall{Name: b.Name, Args: string(b.Input)})
		}
	}
	return h
}
