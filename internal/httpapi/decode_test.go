package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// Whatever the body of a request holds, it is one request with known fields, or an error with a status
// for the client.
func FuzzRequestDecoder(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"prompt":"x","max_tokens":7}`, `{"promt":1}`, `[`, `{} {}`, `{"policy":{"rules":[{}]},"loop_options":{}}`,
		`{"temperature":1e999}`, "\xff", `{"json_schema":{"a":[1,2]}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, doc := range []any{&client.RunRequest{}, &client.CancelRequest{}, &client.SteerRequest{}, &client.AnswerRequest{}, &client.BudgetRequest{}, &client.PolicyRequest{}} {
			err := decodeBody(strings.NewReader(body), doc, true)
			var bad *errBody
			switch {
			case err == nil:
				if _, err := json.Marshal(doc); err != nil {
					t.Errorf("%q: accepted, and cannot be passed on: %v", body, err)
				}
			case !errors.As(err, &bad) || bad.code != http.StatusBadRequest:
				t.Errorf("%q: %v", body, err)
			case len(bad.text) > 400:
				t.Errorf("%q: an error of %d bytes", body, len(bad.text))
			}
		}
	})
}

// A token is a secret that a header can carry.
func TestShortTokensAreRefused(t *testing.T) {
	for token, ok := range map[string]bool{"": false, "secret": false, "0123456789abcdef": true, "0123456789 abcdef": false, "0123456789abcdé": false} {
		if err := CheckToken(token); (err == nil) != ok || err != nil && !errors.Is(err, ErrToken) {
			t.Errorf("%q: %v", token, err)
		}
	}
}

// A node that could not have the default port says so: the token must not go to the program that has it.
func TestTakenPortIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		address, url string
		warns        bool
	}{
		{"", "http://" + DefaultAddress, false},
		{"", "http://127.0.0.1:40001", true},
		{"127.0.0.1:0", "http://127.0.0.1:40001", false},
	} {
		if text := TakenWarning(c.address, c.url); (text != "") != c.warns || c.warns && !strings.Contains(text, DefaultAddress) {
			t.Errorf("%+v: %q", c, text)
		}
	}
}
