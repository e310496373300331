package openai_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/troupe-run/troupe/internal/test/dialect/chat"
	"github.com/troupe-run/troupe/internal/test/dialect/responses"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model/openai"
)

// roundTrip is a transport of one function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTheTierThatWasPricedIsAskedFor: what is not said is what the project of the
// key is set to, and priority costs twice what was held (P21). Other servers may
// not know the field.
func TestTheTierThatWasPricedIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		base string
		api  openai.API
		want any
	}{
		{"", openai.APIResponses, "default"}, {"", openai.APIChat, "default"}, {"http://127.0.0.1:1/v1", openai.APIResponses, nil}, {"http://127.0.0.1:1/v1", openai.APIChat, nil},
	} {
		var body map[string]any
		client, err := openai.New(openai.Config{BaseURL: c.base, API: c.api, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			data, err := io.ReadAll(r.Body)
			return nil, errors.Join(errors.New("nobody is there"), err, json.Unmarshal(data, &body))
		})})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Complete(t.Context(), wiretest.Request(), nil); err == nil || body["service_tier"] != c.want || body["model"] != "m-1" {
			t.Errorf("%+v: %v, %v", c, err, body)
		}
	}
}

// TestTemperatureIsForThoseWhoTakeIt: a model that reasons refuses one, unless it
// is told not to.
func TestTemperatureIsForThoseWhoTakeIt(t *testing.T) {
	for _, c := range []struct {
		model, effort     string
		tools             bool
		chat, inResponses bool
	}{
		{"gpt-6-sol", "", false, false, false}, {"gpt-6-sol", "low", true, true, false}, {"gpt-6.1-sol", "", true, false, false}, {"openai/gpt-5.6-terra", "", false, false, false},
		{"gpt-5-mini", "", true, false, false}, {"o3", "", true, false, false}, {"o4-mini-2025-04-16", "", false, false, false},
		{"gpt-5.4", "", true, true, true}, {"gpt-5.4", "low", false, false, false}, {"gpt-5.4-mini", "low", true, true, false},
		{"gpt-4.1", "", true, true, true}, {"ft:gpt-4o:acme::1", "", true, true, true}, {"qwen3", "high", true, true, true}, {"m-1", "", false, true, true},
	} {
		req := wiretest.Request()
		half := 0.5
		req.Model, req.Effort, req.Temperature = c.model, c.effort, &half
		if !c.tools {
			req.Tools = nil
		}
		if _, body, _ := completeWith(t, openai.Config{}, req, chat.Dialect().Hello...); (body["temperature"] != nil) != c.chat {
			t.Errorf("%+v, chat: %v", c, body["temperature"])
		}
		if _, body := respondWith(t, openai.Config{}, req, responses.Dialect().Hello...); (body["temperature"] != nil) != c.inResponses {
			t.Errorf("%+v, responses: %v", c, body["temperature"])
		}
	}
}
