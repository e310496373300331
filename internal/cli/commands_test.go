package cli

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/model"
)

// leaves are all commands that do something.
func leaves(c *cobra.Command) (list []*cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.HasSubCommands() {
			list = append(list, leaves(sub)...)
		} else if sub.Name() != "help" {
			list = append(list, sub)
		}
	}
	return list
}

// plain are commands whose output has one form.
var plain = []string{
	"troupe fmt", // a filter: it writes what it reads
	"troupe up",  // it says what it does until it is stopped
}

func TestEveryCommandHasExamplesAndJSON(t *testing.T) {
	a := newApp(&console{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: func(string) string { return "" }}, 0)
	root := a.root()
	all := leaves(root)
	if len(all) < 30 {
		t.Errorf("only %d commands", len(all))
	}
	for _, c := range all {
		path := c.CommandPath()
		if c.Short == "" || !strings.HasPrefix(c.Example, "  ") {
			t.Errorf("%s: no help, or no example", path)
		}
		can := strings.Fields(c.Annotations[formats])
		if !slices.Contains(plain, path) && (!slices.Contains(can, "json") || !slices.Contains(can, "yaml")) {
			t.Errorf("%s: it writes %v, and no JSON", path, can)
		}
		if c.ValidArgs == nil && c.ValidArgsFunction == nil {
			t.Errorf("%s: its words are not completed", path)
		}
		for _, text := range []string{c.Example, c.Long} {
			for line := range strings.Lines(text) {
				if len([]rune(strings.TrimRight(line, "\n"))) > 160 {
					t.Errorf("%s: a line of its help has %d characters", path, len(line))
				}
			}
		}
		runnable(t, root, c)
	}
}

// runnable checks that the examples of a command name commands and flags that there are.
func runnable(t *testing.T, root, c *cobra.Command) {
	t.Helper()
	named := false
	for line := range strings.Lines(c.Example) {
		line = strings.ReplaceAll(line, "nats --context troupe ", "nats ")
		for at := strings.Index(line, "troupe "); at >= 0; at = strings.Index(line, "troupe ") {
			line = line[at+len("troupe "):]
			words := strings.Fields(strings.ReplaceAll(line, "'", " "))
			if end := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, "|;)&>") }); end >= 0 {
				words = append(words[:end], strings.TrimRight(words[end], "|;)&>"))
			}
			found, _, err := root.Find(words)
			if err != nil || found == root {
				t.Errorf("%s: no command in the example %q (%v)", c.CommandPath(), line, err)
				continue
			}
			named = named || found == c
			for _, w := range words {
				name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
				long := strings.HasPrefix(w, "--") && found.Flags().Lookup(name) == nil && found.InheritedFlags().Lookup(name) == nil
				if long {
					t.Errorf("%s: there is no flag %s in %q", c.CommandPath(), w, line)
				}
			}
		}
	}
	if !named {
		t.Errorf("%s: its examples show other commands", c.CommandPath())
	}
}

// pings asks a provider at an address, as a user with a key would.
func pings(t *testing.T, handler http.HandlerFunc, timeout time.Duration) (string, error) {
	t.Helper()
	s := httptest.NewServer(handler)
	defer s.Close()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"OPENAI_API_KEY": "sk-a-secret", "OPENAI_BASE_URL": s.URL}
	c := &console{out: out, err: os.Stderr, output: "table", getenv: func(k string) string { return env[k] }}
	a := &modelCommands{console: c, sessions: &opener{console: c}}
	err = a.ping(t.Context(), "openai/gpt-6-sol", timeout)
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
	text, err := pings(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(answer)) // a client that is gone fails the test elsewhere
	}, time.Minute)
	if err != nil || !strings.Contains(text, "pong") || !strings.Contains(text, "12 in, 3 out") || !strings.Contains(text, "cost       unknown") {
		t.Errorf("%v: %s", err, text)
	}
	_, err = pings(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"message":"wrong key sk-a-secret"}}`)) // as above
	}, time.Minute)
	f := explain(err)
	if f.code != exitProvider || !strings.Contains(f.hint, "OPENAI_API_KEY") || strings.Contains(f.Error()+f.hint, "sk-a-secret") {
		t.Errorf("%+v", f)
	}
}

// A provider that takes the request and says nothing does not hold the command up.
func TestPingDoesNotHang(t *testing.T) {
	began := time.Now()
	_, err := pings(t, func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil { // only then it is seen that the client has gone
			<-r.Context().Done()
		}
	}, 200*time.Millisecond)
	if f := explain(err); f.code != exitProvider || !strings.Contains(f.Error(), "did not answer within 200ms") {
		t.Errorf("%+v", f)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// What docs/manners.md shows as settings, the schema and the readers take; what
// the schema refuses, they refuse.
func TestTheSchemaOfSettingsSaysWhatIsRead(t *testing.T) {
	raw, err := os.ReadFile("../../docs/manners.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "```yaml\n")
	shown, _, _ := strings.Cut(rest, "```")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "finding.schema.json"), []byte(`{"type":"object","required":["a"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	schema, err := config.Schema().Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, good := range map[string]bool{
		shown: true, "watch: off\nbreaker: {failures: 0}\ncontinue: 5000\ntool_retries: off\npolling: check\n": true,
		"watch: {of: often}\n": false, "watch: {off: 3}\n": false, "breaker: 3\n": false, "tool_retries: many\n": false,
		"context: {percent: -1}\n": false, "tools: {shell: {class: harmless}}\n": false, "tools: [shell]\n": false,
		"require: {evidence: grep}\n": false, "require: {proof: [grep]}\n": false, "hooks: 3\n": false, "continue: {tokens: lots}\n": false,
	} {
		file := filepath.Join(dir, "troupe.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		problems, _ := configProblems(file)
		if (len(problems) == 0) != good {
			t.Errorf("%q: %v", text, problems)
		}
		if err := schema.Validate(doc); (err == nil) != good {
			t.Errorf("%q: the schema says %v", text, err)
		}
	}
}

// A transcript shows where a compaction put a summary in place of what is above,
// and hides what was struck.
func TestTranscriptMarksCompactions(t *testing.T) {
	out, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }() // only read
	a := &runsCommands{console: &console{out: out}}
	text := strings.Join(a.transcriptText(transcript{Agent: "root", Name: "lead", System: "be brief", Messages: []model.Message{
		{Role: model.User, Text: "compare"}, {Role: model.Assistant, Text: "half a word", Tombstone: true},
		{Role: model.Assistant, Text: "I look\x1b[2J", Calls: []model.ToolCall{{ID: "1-0", Name: "grep", Args: `{"pattern":"x"}`}}},
		{Role: model.ToolRole, Results: []model.ToolResult{{Call: "1-0", Text: "nothing", Error: true}}},
		{Role: model.Assistant, Text: "done", Usage: &model.Usage{Input: 1200, Output: 7}},
	}, Folds: []client.Fold{{Upto: 4, Turn: 3, Text: "a summary"}, {Upto: 5, Turn: 9, Deep: true, Plain: true}}}, transcriptFlags{usage: true}), "\n")
	want := `lead (root)
be brief

user
compare

assistant
I look\x1b[2J
→ 1-0 grep {"pattern":"x"}

tool
✗ 1-0 grep nothing

── compacted at turn 3: a summary of 9 bytes stands for the 4 messages above

assistant  1.2k in, 7 out, 0 cached
done

── pruned deep at turn 9: an excerpt of 0 bytes stands for the 5 messages above`
	if d := cmp.Diff(want, text); d != "" {
		t.Error(d)
	}
}
