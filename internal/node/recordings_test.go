package node

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/cassette"
	"github.com/troupe-run/troupe/internal/routes"
)

// providerReply is one reply in the words of each provider.
type providerReply struct{ openai, anthropic, gemini string }

var hello = providerReply{
	openai: `data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}

data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":50,"completion_tokens":5,"total_tokens":55}}

data: [DONE]

`,
	anthropic: `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":50,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}

event: message_stop
data: {"type":"message_stop"}

`,
	gemini: `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"hello"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":50,"candidatesTokenCount":5,"totalTokenCount":55},"modelVersion":"m"}

`,
}

// serveAnyProvider answers as whichever provider it is asked as.
func serveAnyProvider(w http.ResponseWriter, r *http.Request) {
	text := hello.openai
	switch {
	case strings.HasSuffix(r.URL.Path, "/messages"):
		text = hello.anthropic
	case strings.Contains(r.URL.Path, ":streamGenerateContent"):
		text = hello.gemini
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Set-Cookie", "session=of-nobody-elses-business")
	_, _ = io.WriteString(w, text) // a client that is gone fails elsewhere
}

// theKey must not be in any recording.
const theKey = "sk-proj-9Wq3Zt7Lw0Xv5Rk2Nb8Hs"

// TestARunIsReplayedWithoutAKeyOrANetwork: with every provider; the replay finds out which
// model it was.
func TestARunIsReplayedWithoutAKeyOrANetwork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ model, key, base, suffix string }{
		{"anthropic/claude-sonnet-5-5", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ""},
		{"openai/gpt-6-sol", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"},
		{"gemini/gemini-3.8-flash", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", ""},
		{"ollama/qwen3", "", "OLLAMA_HOST", ""},
	} {
		t.Run(c.model, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(serveAnyProvider))
			defer s.Close()
			address := strings.Replace(s.URL, "://", "://user:pass-Word-77@", 1) + c.suffix
			tape, dir := filepath.Join(t.TempDir(), "tape"), newRepository(t)
			ask := client.RunRequest{Prompt: "say hello", Dir: dir, Model: c.model}
			h := startNode(t, t.TempDir(), func(cfg *Config) {
				cfg.Record, cfg.Roots = tape, []string{dir}
				cfg.Env = func(name string) string { return map[string]string{c.key: theKey, c.base: address}[name] }
			})
			was := waitFinished(t, connectClient(t, h), beginRun(t, connectClient(t, h), ask), spec.Completed)
			s.Close()
			holdsNone(t, tape, theKey, "pass-Word-77", "nobody-elses-business")

			elsewhere := newRepository(t) // of the same content, at another place
			h = startNode(t, t.TempDir(), func(cfg *Config) { cfg.Replay, cfg.Roots = tape, []string{elsewhere} })
			ask.Dir, ask.Model = elsewhere, ""
			is := waitFinished(t, connectClient(t, h), beginRun(t, connectClient(t, h), ask), spec.Completed)
			if is.Model != c.model || is.Result.Text != "hello" || is.Result.Usage != was.Result.Usage || is.Result.Budget.Used != was.Result.Budget.Used {
				t.Errorf("was %+v\nis %+v", was.Result, is.Result)
			}
			if played, all := h.CountReplayed(); played != all || all == 0 {
				t.Errorf("%d of %d exchanges were played", played, all)
			}
		})
	}
}

// holdsNone looks at every byte of a directory.
func holdsNone(t *testing.T, dir string, secrets ...string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		for _, s := range secrets {
			if strings.Contains(string(data), s) {
				t.Errorf("%s holds %q", path, s)
			}
		}
		if info, statErr := d.Info(); statErr != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), statErr)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files: %v", files, err)
	}
}

// teamProvider is a double of OpenAI for a boss and three hands, who get the same task:
// their requests are the same. The first request of all is refused once.
type teamProvider struct{ asked atomic.Int64 }

func (s *teamProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if s.asked.Add(1) == 1 {
		w.Header().Set("Retry-After-Ms", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"type":"rate_limit_error","message":"slow down"}}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(delta, finish string) {
		fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
		w.(http.Flusher).Flush()
	}
	call := func(i int, name, args string) {
		say(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"c%d","type":"function","function":{"name":%q,"arguments":%q}}]}`, i, i, name, args), "null")
	}
	switch text := string(body); {
	case strings.Contains(text, "the-whole-task") && !strings.Contains(text, `"role":"assistant"`):
		for i := range 3 {
			call(i, "delegate", `{"agent":"hand","task":"a part"}`)
		}
		say(`{}`, `"tool_calls"`)
	case !strings.Contains(text, `"role":"assistant"`):
		call(0, "list_dir", `{"path":"."}`)
		say(`{}`, `"tool_calls"`)
	default:
		say(`{"role":"assistant","content":"done"}`, "null")
		say(`{}`, `"stop"`)
	}
	fmt.Fprint(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":50,\"completion_tokens\":5,\"total_tokens\":55}}\n\ndata: [DONE]\n\n")
}

// TestConcurrentRequestsAreReplayed: four agents, equal requests, a retry. A request that
// differs from the recording is refused, and the error names the difference.
func TestConcurrentRequestsAreReplayed(t *testing.T) {
	t.Parallel()
	double := &teamProvider{}
	s := httptest.NewServer(double)
	defer s.Close()
	agents, dir, tape := t.TempDir(), newRepository(t), filepath.Join(t.TempDir(), "tape")
	for name, text := range map[string]string{"boss": "---\nname: boss\ndescription: Delegates.\nx-troupe:\n  delegates: [hand]\n---\nDelegate.\n",
		"hand": "---\nname: hand\ndescription: Works.\n---\nWork.\n"} {
		if err := os.WriteFile(filepath.Join(agents, name+".md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask := client.RunRequest{Agents: agents, Agent: "boss", Dir: dir, Prompt: "the-whole-task"}
	h := startNode(t, t.TempDir(), func(c *Config) {
		c.Record, c.Roots = tape, []string{agents, dir}
		c.Env = func(v string) string {
			return map[string]string{"OPENAI_BASE_URL": s.URL + "/v1", "OPENAI_API_KEY": theKey}[v]
		}
	})
	was := waitFinished(t, connectClient(t, h), beginRun(t, connectClient(t, h), ask), spec.Completed)
	s.Close()
	asked := double.asked.Load()
	play := func(ask client.RunRequest, want spec.Reason) (client.RunInfo, *Node) {
		h := startNode(t, t.TempDir(), func(c *Config) { c.Replay, c.Roots = tape, []string{agents, dir} })
		return waitFinished(t, connectClient(t, h), beginRun(t, connectClient(t, h), ask), want), h
	}
	is, h := play(ask, spec.Completed)
	if played, all := h.CountReplayed(); played != all || int64(all) != asked || asked != 9 {
		t.Errorf("%d of %d exchanges were played, %d were recorded", played, all, asked)
	}
	if is.Result.Text != was.Result.Text || is.Result.Usage != was.Result.Usage || len(is.Result.Agents) != 4 {
		t.Errorf("was %+v\nis %+v", was.Result, is.Result)
	}
	ask.Prompt = "the-whole-task, but otherwise"
	is, _ = play(ask, spec.ModelError)
	for _, want := range []string{"0001.json", "messages[1].content", `now "the-whole-task, but otherwise"`, "--record"} {
		if !strings.Contains(is.Result.Detail, want) {
			t.Errorf("%q does not say %q", is.Result.Detail, want)
		}
	}
}

// serveSearcher is a double that looks for what its prompt says, and so for what the
// recording of it says.
func serveSearcher(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	delta, finish := `{"role":"assistant","content":"done"}`, "stop"
	if calls := strings.Count(string(body), `"role":"tool"`); calls < 3 {
		name := []string{"grep", "glob", "list_dir"}[calls]
		args := []string{`{"pattern":"the-needle"}`, `{"pattern":"**/*.json"}`, `{"path":"notes"}`}[calls]
		delta, finish = fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c%d","type":"function","function":{"name":%q,"arguments":%q}}]}`, calls, name, args), "tool_calls"
	}
	fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%q}]}\n\n", delta, finish)
	fmt.Fprint(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":50,\"completion_tokens\":5,\"total_tokens\":55}}\n\ndata: [DONE]\n\n")
}

// A recording below the directory of its run is no part of it: the tools would
// find there what the run itself has said, and later more of it than before.
func TestARecordingBelowTheDirectoryIsNotFoundThere(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(serveSearcher))
	defer s.Close()
	dir := newRepository(t)
	tape := filepath.Join(dir, "notes", "tape")
	if err := os.Mkdir(filepath.Dir(tape), 0o700); err != nil {
		t.Fatal(err)
	}
	ask := client.RunRequest{Prompt: "look for the-needle", Dir: dir, Model: "openai/gpt-6-sol"}
	h := startNode(t, t.TempDir(), func(c *Config) {
		c.Record, c.Roots = tape, []string{dir}
		c.Env = func(v string) string {
			return map[string]string{"OPENAI_BASE_URL": s.URL + "/v1", "OPENAI_API_KEY": theKey}[v]
		}
	})
	waitFinished(t, connectClient(t, h), beginRun(t, connectClient(t, h), ask), spec.Completed)
	h = startNode(t, t.TempDir(), func(c *Config) { c.Replay, c.Roots = tape, []string{dir} })
	is := waitFinished(t, connectClient(t, h), beginRun(t, connectClient(t, h), ask), spec.Completed)
	if played, all := h.CountReplayed(); played != all || all != 4 || is.Result.Text != "done" {
		t.Errorf("%d of %d exchanges were played: %+v", played, all, is.Result)
	}

	h = startNode(t, t.TempDir(), func(c *Config) { c.Replay, c.Roots = tape, []string{tape} })
	ask.Dir = tape // all of it is the recording
	var refused *client.Error
	if _, err := connectClient(t, h).Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "?", Dir: tape}); !errors.As(err, &refused) || refused.Code != client.CodeBad || !strings.Contains(err.Error(), "recording") {
		t.Error(err)
	}
}

// A recording is not mixed with another one, and other files are not replayed.
func TestADirectoryHoldsOneRecording(t *testing.T) {
	t.Parallel()
	tape := t.TempDir()
	if err := os.WriteFile(filepath.Join(tape, "0001.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[error]Config{cassette.ErrFull: {Record: tape}, cassette.ErrCassette: {Replay: tape}, routes.ErrRecordings: {Record: "a", Replay: "b"}} {
		cfg.StateDir, cfg.StartServer = t.TempDir(), embedded.StartServer
		if h, err := Start(testContext(t), cfg); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
			if h != nil {
				t.Error(h.Close())
			}
		}
	}
}

// A model without a wire leaves only the label, and the client is informed.
func TestModelWithoutHTTPIsNotRecorded(t *testing.T) {
	t.Parallel()
	tape := filepath.Join(t.TempDir(), "tape")
	h := startNode(t, t.TempDir(), func(c *Config) { c.Record = tape })
	a, err := connectClient(t, h).Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "p", Model: writeScript(t, "default: [{text: hi}]")})
	if err != nil || !strings.Contains(strings.Join(a.Notes, "\n"), "makes no HTTP requests") {
		t.Errorf("%+v, %v", a, err)
	}
	if p, err := cassette.NewPlayer(cassette.PlayConfig{Dir: tape}); err != nil || !strings.HasPrefix(p.Label().Model, "script/") || time.Since(p.Label().At) > patience {
		t.Errorf("%+v, %v", p.Label(), err)
	}
}
