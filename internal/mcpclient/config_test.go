package mcpclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func parseText(t *testing.T, text string) File {
	t.Helper()
	f, err := parseConfig("/w/.mcp.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAFileOfOtherToolsIsReadAsItIs(t *testing.T) {
	f := parseText(t, "\uFEFF"+`{"mcpServers":{
		"files": {"command":"npx","args":["-y","@modelcontextprotocol/server-filesystem","."],"env":{"LOG":"${LEVEL:-info}"},"timeout":2500},
		"issue tracker": {"type":"http","url":"https://${HOST}/mcp","headers":{"Authorization":"Bearer ${TOKEN}"}},
		"off": {"command":"x","disabled":true},
		"new": {"command":"x","alwaysAllow":["a"],"cwd":"sub"}
	},"other":1}`)
	if got := len(f.Servers); got != 3 {
		t.Fatalf("%+v", f.Servers)
	}
	files, tracker, fresh := f.Servers[0], f.Servers[1], f.Servers[2]
	if files.Name == "new" {
		files, tracker, fresh = f.Servers[0], f.Servers[1], f.Servers[2]
	}
	if files.Name != "files" || files.Timeout != 2500*time.Millisecond || files.Line() != "npx -y @modelcontextprotocol/server-filesystem ." {
		t.Errorf("%+v", files)
	}
	if tracker.Name != "issue_tracker" || tracker.Line() != "https://${HOST}/mcp" || !slices.Equal(tracker.Variables(), []string{"HOST", "TOKEN"}) {
		t.Errorf("%+v %v", tracker, tracker.Variables())
	}
	if fresh.Dir != "/w/sub" {
		t.Errorf("%+v", fresh)
	}
	want := []string{`/w/.mcp.json: the server new: the key "alwaysAllow" is not known and does nothing`, "/w/.mcp.json: the server off is disabled in the file"}
	if slices.Sort(f.Notes); !slices.Equal(f.Notes, want) {
		t.Errorf("%q", f.Notes)
	}
}

func TestVariablesAreExpandedWhenTheServerIsReachedAndNotBefore(t *testing.T) {
	s := parseText(t, `{"mcpServers":{"a":{"command":"${BIN:-run}","args":["--to=${TO}","$TO","${9}"],"env":{"K":"${TO}"}}}}`).Servers[0]
	out, err := s.expandVariables(func(name string) string { return map[string]string{"TO": "x y; rm -rf /"}[name] })
	if err != nil || out.Command != "run" || !slices.Equal(out.Args, []string{"--to=x y; rm -rf /", "$TO", "${9}"}) || out.Env["K"] != "x y; rm -rf /" {
		t.Errorf("%+v %v", out, err)
	}
	if s.Args[0] != "--to=${TO}" {
		t.Error("the definition was changed")
	}
	if _, err := s.expandVariables(func(string) string { return "" }); !errors.Is(err, ErrVariable) || !strings.Contains(err.Error(), "TO of the server a in /w/.mcp.json") {
		t.Error(err)
	}
}

func TestInvalidServerDefinitionNamesItsRemedy(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\n x":               "/w/.mcp.json: line 3: a character that has no place there",
		`{"mcpServers":[1]}`:    "/w/.mcp.json: mcpServers cannot be array",
		`{"mcpServers":{"":1}}`: "the name must have letters or digits",
		`{"mcpServers":{"` + strings.Repeat("x", ServerNameMax+1) + `":{}}}`: "the name must have letters or digits, at most 32",
		`{"mcpServers":{"a":{}}}`:                                                  `"a": give either "command" or "url"`,
		`{"mcpServers":{"a":{"command":"x","url":"http://y"}}}`:                    `give either "command" or "url"`,
		`{"mcpServers":{"a":{"command":["x"]}}}`:                                   `"a": command cannot be array`,
		`{"mcpServers":{"a":{"type":"sse","url":"http://y"}}}`:                     "the transport sse is not supported",
		`{"mcpServers":{"a":{"type":"ftp","url":"http://y"}}}`:                     `its type is neither stdio nor http; use one of them`,
		`{"mcpServers":{"a":{"type":"http","command":"y"}}}`:                       "type is http, and there is no url",
		`{"mcpServers":{"a":{"command":"y","env":{"A=B":"c"}}}}`:                   `env has the name "A=B"`,
		`{"mcpServers":{"a b":{"command":"y"},"a_b":{"command":"z"}}}`:             "another server has the name a_b",
		`{"mcpServers":` + strings.Repeat(`{"a":`, 20_000):                         "/w/.mcp.json: line 1",
		`{"mcpServers":{"a":{"command":"` + strings.Repeat("x", FileBytesMax) + "": "has more than 1048576 bytes",
	} {
		if _, err := parseConfig("/w/.mcp.json", []byte(text)); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

func TestAFileThatIsNotThereHasNoServersAndOneThatIsNoFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	if f, err := Read(filepath.Join(dir, "none.json")); err != nil || len(f.Servers) != 0 {
		t.Errorf("%+v %v", f, err)
	}
	if _, err := Read(dir); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := Read(filepath.Join(dir, FileName)); err != nil || len(f.Notes) != 1 {
		t.Errorf("%+v %v", f, err)
	}
}

func TestEndlessFileIsRefused(t *testing.T) {
	keys, many := map[string]any{"command": "x"}, map[string]any{}
	for i := range 5000 {
		keys[fmt.Sprint("key", i)], many[fmt.Sprint("s", i)] = 1, map[string]any{"command": "x"}
	}
	parse := func(servers any) (File, error) {
		raw, err := json.Marshal(map[string]any{"mcpServers": servers})
		if err != nil {
			t.Fatal(err)
		}
		return parseConfig("p", raw)
	}
	if f, err := parse(map[string]any{"a": keys}); err != nil || len(f.Notes) != keysNamed+1 || f.Notes[keysNamed] != "p: the server a: 4992 more keys are not known and do nothing" {
		t.Errorf("%v, %d notes", err, len(f.Notes))
	}
	if _, err := parse(many); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "p defines 5000 servers, at most 128 are read") {
		t.Error(err)
	}
}

func TestServerIdentityFollowsItsCommand(t *testing.T) {
	base := Server{Name: "a", Source: "x", Command: "npx", Args: []string{"-y", "p"}, Env: map[string]string{"K": "v"}}
	same := base
	same.Source, same.Timeout = "elsewhere", time.Second
	if base.Hash() != same.Hash() {
		t.Error("the file and the time of a call are no other server")
	}
	for name, change := range map[string]func(*Server){
		"command": func(s *Server) { s.Command = "npy" }, "args": func(s *Server) { s.Args = []string{"-y", "q"} },
		"env": func(s *Server) { s.Env = map[string]string{"K": "w"} }, "cwd": func(s *Server) { s.Dir = "/" },
		"url": func(s *Server) { s.URL = "http://x" }, "headers": func(s *Server) { s.Headers = map[string]string{"A": "b"} },
	} {
		other := base
		if change(&other); other.Hash() == base.Hash() {
			t.Error(name)
		}
	}
}

func TestNamesOfToolsAreValidAndNoServerCanTakeAnothers(t *testing.T) {
	for _, c := range [][3]string{
		{"files", "read_file", "mcp__files__read_file"},
		{"files", "read file!", "mcp__files__read_file_"},
		{"a", "b__c", "mcp__a__b__c"},
		{"a", strings.Repeat("long", 30), "mcp__a__" + strings.Repeat("long", 11) + "lon_" + "cc8458d7"},
	} {
		if got := nameTool(c[0], c[1]); len(got) > ToolNameMax || got != c[2] {
			t.Errorf("%q is %s", c[1], got)
		}
	}
	for name, want := range map[string]string{"a__b": "a_b", "_a_": "a", "my.server v2": "my_server_v2", "é": "", strings.Repeat("x", 33): ""} {
		if got := ServerName(name); got != want {
			t.Errorf("%q is %q", name, got)
		}
	}
	for tool, want := range map[string]string{"mcp__a__b__c": "a", "mcp__a___b": "a", "mcp__a": "", "shell": "", "mcp____b": ""} {
		if got, ok := ServerOf(tool); ok != (want != "") || ok && got != want {
			t.Errorf("%s is of %q", tool, got)
		}
	}
	for word, want := range map[string]bool{"mcp__a": true, "mcp__a__b": true, "mcp__*": true, "mcp__a__*": true, "mcp__ab": false, "*": false, "mcp__a__c": false} {
		if got := Means(word, "mcp__a__b"); got != want {
			t.Errorf("%s: %v", word, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"a":{"command":"${X:-y}","args":["z"]},"b":{"type":"http","url":"http://x"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := parseConfig("f", data)
		for _, s := range file.Servers {
			if s.Name != ServerName(s.Name) || len(s.Hash()) != 64 || (s.Command == "") == (s.URL == "") {
				t.Errorf("%+v %v", s, err)
			}
		}
	})
}
