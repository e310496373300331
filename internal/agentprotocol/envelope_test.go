package agentprotocol

import (
	"encoding/base64"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/troupe-run/troupe/client"
)

// Any bytes are an envelope, or an error with a remedy.
func FuzzEnvelopes(f *testing.F) {
	for _, seed := range []string{"hello", `{"prompt":"x"}`, " \n{\"prompt\":\"x\",\"attachments\":[{\"filename\":\"a\",\"content\":\"aGVsbG8=\"}]}",
		`{"prompt":"x","troupe":{"dir":"/a","max_tokens":5}}`, `{"prompt":"x","attachments":{}}`, "\xff", `{"prompt":"\ud800"}`, `{"prompt":"x","prompt":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := decodeEnvelope(data, client.RunRequest{})
		var refused *client.Error
		switch {
		case err != nil && (!errors.As(err, &refused) || refused.Code != client.CodeBad || refused.Text == ""):
			t.Errorf("%q: %v", data, err)
		case err == nil && (e.Prompt == "" || !utf8.ValidString(e.Prompt)):
			t.Errorf("%q is the prompt %q", data, e.Prompt)
		}
	})
}

// The file of an attachment keeps its bytes and has the type of its content.
func TestAttachmentsKeepTheirBytes(t *testing.T) {
	for name, k := range map[string]struct{ data, mime string }{
		"a.html": {"a title", "text/html"}, "a": {"hello", "text/plain"}, "a.png": {"hello", "text/plain"}, "b.txt": {"\x89PNG\r\n\x1a\n....", "image/png"},
		"c.pdf": {"%PDF-1.7", "application/pdf"}, "d.bin": {"\xff\xfe\x00\x01", "text/plain"}, "e.zip": {"PK\x03\x04", "application/zip"},
	} {
		e, err := decodeEnvelope([]byte(`{"prompt":"x","attachments":[{"filename":"`+name+`","content":"`+base64.StdEncoding.EncodeToString([]byte(k.data))+`"}]}`), client.RunRequest{})
		if err != nil || len(e.Attachments) != 1 {
			t.Fatalf("%s: %v", name, err)
		}
		if a := e.Attachments[0]; a.Name != name || string(a.Data) != k.data || a.Type != k.mime {
			t.Errorf("%s: %s %q", a.Name, a.Type, a.Data)
		}
	}
}

// One run answers a prompt: it makes no schedule, whose runs would be no longer those of a session.
func TestPromptsMakeNoSchedule(t *testing.T) {
	t.Parallel()
	for _, field := range []string{`"at":"2026-01-02T03:04:05Z"`, `"every":"1h"`, `"on":"builds"`} {
		var refused *client.Error
		if _, err := decodeEnvelope([]byte(`{"prompt":"x","troupe":{`+field+`}}`), client.RunRequest{}); !errors.As(err, &refused) || refused.Code != client.CodeBad {
			t.Errorf("%s: %v", field, err)
		}
	}
}
