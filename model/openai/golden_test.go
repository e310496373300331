package openai_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/test/golden"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/openai"
)

// TestRequestsMatchGoldens compares requests of every kind with those that the official SDK
// built of the same inputs.
func TestRequestsMatchGoldens(t *testing.T) {
	thought := func(name string) model.Opaque {
		return model.Opaque{Issuer: "openai/" + name, Kind: "items",
			Data: []byte(`[{"reasoning":{"id":"rs_1","summary":["hm <&>"],"encrypted_content":"gAAA+/=="}},{"text":7,"phase":"commentary"},{"call":true},{"reasoning":{"id":"rs_2","encrypted_content":"gBBB"}},{"call":true}]`)}
	}
	for _, api := range []openai.API{openai.APIChat, openai.APIResponses} {
		var text strings.Builder
		write := func(title string, cfg openai.Config, requests map[string]model.Request) {
			text.WriteString("== " + title + "\n\n")
			cfg.API = api
			for _, sent := range wiretest.SentRequests(t, requests, func(by http.RoundTripper) (model.Client, error) {
				cfg.Transport = by
				return openai.New(cfg)
			}) {
				text.WriteString(sent.String() + "\n")
			}
		}
		requests := wiretest.Requests("m-1", thought("m-1"))
		write("another server", openai.Config{BaseURL: "http://h:1/v1/", Structured: openai.StructuredAlways}, requests)
		some := func(name string) map[string]model.Request {
			all, out := wiretest.Requests(name, thought(name), thought("m-0")), map[string]model.Request{}
			for _, kind := range []string{"whole", "structured", "no effort, no temperature", "without tools"} {
				out[kind] = all[kind]
			}
			return out
		}
		for _, name := range []string{"gpt-4.1", "gpt-5-mini", "gpt-5.4", "gpt-6-sol"} {
			write("OpenAI, "+name, openai.Config{APIKey: "k"}, some(name))
		}
		write("a server of the older name of the limit, schemas alone", openai.Config{BaseURL: "http://u:p@h/a%2Fb?x=y", MaxTokens: true, Structured: openai.StructuredAlone}, some("m-1"))
		golden.Compare(t, "testdata/"+string(api)+".txt", text.String())
	}
}
