package openai_test

import (
	"net/http"
	"testing"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/internal/test/dialect/chat"
	"github.com/troupe-run/troupe/internal/test/dialect/responses"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/openai"
)

// TestWhatWasRecordedPlaysTheSame: every exchange of the suite, the broken ones
// too, gives the same reply, deltas and error when it is played from its file.
func TestWhatWasRecordedPlaysTheSame(t *testing.T) {
	t.Parallel()
	wiretest.RunRecorded(t, chat.Dialect(), func(root string, timeouts modelhttp.Timeouts, by http.RoundTripper) (model.Client, error) {
		return openai.New(openai.Config{BaseURL: root, APIKey: wiretest.Key, Timeouts: timeouts, Transport: by})
	})
}

// TestResponsesPlayTheSame is that of the Responses API.
func TestResponsesPlayTheSame(t *testing.T) {
	t.Parallel()
	wiretest.RunRecorded(t, responses.Dialect(), func(root string, timeouts modelhttp.Timeouts, by http.RoundTripper) (model.Client, error) {
		return openai.New(openai.Config{BaseURL: root + "/v1", APIKey: wiretest.Key, Timeouts: timeouts, API: openai.APIResponses, Transport: by})
	})
}
