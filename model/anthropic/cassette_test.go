package anthropic_test

import (
	"net/http"
	"testing"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/internal/test/dialect/messages"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/anthropic"
)

// TestWhatWasRecordedPlaysTheSame: every exchange of the suite, the broken ones
// too, gives the same reply, deltas and error when it is played from its file.
func TestWhatWasRecordedPlaysTheSame(t *testing.T) {
	wiretest.RunRecorded(t, messages.Dialect(), func(root string, timeouts modelhttp.Timeouts, by http.RoundTripper) (model.Client, error) {
		return anthropic.New(anthropic.Config{BaseURL: root, APIKey: wiretest.Key, Timeouts: timeouts, Transport: by})
	})
}
