package judges_test

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	claude "github.com/anthropics/anthropic-sdk-go"
	gpt "github.com/openai/openai-go/v3"
	gptresponses "github.com/openai/openai-go/v3/responses"

	"github.com/troupe-run/troupe/internal/test/dialect/chat"
	"github.com/troupe-run/troupe/internal/test/dialect/messages"
	"github.com/troupe-run/troupe/internal/test/dialect/responses"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/anthropic"
	"github.com/troupe-run/troupe/model/openai"
	"github.com/troupe-run/troupe/test/judges/internal/sdktypes"
)

// Types of requests in the words of the SDKs. Each SDK adds the field "stream" to its own.
var (
	chatBody     = reflect.TypeFor[gpt.ChatCompletionNewParams]()
	responseBody = reflect.TypeFor[gptresponses.ResponseNewParams]()
	messageBody  = reflect.TypeFor[claude.MessageNewParams]()
	betaBody     = reflect.TypeFor[claude.BetaMessageNewParams]()
)

// TestSuitesOfTheWire runs the conformance suites of the adapters, and judges every request of
// them by the types of the SDKs, too.
func TestSuitesOfTheWire(t *testing.T) {
	for name, c := range map[string]struct {
		dialect wiretest.Dialect
		body    reflect.Type
	}{"chat": {chat.Dialect(), chatBody}, "responses": {responses.Dialect(), responseBody}, "messages": {messages.Dialect(), messageBody}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := c.dialect.Judge
			c.dialect.Judge = func(body []byte) error {
				return errors.Join(sdktypes.CheckShape(body, c.body, "stream"), own(body))
			}
			wiretest.Run(t, c.dialect)
		})
	}
}

// checkSent judges requests of every kind by the type of a SDK, and that the judge refuses one
// that is spoiled.
func checkSent(t *testing.T, body reflect.Type, requests map[string]model.Request, with func(http.RoundTripper) (model.Client, error)) {
	t.Helper()
	for _, sent := range wiretest.SentRequests(t, requests, with) {
		if err := sdktypes.CheckShape(sent.Body, body, "stream"); err != nil {
			t.Errorf("%s: %s: %v", sent.Name, sent.Body, err)
		}
		spoiled := strings.Replace(string(sent.Body), `"role":"user"`, `"role":"user","rool":"x"`, 1)
		if err := sdktypes.CheckShape([]byte(spoiled), body, "stream"); !errors.Is(err, sdktypes.ErrShape) {
			t.Errorf("%s: a field that there is none is taken: %v", sent.Name, err)
		}
	}
}

// TestOpenAIsSDKKnowsWhatIsSent: every field of every kind of request is one of its types,
// and of their kind.
func TestOpenAIsSDKKnowsWhatIsSent(t *testing.T) {
	for _, name := range []string{"gpt-4.1", "gpt-5-mini", "gpt-5.4", "gpt-6-sol", "m-1"} {
		thought := model.Opaque{Issuer: "openai/" + name, Kind: "items",
			Data: []byte(`[{"reasoning":{"id":"rs_1","summary":["hm"],"encrypted_content":"gAAA"}},{"text":7,"phase":"commentary"},{"call":true},{"reasoning":{"id":"rs_2","encrypted_content":"gBBB"}},{"call":true}]`)}
		for api, body := range map[openai.API]reflect.Type{openai.APIChat: chatBody, openai.APIResponses: responseBody} {
			for _, older := range []bool{false, true} {
				checkSent(t, body, wiretest.Requests(name, thought), func(by http.RoundTripper) (model.Client, error) {
					return openai.New(openai.Config{API: api, MaxTokens: older, Transport: by})
				})
			}
		}
	}
}

// TestAnthropicsSDKKnowsWhatIsSent: the same of Anthropic's types: those of its beta where a
// request says that it is one.
func TestAnthropicsSDKKnowsWhatIsSent(t *testing.T) {
	for _, name := range []string{"claude-3-haiku", "claude-haiku-4-5", "claude-sonnet-4-6", "claude-opus-4-8", "claude-sonnet-5-5", "m-1"} {
		thoughts := []model.Opaque{{Issuer: "anthropic/" + name, Kind: "thinking", Data: []byte(`{"thinking":"hm","signature":"c2ln"}`)},
			{Issuer: "anthropic/" + name, Kind: "redacted_thinking", Data: []byte(`{"data":"ZGF0YQ=="}`)}}
		for _, drop := range []bool{false, true} {
			body := messageBody
			if drop && name == "claude-sonnet-5-5" {
				body = betaBody
			}
			requests := wiretest.Requests(name, thoughts...)
			delete(requests, "tools of a stranger") // the SDK sends any schema, and its type names few keywords
			checkSent(t, body, requests, func(by http.RoundTripper) (model.Client, error) {
				return anthropic.New(anthropic.Config{Cache: true, DropStale: drop, Transport: by})
			})
		}
	}
}
