package gemini_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/gemini"
)

// fixedAnswer is a transport whose every answer is this stream.
type fixedAnswer []byte

func (a fixedAnswer) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(a))}, nil
}

// FuzzStream: whatever a server sends, the reply is valid text and can be sent
// back, and a failure is a *model.Error.
func FuzzStream(f *testing.F) {
	for _, e := range append(append(wireDialect().Calls, wireDialect().Overload...), chunkEvent(signedPart(thoughtPart("hm"), "s"), "STOP", usage)) {
		f.Add([]byte(e))
	}
	f.Add([]byte("data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"args\":\"\xff\"}},{\"thought\":true}]},\"finishReason\":\"STOP\"}]}\n\n"))
	f.Add([]byte("data: null\n\ndata: {\"error\":7}\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		c, err := gemini.New(gemini.Config{APIKey: wiretest.Key, Transport: fixedAnswer(stream)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Complete(t.Context(), wiretest.Request(), nil)
		var e *model.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%T: %v", err, err)
		}
		if !utf8.ValidString(got.Message.Text) || got.UsageKnown && got.Usage.Total() < 0 {
			t.Fatalf("%+v", got)
		}
		req := wiretest.Request()
		req.Messages = answeredTranscript(got.Message)
		_, err = c.Complete(t.Context(), req, nil)
		if errors.As(err, &e) && e.Class == model.BadRequest && strings.HasPrefix(e.Message, "not sent") {
			t.Fatalf("the reply cannot be sent back: %v: %+v", err, got)
		}
	})
}
