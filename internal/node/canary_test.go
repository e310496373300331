package node

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
)

// entrances are the ways by which a secret that the node knows may come into a run.
// Each brings a secret of its own, so that a leak names its entrance.
var entrances = []string{"prompt", "steering", "refused-request", "system-prompt", "description", "task-of-a-child", "reply", "reply-in-pieces", "arguments",
	"arguments-of-a-write", "tool-output", "tool-error", "tool-output-too-large", "file", "hook-text", "hook-error", "provider-error", "key", "address"}

// shapes are the entrances of secrets that are not configured in the node.
var shapes = map[string]string{".env": "Zx9Qw7Rt5Yu3Io1PmN", "key file": strings.Repeat("MIIEvQIBADANBgkqhkiG9w0B", 2)}

// canarySecret is the secret of an entrance. It is written otherwise in a URL and in JSON.
func canarySecret(door string) string { return fmt.Sprintf(`c4nary/%s+"<7>&q\%d`, door, len(door)) }

// encodedForms are the forms of a secret.
func encodedForms(secret string) map[string]string {
	quote := func(html bool) string {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		_ = enc.Encode(secret) // a text
		return strings.Trim(b.String(), "\"\n")
	}
	return map[string]string{"raw": secret, "base64": base64.StdEncoding.EncodeToString([]byte(secret)), "base64 for URLs": base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"user:secret in base64": base64.StdEncoding.EncodeToString([]byte("user:" + secret)), "query": url.QueryEscape(secret), "path": url.PathEscape(secret),
		"JSON": quote(false), "JSON for pages": quote(true)}
}

// leakPayload is a text with a secret in every form, and a mark that is none.
func leakPayload(door string) string {
	text := "mark-" + door
	for _, form := range encodedForms(canarySecret(door)) {
		text += " [" + form + "]"
	}
	return text
}

func asJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// leakyProvider is a double of a provider whose replies and errors are full of secrets. It
// replies only once the run was steered: a run that is over is not.
type leakyProvider struct {
	steered chan struct{}

	mu     sync.Mutex
	asked  int
	bodies bytes.Buffer
}

func (p *leakyProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.asked++
	first := p.asked == 1
	p.bodies.Write(body)
	p.mu.Unlock()
	if first {
		w.Header().Set("Retry-After-Ms", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, `{"error":{"type":"api_error","message":%s}}`, asJSON(leakPayload("provider-error")+r.Header.Get("Authorization")))
		return
	}
	select {
	case <-p.steered:
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(delta any, finish string) {
		fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", asJSON(delta), finish)
	}
	text := func(s string) { say(map[string]any{"role": "assistant", "content": s}, "null") }
	switch asked := string(body); {
	case strings.Contains(asked, "You are a hand."):
		text("I am done.")
		say(map[string]any{}, `"stop"`)
	case strings.Contains(asked, `"role":"assistant"`):
		text(leakPayload("reply"))
		say(map[string]any{}, `"stop"`)
	default:
		for piece := range slices.Chunk([]byte(leakPayload("reply-in-pieces")), 5) {
			text(string(piece))
		}
		for i, c := range theCalls() {
			say(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": fmt.Sprint("c", i), "type": "function",
				"function": map[string]string{"name": c[0], "arguments": c[1]}}}}, "null")
		}
		say(map[string]any{}, `"tool_calls"`)
	}
	fmt.Fprint(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":50,\"completion_tokens\":5,\"total_tokens\":55}}\n\ndata: [DONE]\n\n")
}

// theCalls are what the model calls, with arguments.
func theCalls() [][2]string {
	args := func(pairs ...string) string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return asJSON(m)
	}
	return [][2]string{{"speak", args("x", leakPayload("arguments"))}, {"fail", "{}"}, {"flood", "{}"}, {"read_file", args("path", "notes.txt")},
		{"read_file", args("path", ".env")}, {"read_file", args("path", "id_rsa")}, {"grep", args("pattern", "connect")},
		{"write_file", args("path", "out.txt", "content", leakPayload("arguments-of-a-write"))}, {"delegate", args("agent", "hand", "task", leakPayload("task-of-a-child"))}}
}

// leakScenario is where it happens: files, agents and the environment.
type leakScenario struct{ dir, agents, outside string }

func newLeakScenario(t *testing.T) leakScenario {
	t.Helper()
	s := leakScenario{t.TempDir(), t.TempDir(), t.TempDir()}
	at := func(name string) string { return "'" + filepath.Join(s.outside, name) + "'" }
	files := map[string]string{
		filepath.Join(s.dir, "notes.txt"):  leakPayload("file") + "\nconnect with " + shapes[".env"] + "\n",
		filepath.Join(s.dir, ".env"):       "DB_PASSWORD=" + shapes[".env"] + "\n",
		filepath.Join(s.dir, "id_rsa"):     "-----BEGIN " + "PRIVATE KEY-----\n" + shapes["key file"] + "\n-----END " + "PRIVATE KEY-----\n",
		filepath.Join(s.agents, "hand.md"): "---\nname: hand\ndescription: Works.\n---\nYou are a hand.\n",
		filepath.Join(s.agents, "boss.md"): "---\nname: boss\ndescription: " + asJSON(leakPayload("description")) + `
x-troupe:
  delegates: [hand]
  tools:
    - {name: speak, description: Speaks., command: "cat ` + at("speech") + `", effect: read}
    - {name: fail, description: Fails., command: "cat ` + at("failure") + ` >&2; exit 3", effect: read}
    - {name: flood, description: Floods., command: "cat ` + at("flood") + `", effect: read}
---
` + leakPayload("system-prompt") + "\n",
		filepath.Join(s.outside, "speech"):  leakPayload("tool-output"),
		filepath.Join(s.outside, "failure"): leakPayload("tool-error"),
		filepath.Join(s.outside, "flood"):   strings.Repeat(leakPayload("tool-output-too-large")+"\n", 300),
		filepath.Join(s.outside, "hook"):    asJSON(map[string]string{"text": leakPayload("hook-text")}),
		filepath.Join(s.outside, "broken"):  leakPayload("hook-error"),
	}
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s leakScenario) leakyHooks() []spec.Hook {
	return []spec.Hook{{Name: "teller", Point: spec.HookPreTool, Tools: "speak", Command: "cat '" + filepath.Join(s.outside, "hook") + "'"},
		{Name: "broken", Point: spec.HookPreTool, Tools: "fail", Command: "cat '" + filepath.Join(s.outside, "broken") + "' >&2; exit 1"}}
}

// environOf is what makes the canaries secrets that the node knows.
func environOf() (list []string) {
	for _, d := range entrances {
		if d != "key" && d != "address" { // those are a provider's
			list = append(list, strings.ToUpper(strings.ReplaceAll(d, "-", "_"))+"_TOKEN="+canarySecret(d))
		}
	}
	return list
}

// lockedBuffer keeps everything that is written to it.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (e *lockedBuffer) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text.Write(p)
}

func (e *lockedBuffer) copyBytes() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return bytes.Clone(e.text.Bytes())
}

// TestNoSecretLeavesARun lets a secret into a run through every entrance, in every form, and
// searches every exit: it finds none. It does find a mark that entered beside each secret,
// so the search is meaningful.
func TestNoSecretLeavesARun(t *testing.T) {
	t.Parallel()
	double := &leakyProvider{steered: make(chan struct{})}
	server := httptest.NewServer(double)
	defer server.Close()
	steered := sync.OnceFunc(func() { close(double.steered) })
	defer steered()
	s, state, tape := newLeakScenario(t), t.TempDir(), filepath.Join(t.TempDir(), "tape")
	address, err := url.Parse(server.URL + "/v1")
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword("user", canarySecret("address"))
	var events, streamed, said lockedBuffer
	h := startNode(t, state, func(c *Config) {
		c.Roots, c.Record, c.Hooks, c.Environ = []string{s.dir, s.agents}, tape, s.leakyHooks(), environOf()
		c.Logger = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c.Env = func(name string) string {
			return map[string]string{"OPENAI_API_KEY": canarySecret("key"), "OPENAI_BASE_URL": address.String()}[name]
		}
	})
	if _, err := connectRole(t, h, bus.RoleObserver).Subscribe("troupe.evt.>", func(m *nats.Msg) {
		var e struct{ Data struct{ Text string } }
		if strings.HasSuffix(m.Subject, ".message.delta") && json.Unmarshal(m.Data, &e) == nil {
			_, _ = streamed.Write([]byte(e.Data.Text)) // as a reader joins it
		}
		_, _ = events.Write(m.Data)
	}); err != nil {
		t.Fatal(err)
	}
	h.cfg.Logger.Warn(leakPayload("key"), "error", fmt.Errorf("wrapped: %s", leakPayload("address")), slog.Group("g", "x", leakPayload("prompt")))
	c := connectClient(t, h)
	_, refused := c.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "p", Model: "nobody/" + leakPayload("refused-request")})
	run := beginRun(t, c, client.RunRequest{Prompt: leakPayload("prompt"), Agents: s.agents, Agent: "boss", Dir: s.dir, Model: "openai/gpt-x", Yes: true, MaxTokens: 500_000})
	if err := c.Steer(testContext(t), client.SteerRequest{RunID: run, Request: client.NewID(), Text: leakPayload("steering")}); err != nil {
		t.Fatal(err)
	}
	steered()
	info := waitFinished(t, c, run, spec.Completed)
	exits := map[string][]byte{"answers": clientAnswers(t, c, run, info), "refusal": fmt.Append(nil, refused), "events": nil, "log": nil,
		"requests to the model": double.bodies.Bytes()}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	exits["events"], exits["streamed text"], exits["log"] = events.copyBytes(), streamed.copyBytes(), said.copyBytes()
	exits["store"], exits["recording"] = readTree(t, state), readTree(t, tape)
	if exits["written file"], err = os.ReadFile(filepath.Join(s.dir, "out.txt")); err != nil {
		t.Error(err)
	}
	checkExits(t, exits)
}

// clientAnswers are everything that a client can ask about a run.
func clientAnswers(t *testing.T, c *client.Client, run string, info client.RunInfo) []byte {
	t.Helper()
	all := []byte(asJSON(info))
	for _, who := range []string{"", "root"} {
		if raw, err := c.Transcript(testContext(t), run, who); err == nil {
			all = append(all, raw...)
		}
		if raw, err := c.Export(testContext(t), run, who, nil); err == nil {
			all = append(all, raw...)
		}
	}
	list, err := c.List(testContext(t))
	if err != nil {
		t.Error(err)
	}
	whole, err := c.Describe(testContext(t), run)
	if err != nil {
		t.Error(err)
	}
	all = append(all, asJSON([]any{list, whole})...)
	err = c.Events(testContext(t), run, nil, false, func(_ client.Event, raw []byte) error {
		all = append(all, raw...)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

// readTree is every byte under a directory.
func readTree(t *testing.T, dir string) (all []byte) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		all = append(all, data...)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

// seen lists the entrances whose marks must be found at an exit: their text is known to
// come out there, except for the secret.
var seen = map[string][]string{
	"answers":               {"prompt", "steering", "reply", "reply-in-pieces", "arguments", "tool-output", "tool-error", "file"},
	"events":                {"reply", "arguments", "tool-output", "tool-error", "hook-error", "task-of-a-child"},
	"store":                 {"prompt", "steering", "system-prompt", "reply", "reply-in-pieces", "arguments", "tool-output", "tool-error", "tool-output-too-large", "file", "hook-text", "hook-error", "provider-error", "task-of-a-child"},
	"recording":             {"prompt", "system-prompt", "reply", "arguments", "provider-error", "tool-output", "file"},
	"requests to the model": {"prompt", "system-prompt", "tool-output", "tool-error", "tool-output-too-large", "file", "hook-text", "task-of-a-child"},
	"written file":          {"arguments-of-a-write"},
	"streamed text":         {"reply", "reply-in-pieces"},
	"log":                   {"key", "address", "prompt"},
	"refusal":               {"refused-request"},
}

func checkExits(t *testing.T, exits map[string][]byte) {
	t.Helper()
	looks, found := 0, 0
	for exit, data := range exits {
		for _, door := range entrances {
			for name, form := range encodedForms(canarySecret(door)) {
				looks++
				if at := bytes.Index(data, []byte(form)); at >= 0 {
					found++
					t.Errorf("%s: the secret that came in by %s is there, %s: …%q", exit, door, name, data[max(0, at-80):min(len(data), at+len(form)+20)])
				}
			}
		}
		for name, secret := range shapes {
			looks++
			if bytes.Contains(data, []byte(secret)) {
				found++
				t.Errorf("%s: the secret of a %s is there", exit, name)
			}
		}
		for _, door := range seen[exit] {
			if !bytes.Contains(data, []byte("mark-"+door)) {
				t.Errorf("%s: what came in by %s cannot be found, so the look for its secret says nothing", exit, door)
			}
		}
	}
	t.Logf("%d doors, %d shapes, %d exits: %d looks, %d secrets found", len(entrances), len(shapes), len(exits), looks, found)
}
