package judges_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	gpt "github.com/openai/openai-go/v3"
	gptoption "github.com/openai/openai-go/v3/option"

	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/node"
)

// TestTheOfficialOpenAISDKAsksAgents: the client of the official SDK for Go lists the agents of a node as models, gets
// answers whole and as a stream, and knows the errors.
func TestTheOfficialOpenAISDKAsksAgents(t *testing.T) {
	const token = "a-token-of-the-judges"
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte("agents:\n  assistant: [{text: It is safe.}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := node.Start(t.Context(), node.Config{StartServer: embedded.StartServer, StateDir: t.TempDir(), DontListen: true, Lazy: true, Model: "script/" + file, Env: func(string) string { return "" },
		HTTP: &node.HTTPConfig{Address: "127.0.0.1:0", Token: token}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	connect := func(key string) gpt.Client {
		return gpt.NewClient(gptoption.WithBaseURL(n.HTTPURL()+"/v1/"), gptoption.WithAPIKey(key), gptoption.WithMaxRetries(0))
	}
	c := connect(token)
	if page, err := c.Models.List(t.Context()); err != nil || len(page.Data) == 0 || page.Data[0].ID != "coordinator" {
		t.Errorf("%+v %v", page, err)
	}
	ask := gpt.ChatCompletionNewParams{Model: "assistant", Messages: []gpt.ChatCompletionMessageParamUnion{gpt.UserMessage("Is it safe?")}}
	whole, err := c.Chat.Completions.New(t.Context(), ask)
	if err != nil || whole.Choices[0].Message.Content != "It is safe." || whole.Choices[0].FinishReason != "stop" || whole.Usage.TotalTokens <= 0 {
		t.Errorf("%+v %v", whole, err)
	}
	stream, all := c.Chat.Completions.NewStreaming(t.Context(), ask), gpt.ChatCompletionAccumulator{}
	for stream.Next() {
		if !all.AddChunk(stream.Current()) {
			t.Errorf("the SDK does not accumulate %+v", stream.Current())
		}
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil || len(all.Choices) != 1 || all.Choices[0].Message.Content != "It is safe." {
		t.Errorf("%+v %v", all.Choices, err)
	}
	ask.Model = "nobody"
	var known *gpt.Error
	if _, err := c.Chat.Completions.New(t.Context(), ask); !errors.As(err, &known) || known.StatusCode != 404 || known.Message == "" {
		t.Errorf("an unknown model: %v", err)
	}
	connectWrong := connect("wrong")
	if _, err := connectWrong.Models.List(t.Context()); !errors.As(err, &known) || known.StatusCode != 401 || known.Message == "" {
		t.Errorf("a wrong token: %v", err)
	}
}
