package anthropic_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/test/golden"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/anthropic"
)

// TestRequestsMatchGoldens compares requests of every kind with those that the official SDK
// built of the same inputs.
func TestRequestsMatchGoldens(t *testing.T) {
	thoughts := func(name string) []model.Opaque {
		return []model.Opaque{{Issuer: "anthropic/" + name, Kind: "thinking", Data: []byte(`{"thinking":"hm <&>","signature":"c2ln"}`)},
			{Issuer: "anthropic/" + name, Kind: "thinking", Data: []byte(`{"signature":"c2ln"}`)}, {Issuer: "anthropic/m-0", Kind: "thinking", Data: []byte(`{"signature":"x"}`)},
			{Issuer: "anthropic/" + name, Kind: "redacted_thinking", Data: []byte(`{"data":"ZGF0YQ=="}`)}, {Issuer: "anthropic/" + name, Kind: "order", Data: []byte("otcoco")}}
	}
	var text strings.Builder
	write := func(title string, cfg anthropic.Config, requests map[string]model.Request) {
		text.WriteString("== " + title + "\n\n")
		for _, sent := range wiretest.SentRequests(t, requests, func(by http.RoundTripper) (model.Client, error) {
			cfg.Transport = by
			return anthropic.New(cfg)
		}) {
			text.WriteString(sent.String() + "\n")
		}
	}
	write("a gateway", anthropic.Config{BaseURL: "http://u:p@h:1/v1/?x=y", AuthToken: "tok"}, wiretest.Requests("m-1", thoughts("m-1")...))
	write("with breakpoints", anthropic.Config{APIKey: "k", AuthToken: "tok", Cache: true}, wiretest.Requests("claude-sonnet-4-6", thoughts("claude-sonnet-4-6")...))
	for _, name := range []string{"claude-3-haiku", "claude-opus-4-1", "claude-haiku-4-5", "claude-opus-4-8", "claude-sonnet-5-5", "claude-haiku-5-5"} {
		all, some := wiretest.Requests(name, thoughts(name)...), map[string]model.Request{}
		for _, kind := range []string{"whole", "structured", "forced", "no effort, no temperature"} {
			some[kind] = all[kind]
		}
		write("Anthropic, "+name, anthropic.Config{APIKey: "k", DropStale: true}, some)
	}
	golden.Compare(t, "testdata/messages.txt", text.String())
}
