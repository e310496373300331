package models

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
)

// pingServer asks a provider at an address, as a user with a key would.
func pingServer(t *testing.T, handler http.HandlerFunc, timeout time.Duration) (string, error) {
	t.Helper()
	s := httptest.NewServer(handler)
	defer s.Close()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"OPENAI_API_KEY": "sk-a-secret", "OPENAI_BASE_URL": s.URL}
	c := &console.Console{Out: out, Err: os.Stderr, Output: "table", Getenv: func(k string) string { return env[k] }}
	a := &Commands{Console: c, Sessions: &session.Opener{Console: c}}
	err = a.pingModel(t.Context(), "openai/gpt-6-sol", timeout)
	text, readErr := os.ReadFile(out.Name())
	if err := errors.Join(readErr, out.Close()); err != nil {
		t.Fatal(err)
	}
	return string(text), err
}

func TestPing(t *testing.T) {
	answer := `data: {"id":"c","object":"chat.completion.chunk","model":"gpt-6-sol","choices":[{"index":0,"delta":{"role":"assistant","content":"pong"},"finish_reason":"stop"}]}

data: {"id":"c","object":"chat.completion.chunk","model":"gpt-6-sol","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15}}

data: [DONE]

`
	text, err := pingServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(answer)) // a client that is gone fails the test elsewhere
	}, time.Minute)
	if err != nil || !strings.Contains(text, "pong") || !strings.Contains(text, "12 in, 3 out") || !strings.Contains(text, "cost       ~$0.000054 (an estimate") {
		t.Errorf("%v: %s", err, text)
	}
	_, err = pingServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"message":"wrong key sk-a-secret"}}`)) // as above
	}, time.Minute)
	f := exit.Explain(err)
	if f.Code != exit.Provider || !strings.Contains(f.Hint, "OPENAI_API_KEY") || strings.Contains(f.Error()+f.Hint, "sk-a-secret") {
		t.Errorf("%+v", f)
	}
}

// A provider that takes the request and says nothing does not hold the command up.
func TestPingDoesNotHang(t *testing.T) {
	began := time.Now()
	_, err := pingServer(t, func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil { // only then it is seen that the client has gone
			<-r.Context().Done()
		}
	}, 200*time.Millisecond)
	if f := exit.Explain(err); f.Code != exit.Provider || !strings.Contains(f.Error(), "did not answer within 200ms") {
		t.Errorf("%+v", f)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}
