package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/hook"
	"github.com/troupe-run/troupe/model"
)

// runHooks runs hooks of one point.
func runHooks(t *testing.T, funcs map[string]hook.Func, about hook.Call, e agent.RunHooks) []spec.HookAnswer {
	t.Helper()
	answers := hook.NewRunner(funcs, nil).Run(t.Context(), about, e)
	if len(answers) != len(e.Hooks) {
		t.Fatalf("%d answers of %d hooks", len(answers), len(e.Hooks))
	}
	for i, a := range answers {
		if a.Hook != e.Hooks[i].Name {
			t.Errorf("answer %d is of %q, asked was %q", i, a.Hook, e.Hooks[i].Name)
		}
	}
	return answers
}

// TestCommands: the output and the exit code of a command line, in the formats of other
// agent tools and in troupe's own.
func TestCommands(t *testing.T) {
	for name, c := range map[string]struct {
		point   spec.HookPoint
		command string
		want    spec.HookAnswer
	}{
		"silence passes":                      {spec.HookPreTool, `true`, spec.HookAnswer{}},
		"plain text is not for us":            {spec.HookPreTool, `echo fine`, spec.HookAnswer{}},
		"exit 2 refuses a call":               {spec.HookPreTool, `echo "not this one" >&2; exit 2`, spec.HookAnswer{Decision: spec.HookDeny, Text: "not this one"}},
		"exit 2 blocks a stop":                {spec.HookStop, `echo "tests fail" >&2; exit 2`, spec.HookAnswer{Decision: spec.HookBlock, Text: "tests fail"}},
		"exit 2 does not pass a prompt":       {spec.HookInput, `echo "a key" >&2; exit 2`, spec.HookAnswer{Decision: spec.HookDeny, Text: "a key"}},
		"exit 2 is a word where it is told":   {spec.HookPostTool, `echo "not formatted" >&2; exit 2`, spec.HookAnswer{Text: "not formatted"}},
		"exit 2 cannot reshape":               {spec.HookContext, `exit 2`, spec.HookAnswer{Failed: `it refused`}},
		"any other exit is a failure":         {spec.HookPreTool, `echo "no such file" >&2; exit 1`, spec.HookAnswer{Failed: "exit code 1; stderr: no such file"}},
		"a missing program is a failure":      {spec.HookPreTool, `/no/such/program`, spec.HookAnswer{Failed: "exit code 127"}},
		"a signal is a failure":               {spec.HookPreTool, `kill -9 $$`, spec.HookAnswer{Failed: "it was ended by a signal"}},
		"broken JSON is a failure":            {spec.HookPreTool, `echo '{"decision":'`, spec.HookAnswer{Failed: "its output is not JSON"}},
		"a word that is no decision":          {spec.HookPreTool, `echo '{"decision":"maybe"}'`, spec.HookAnswer{Failed: `"maybe" is not a decision at pre_tool`}},
		"permissionDecision deny":             {spec.HookPreTool, `echo '{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"private"}}'`, spec.HookAnswer{Decision: spec.HookDeny, Text: "private"}},
		"permissionDecision ask":              {spec.HookPreTool, `echo '{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"money"}}'`, spec.HookAnswer{Decision: spec.HookAsk, Text: "money"}},
		"permissionDecision allow, new input": {spec.HookPreTool, `echo '{"hookSpecificOutput":{"permissionDecision":"allow","permissionDecisionReason":"ok","updatedInput":{"q": "4"}}}'`, spec.HookAnswer{Decision: spec.HookAllow, Args: `{"q":"4"}`}},
		"the older words":                     {spec.HookPreTool, `echo '{"decision":"approve","reason":"ok"}'`, spec.HookAnswer{Decision: spec.HookAllow}},
		"block":                               {spec.HookPreTool, `echo '{"decision":"block","reason":"no"}'`, spec.HookAnswer{Decision: spec.HookDeny, Text: "no"}},
		"block a stop":                        {spec.HookStop, `echo '{"decision":"block","reason":"run the tests"}'`, spec.HookAnswer{Decision: spec.HookBlock, Text: "run the tests"}},
		"approve a stop":                      {spec.HookStop, `echo '{"decision":"approve"}'`, spec.HookAnswer{}},
		"block after the fact":                {spec.HookPostTool, `echo '{"decision":"block","reason":"look again"}'`, spec.HookAnswer{Text: "look again"}},
		"additional context":                  {spec.HookPostTool, `echo '{"hookSpecificOutput":{"additionalContext":"it is Monday"}}'`, spec.HookAnswer{Text: "it is Monday"}},
		"do not continue":                     {spec.HookStop, `echo '{"continue":false,"stopReason":"enough","decision":"block"}'`, spec.HookAnswer{Decision: spec.HookPrevent, Text: "enough"}},
		"do not continue with a prompt":       {spec.HookInput, `echo '{"continue":false,"stopReason":"a key"}'`, spec.HookAnswer{Decision: spec.HookTrip, Text: "a key"}},
		"our words":                           {spec.HookPreTool, `echo '{"decision":"override","result":"as of yesterday"}'`, spec.HookAnswer{Decision: spec.HookOverride, Text: "as of yesterday"}},
		"arguments that are no object":        {spec.HookPreTool, `echo '{"args":[1]}'`, spec.HookAnswer{Failed: "the arguments it gave are no JSON object"}},
		"too much":                            {spec.HookPreTool, `head -c 200000 /dev/zero | tr '\0' 'x'`, spec.HookAnswer{Failed: "it printed 200000 bytes, at most 131072 are read"}},
		"a secret is not passed on":           {spec.HookStop, `echo "key sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789" >&2; exit 2`, spec.HookAnswer{Decision: spec.HookBlock, Text: "key [masked]"}},
		"a secret is no argument":             {spec.HookPreTool, `echo '{"args":{"q":"sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"}}'`, spec.HookAnswer{Failed: "what looks like a secret"}},
		"messages":                            {spec.HookContext, `echo '{"messages":[{"role":"user","text":"short"}]}'`, spec.HookAnswer{Messages: []model.Message{{Role: model.User, Text: "short"}}, Sent: 1}},
		"messages nobody would take":          {spec.HookContext, `echo '{"messages":[]}'`, spec.HookAnswer{Failed: "does not begin with a user's message"}},
		"a severity":                          {spec.HookOutput, `echo '{"decision":"deny","reason":"no","severity":"critical"}'`, spec.HookAnswer{Decision: spec.HookDeny, Text: "no", Severity: "critical"}},
		"exit 2 withholds a result":           {spec.HookToolResult, `echo no >&2; exit 2`, spec.HookAnswer{Decision: spec.HookDeny, Text: "no"}},
		"do not continue with a result":       {spec.HookToolResult, `echo '{"continue":false,"stopReason":"a key"}'`, spec.HookAnswer{Decision: spec.HookTrip, Text: "a key"}},
		"a long severity is cut":              {spec.HookOutput, `printf '{"decision":"deny","severity":"%0999d"}' 7`, spec.HookAnswer{Decision: spec.HookDeny, Severity: spec.Severity(strings.Repeat("0", 60) + " …")}},
		"messages in the wrong place":         {spec.HookStop, `echo '{"messages":[{"role":"user","text":"short"}]}'`, spec.HookAnswer{Failed: "mean nothing at stop"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := runHooks(t, nil, hook.Call{Workspace: t.TempDir()}, agent.RunHooks{Point: c.point, Hooks: []spec.Hook{{Name: "h", Point: c.point, Command: c.command}},
				Input: spec.HookData{Tool: "search", Args: `{"q":"x"}`}})[0]
			if !strings.Contains(got.Failed, c.want.Failed) || (got.Failed == "") != (c.want.Failed == "") {
				t.Fatalf("failed: %q, want %q", got.Failed, c.want.Failed)
			}
			c.want.Hook, c.want.TookMS, c.want.Failed = "h", got.TookMS, got.Failed
			if encodeJSON(t, got) != encodeJSON(t, c.want) {
				t.Errorf("got\n%s\nwant\n%s", encodeJSON(t, got), encodeJSON(t, c.want))
			}
		})
	}
}

func encodeJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Hooks of a settings.json of Claude Code read and write the names of its tools and arguments; other hooks read troupe's.
func TestHooksOfClaudeCodeReadItsNames(t *testing.T) {
	for name, c := range map[string]struct{ tool, args, want, given, gets string }{
		"a command":     {"shell", `{"command":"make"}`, `"tool_name":"Bash","tool_input":{"command":"make"}`, `{"command":"make -n"}`, `{"command":"make -n"}`},
		"a file":        {"read_file", `{"path":"a/b.go","limit":3}`, `"tool_name":"Read","tool_input":{"file_path":"DIR/a/b.go","limit":3}`, `{"file_path":"DIR/c.go"}`, `{"path":"c.go"}`},
		"an edit":       {"edit_file", `{"path":"/x","old":"a","new":"b"}`, `"tool_name":"Edit","tool_input":{"file_path":"/x","new_string":"b","old_string":"a"}`, `{"file_path":"/x","old_string":"a","new_string":"c"}`, `{"new":"c","old":"a","path":"/x"}`},
		"a delegate":    {"delegate", `{"agent":"helper","task":"go"}`, `"tool_name":"Task","tool_input":{"prompt":"go","subagent_type":"helper"}`, `{"subagent_type":"helper","prompt":"stay"}`, `{"agent":"helper","task":"stay"}`},
		"a tool of MCP": {"mcp__bank__pay", `{"path":"p"}`, `"tool_name":"mcp__bank__pay","tool_input":{"path":"p"}`, `{"path":"q"}`, `{"path":"q"}`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			given := strings.ReplaceAll(c.given, "DIR", dir)
			command := `cat >in; echo '{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":` + given + `}}'`
			ask := func(hookName string) (input string, answer spec.HookAnswer) {
				answer = runHooks(t, nil, hook.Call{Workspace: dir}, agent.RunHooks{Point: spec.HookPreTool,
					Hooks: []spec.Hook{{Name: hookName, Point: spec.HookPreTool, Command: command}}, Input: spec.HookData{Tool: c.tool, Args: c.args}})[0]
				data, err := os.ReadFile(filepath.Join(dir, "in"))
				if err != nil {
					t.Fatal(err)
				}
				return string(data), answer
			}
			if in, answer := ask("claude.PreToolUse.1"); !strings.Contains(in, strings.ReplaceAll(c.want, "DIR", dir)) || answer.Args != c.gets {
				t.Errorf("it read %s and gave %q %s", in, answer.Args, answer.Failed)
			}
			if in, answer := ask("PreToolUse.1"); !strings.Contains(in, `"tool_name":"`+c.tool+`","tool_input":`+c.args) || answer.Args != given {
				t.Errorf("another hook read %s and gave %q %s", in, answer.Args, answer.Failed)
			}
		})
	}
}

// TestStdin: a command reads what hooks of other tools read, and more.
func TestStdin(t *testing.T) {
	dir := t.TempDir()
	about := hook.Call{Run: "r1", Agent: "root-1-0", Parent: "root", Name: "helper", Depth: 1, Workspace: dir}
	save := `cat > "$CLAUDE_PROJECT_DIR/$TROUPE_POINT.json"; pwd > cwd`
	for _, p := range []spec.HookPoint{spec.HookPostTool, spec.HookStop} {
		e := agent.RunHooks{ID: "id-7", Point: p, Turn: 3, Hooks: []spec.Hook{{Name: "save", Point: p, Command: save}},
			Input: spec.HookData{Call: "3-0", Tool: "search", Args: `{"q":"x"}`, Result: "found", Text: "said", Blocks: 1}}
		if a := runHooks(t, nil, about, e)[0]; a.Failed != "" {
			t.Fatal(a.Failed)
		}
	}
	read := func(name string) map[string]any {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var v map[string]any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	for name, want := range map[string]map[string]any{
		"post_tool.json": {"session_id": "r1", "hook_event_name": "PostToolUse", "cwd": dir, "tool_name": "search", "tool_use_id": "3-0",
			"tool_response": "found", "run": "r1", "agent": "root-1-0", "parent": "root", "agent_name": "helper", "hook": "save", "point": "post_tool",
			"id": "id-7", "turn": 3.0, "text": "said"},
		"stop.json": {"hook_event_name": "SubagentStop", "stop_hook_active": true},
	} {
		got := read(name)
		for key, v := range want {
			if got[key] != v {
				t.Errorf("%s: %s is %v, want %v", name, key, got[key], v)
			}
		}
	}
	if q := read("post_tool.json")["tool_input"].(map[string]any)["q"]; q != "x" {
		t.Errorf("tool_input: q is %v", q)
	}
}

// TestAHookThatHangsIsKilled: with all its descendants, when its time is over. A descendant
// holds the output open; the runner does not wait for it.
func TestAHookThatHangsIsKilled(t *testing.T) {
	hang := `sleep 300 & wait`
	began := time.Now()
	a := runHooks(t, nil, hook.Call{Workspace: t.TempDir()}, agent.RunHooks{Point: spec.HookStop,
		Hooks: []spec.Hook{{Name: "slow", Point: spec.HookStop, Command: hang, TimeoutMS: 100}}})[0]
	if a.Failed != "timed out after 100ms" || a.Decision != "" {
		t.Errorf("answer: %+v", a)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

// TestAttackHookRunsBehindNoLink: a link that was put in the place of the directory is not followed.
func TestAttackHookRunsBehindNoLink(t *testing.T) {
	above, other := t.TempDir(), t.TempDir()
	link := filepath.Join(above, "w")
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	a := runHooks(t, nil, hook.Call{Workspace: link}, agent.RunHooks{Point: spec.HookStop,
		Hooks: []spec.Hook{{Name: "touch", Point: spec.HookStop, Command: "echo x > ran", TimeoutMS: 10_000}}})[0]
	if !strings.Contains(a.Failed, "has taken its place") {
		t.Errorf("answer: %+v", a)
	}
	if _, err := os.Stat(filepath.Join(other, "ran")); err == nil {
		t.Error("it ran elsewhere")
	}
}

// TestGoHooks: a Go function is called like a command. A panic fails only that hook, and a
// function that cannot be stopped is abandoned.
func TestGoHooks(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	funcs := map[string]hook.Func{
		"deny": func(_ context.Context, c hook.Call) (spec.HookAnswer, error) {
			return spec.HookAnswer{Hook: "someone else", Decision: spec.HookDeny, Text: c.Data.Tool}, nil
		},
		"panic": func(context.Context, hook.Call) (spec.HookAnswer, error) { panic("boom") },
		"error": func(context.Context, hook.Call) (spec.HookAnswer, error) {
			return spec.HookAnswer{Decision: spec.HookDeny}, errors.New("no database")
		},
		"deaf": func(context.Context, hook.Call) (spec.HookAnswer, error) { <-release; return spec.HookAnswer{}, nil },
	}
	e := agent.RunHooks{Point: spec.HookPreTool, Input: spec.HookData{Tool: "search", Args: "{}"}}
	for _, name := range []string{"deny", "panic", "error", "deaf", "nobody"} {
		h := spec.Hook{Name: name, Point: spec.HookPreTool, TimeoutMS: 60_000}
		if name == "deaf" {
			h.TimeoutMS = 50
		}
		e.Hooks = append(e.Hooks, h)
	}
	got := runHooks(t, funcs, hook.Call{}, e)
	for i, want := range []spec.HookAnswer{
		{Decision: spec.HookDeny, Text: "search"}, {Failed: "it crashed: boom"}, {Failed: "no database"},
		{Failed: "timed out after 50ms, and did not stop: it may still be running"}, {Failed: "this node has no hook of that name"},
	} {
		if got[i].Decision != want.Decision || got[i].Text != want.Text || got[i].Failed != want.Failed {
			t.Errorf("%s: %+v, want %+v", e.Hooks[i].Name, got[i], want)
		}
	}
}

// TestTransformsRunInSequence: each reshapes what the one before it made; one
// that fails or only reports changes nothing. Only the last messages are kept.
func TestTransformsRunInSequence(t *testing.T) {
	add := func(word string) hook.Func {
		return func(_ context.Context, c hook.Call) (spec.HookAnswer, error) {
			m := c.Data.Messages[0]
			m.Text += word
			return spec.HookAnswer{Messages: []model.Message{m}}, nil
		}
	}
	funcs := map[string]hook.Func{"one": add(" one"), "two": add(" two"), "watch": add(" watched"),
		"broken": func(context.Context, hook.Call) (spec.HookAnswer, error) {
			return spec.HookAnswer{Messages: []model.Message{{Role: model.Assistant}}}, nil
		}}
	e := agent.RunHooks{Point: spec.HookContext, Input: spec.HookData{Messages: []model.Message{{Role: model.User, Text: "zero"}}}}
	for _, name := range []string{"one", "watch", "broken", "two"} {
		e.Hooks = append(e.Hooks, spec.Hook{Name: name, Point: spec.HookContext, Report: name == "watch"})
	}
	got := runHooks(t, funcs, hook.Call{}, e)
	if m := got[3].Messages; len(m) != 1 || m[0].Text != "zero one two" {
		t.Errorf("the last one sends %+v", m)
	}
	if got[0].Messages != nil || got[0].Sent != 1 || got[2].Failed == "" {
		t.Errorf("answers: %+v", got)
	}
}

// TestAnswersFitAnEntry: however much many hooks say.
func TestAnswersFitAnEntry(t *testing.T) {
	loud := func(context.Context, hook.Call) (spec.HookAnswer, error) {
		return spec.HookAnswer{Text: strings.Repeat("é", spec.HookTextMax)}, nil
	}
	e := agent.RunHooks{Point: spec.HookStop}
	for range spec.HooksMax {
		e.Hooks = append(e.Hooks, spec.Hook{Name: "loud", Point: spec.HookStop})
	}
	size, lost := 0, 0
	for _, a := range runHooks(t, map[string]hook.Func{"loud": loud}, hook.Call{}, e) {
		size += len(a.Text) + len(a.Failed)
		if len(a.Text) > spec.HookTextMax {
			t.Errorf("an answer has %d bytes", len(a.Text))
		}
		if a.Failed != "" {
			lost++
		}
	}
	if size > hook.AnswersBytesMax+spec.HooksMax*100 || lost == 0 {
		t.Errorf("%d bytes, %d answers do not fit", size, lost)
	}
}

// TestCancelEndsRunningHooks: when the loop does not wait any more, nothing runs on.
func TestCancelEndsRunningHooks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	began := make(chan struct{})
	funcs := map[string]hook.Func{"waits": func(ctx context.Context, _ hook.Call) (spec.HookAnswer, error) {
		close(began)
		<-ctx.Done()
		return spec.HookAnswer{}, ctx.Err()
	}}
	done := make(chan []spec.HookAnswer)
	go func() {
		done <- hook.NewRunner(funcs, nil).Run(ctx, hook.Call{}, agent.RunHooks{Point: spec.HookStop, Hooks: []spec.Hook{{Name: "waits", Point: spec.HookStop}}})
	}()
	<-began
	cancel()
	if a := <-done; a[0].Failed == "" {
		t.Errorf("answer: %+v", a)
	}
}
