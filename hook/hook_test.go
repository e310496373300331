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
	"github.com/troupe-run/troupe/hook"
	"github.com/troupe-run/troupe/model"
)

// ask runs hooks of one point.
func ask(t *testing.T, funcs map[string]hook.Func, about hook.Call, e agent.RunHooks) []agent.HookAnswer {
	t.Helper()
	answers := hook.NewRunner(funcs).Run(t.Context(), about, e)
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

// TestCommands: what a command line prints, and how it ends, in the words of
// other agent tools and in ours.
func TestCommands(t *testing.T) {
	for name, c := range map[string]struct {
		point   agent.HookPoint
		command string
		want    agent.HookAnswer
	}{
		"silence passes":                      {agent.HookPreTool, `true`, agent.HookAnswer{}},
		"plain text is not for us":            {agent.HookPreTool, `echo fine`, agent.HookAnswer{}},
		"exit 2 refuses a call":               {agent.HookPreTool, `echo "not this one" >&2; exit 2`, agent.HookAnswer{Decision: agent.HookDeny, Text: "not this one"}},
		"exit 2 blocks a stop":                {agent.HookStop, `echo "tests fail" >&2; exit 2`, agent.HookAnswer{Decision: agent.HookBlock, Text: "tests fail"}},
		"exit 2 does not pass a prompt":       {agent.HookInput, `echo "a key" >&2; exit 2`, agent.HookAnswer{Decision: agent.HookDeny, Text: "a key"}},
		"exit 2 is a word where it is told":   {agent.HookPostTool, `echo "not formatted" >&2; exit 2`, agent.HookAnswer{Text: "not formatted"}},
		"exit 2 cannot reshape":               {agent.HookContext, `exit 2`, agent.HookAnswer{Failed: `it refused`}},
		"any other exit is a failure":         {agent.HookPreTool, `echo "no such file" >&2; exit 1`, agent.HookAnswer{Failed: "exit code 1; stderr: no such file"}},
		"a missing program is a failure":      {agent.HookPreTool, `/no/such/program`, agent.HookAnswer{Failed: "exit code 127"}},
		"a signal is a failure":               {agent.HookPreTool, `kill -9 $$`, agent.HookAnswer{Failed: "it was ended by a signal"}},
		"broken JSON is a failure":            {agent.HookPreTool, `echo '{"decision":'`, agent.HookAnswer{Failed: "what it printed is no JSON"}},
		"a word that is no decision":          {agent.HookPreTool, `echo '{"decision":"maybe"}'`, agent.HookAnswer{Failed: `"maybe" is no decision at pre_tool`}},
		"permissionDecision deny":             {agent.HookPreTool, `echo '{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"private"}}'`, agent.HookAnswer{Decision: agent.HookDeny, Text: "private"}},
		"permissionDecision ask":              {agent.HookPreTool, `echo '{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"money"}}'`, agent.HookAnswer{Decision: agent.HookAsk, Text: "money"}},
		"permissionDecision allow, new input": {agent.HookPreTool, `echo '{"hookSpecificOutput":{"permissionDecision":"allow","permissionDecisionReason":"ok","updatedInput":{"q": "4"}}}'`, agent.HookAnswer{Decision: agent.HookAllow, Args: `{"q":"4"}`}},
		"the older words":                     {agent.HookPreTool, `echo '{"decision":"approve","reason":"ok"}'`, agent.HookAnswer{Decision: agent.HookAllow}},
		"block":                               {agent.HookPreTool, `echo '{"decision":"block","reason":"no"}'`, agent.HookAnswer{Decision: agent.HookDeny, Text: "no"}},
		"block a stop":                        {agent.HookStop, `echo '{"decision":"block","reason":"run the tests"}'`, agent.HookAnswer{Decision: agent.HookBlock, Text: "run the tests"}},
		"approve a stop":                      {agent.HookStop, `echo '{"decision":"approve"}'`, agent.HookAnswer{}},
		"block after the fact":                {agent.HookPostTool, `echo '{"decision":"block","reason":"look again"}'`, agent.HookAnswer{Text: "look again"}},
		"additional context":                  {agent.HookPostTool, `echo '{"hookSpecificOutput":{"additionalContext":"it is Monday"}}'`, agent.HookAnswer{Text: "it is Monday"}},
		"do not continue":                     {agent.HookStop, `echo '{"continue":false,"stopReason":"enough","decision":"block"}'`, agent.HookAnswer{Decision: agent.HookPrevent, Text: "enough"}},
		"do not continue with a prompt":       {agent.HookInput, `echo '{"continue":false,"stopReason":"a key"}'`, agent.HookAnswer{Decision: agent.HookTrip, Text: "a key"}},
		"our words":                           {agent.HookPreTool, `echo '{"decision":"override","result":"as of yesterday"}'`, agent.HookAnswer{Decision: agent.HookOverride, Text: "as of yesterday"}},
		"arguments that are no object":        {agent.HookPreTool, `echo '{"args":[1]}'`, agent.HookAnswer{Failed: "the arguments it gave are no JSON object"}},
		"too much":                            {agent.HookPreTool, `head -c 200000 /dev/zero | tr '\0' 'x'`, agent.HookAnswer{Failed: "it printed 200000 bytes, at most 131072 are read"}},
		"a secret is not passed on":           {agent.HookStop, `echo "key sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789" >&2; exit 2`, agent.HookAnswer{Decision: agent.HookBlock, Text: "key [masked]"}},
		"a secret is no argument":             {agent.HookPreTool, `echo '{"args":{"q":"sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"}}'`, agent.HookAnswer{Failed: "what looks like a secret"}},
		"messages":                            {agent.HookContext, `echo '{"messages":[{"role":"user","text":"short"}]}'`, agent.HookAnswer{Messages: []model.Message{{Role: model.User, Text: "short"}}, Sent: 1}},
		"messages nobody would take":          {agent.HookContext, `echo '{"messages":[]}'`, agent.HookAnswer{Failed: "does not begin with a user's message"}},
		"messages in the wrong place":         {agent.HookStop, `echo '{"messages":[{"role":"user","text":"short"}]}'`, agent.HookAnswer{Failed: "mean nothing at stop"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ask(t, nil, hook.Call{Workspace: t.TempDir()}, agent.RunHooks{Point: c.point, Hooks: []agent.Hook{{Name: "h", Point: c.point, Command: c.command}},
				Input: agent.HookData{Tool: "search", Args: `{"q":"x"}`}})[0]
			if !strings.Contains(got.Failed, c.want.Failed) || (got.Failed == "") != (c.want.Failed == "") {
				t.Fatalf("failed: %q, want %q", got.Failed, c.want.Failed)
			}
			c.want.Hook, c.want.TookMS, c.want.Failed = "h", got.TookMS, got.Failed
			if text(t, got) != text(t, c.want) {
				t.Errorf("got\n%s\nwant\n%s", text(t, got), text(t, c.want))
			}
		})
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestStdin: a command reads what hooks of other tools read, and more.
func TestStdin(t *testing.T) {
	dir := t.TempDir()
	about := hook.Call{Run: "r1", Agent: "root-1-0", Parent: "root", Name: "helper", Depth: 1, Workspace: dir}
	save := `cat > "$CLAUDE_PROJECT_DIR/$TROUPE_POINT.json"; pwd > cwd`
	for _, p := range []agent.HookPoint{agent.HookPostTool, agent.HookStop} {
		e := agent.RunHooks{ID: "id-7", Point: p, Turn: 3, Hooks: []agent.Hook{{Name: "save", Point: p, Command: save}},
			Input: agent.HookData{Call: "3-0", Tool: "search", Args: `{"q":"x"}`, Result: "found", Text: "said", Blocks: 1}}
		if a := ask(t, nil, about, e)[0]; a.Failed != "" {
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

// TestAHookThatHangsIsKilled: with all that it started, when its time is over.
// What it started holds its output open; nobody waits for that.
func TestAHookThatHangsIsKilled(t *testing.T) {
	hang := `sleep 60 & wait`
	began := time.Now()
	a := ask(t, nil, hook.Call{Workspace: t.TempDir()}, agent.RunHooks{Point: agent.HookStop,
		Hooks: []agent.Hook{{Name: "slow", Point: agent.HookStop, Command: hang, TimeoutMS: 100}}})[0]
	if a.Failed != "timed out after 100ms" || a.Decision != "" {
		t.Errorf("answer: %+v", a)
	}
	if took := time.Since(began); took > 20*time.Second {
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
	a := ask(t, nil, hook.Call{Workspace: link}, agent.RunHooks{Point: agent.HookStop,
		Hooks: []agent.Hook{{Name: "touch", Point: agent.HookStop, Command: "echo x > ran", TimeoutMS: 10_000}}})[0]
	if !strings.Contains(a.Failed, "has taken its place") {
		t.Errorf("answer: %+v", a)
	}
	if _, err := os.Stat(filepath.Join(other, "ran")); err == nil {
		t.Error("it ran elsewhere")
	}
}

// TestGoHooks: a Go function is asked like a command. Its panic is its own, and
// one that nobody can stop is left behind.
func TestGoHooks(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	funcs := map[string]hook.Func{
		"deny": func(_ context.Context, c hook.Call) (agent.HookAnswer, error) {
			return agent.HookAnswer{Hook: "someone else", Decision: agent.HookDeny, Text: c.Data.Tool}, nil
		},
		"panic": func(context.Context, hook.Call) (agent.HookAnswer, error) { panic("boom") },
		"error": func(context.Context, hook.Call) (agent.HookAnswer, error) {
			return agent.HookAnswer{Decision: agent.HookDeny}, errors.New("no database")
		},
		"deaf": func(context.Context, hook.Call) (agent.HookAnswer, error) { <-release; return agent.HookAnswer{}, nil },
	}
	e := agent.RunHooks{Point: agent.HookPreTool, Input: agent.HookData{Tool: "search", Args: "{}"}}
	for _, name := range []string{"deny", "panic", "error", "deaf", "nobody"} {
		e.Hooks = append(e.Hooks, agent.Hook{Name: name, Point: agent.HookPreTool, TimeoutMS: 50})
	}
	got := ask(t, funcs, hook.Call{}, e)
	for i, want := range []agent.HookAnswer{
		{Decision: agent.HookDeny, Text: "search"}, {Failed: "it crashed: boom"}, {Failed: "no database"},
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
		return func(_ context.Context, c hook.Call) (agent.HookAnswer, error) {
			m := c.Data.Messages[0]
			m.Text += word
			return agent.HookAnswer{Messages: []model.Message{m}}, nil
		}
	}
	funcs := map[string]hook.Func{"one": add(" one"), "two": add(" two"), "watch": add(" watched"),
		"broken": func(context.Context, hook.Call) (agent.HookAnswer, error) {
			return agent.HookAnswer{Messages: []model.Message{{Role: model.Assistant}}}, nil
		}}
	e := agent.RunHooks{Point: agent.HookContext, Input: agent.HookData{Messages: []model.Message{{Role: model.User, Text: "zero"}}}}
	for _, name := range []string{"one", "watch", "broken", "two"} {
		e.Hooks = append(e.Hooks, agent.Hook{Name: name, Point: agent.HookContext, Report: name == "watch"})
	}
	got := ask(t, funcs, hook.Call{}, e)
	if m := got[3].Messages; len(m) != 1 || m[0].Text != "zero one two" {
		t.Errorf("the last one sends %+v", m)
	}
	if got[0].Messages != nil || got[0].Sent != 1 || got[2].Failed == "" {
		t.Errorf("answers: %+v", got)
	}
}

// TestAnswersFitAnEntry: however much many hooks say.
func TestAnswersFitAnEntry(t *testing.T) {
	loud := func(context.Context, hook.Call) (agent.HookAnswer, error) {
		return agent.HookAnswer{Text: strings.Repeat("é", agent.HookTextMax)}, nil
	}
	e := agent.RunHooks{Point: agent.HookStop}
	for range agent.HooksMax {
		e.Hooks = append(e.Hooks, agent.Hook{Name: "loud", Point: agent.HookStop})
	}
	size, lost := 0, 0
	for _, a := range ask(t, map[string]hook.Func{"loud": loud}, hook.Call{}, e) {
		size += len(a.Text) + len(a.Failed)
		if len(a.Text) > agent.HookTextMax {
			t.Errorf("an answer has %d bytes", len(a.Text))
		}
		if a.Failed != "" {
			lost++
		}
	}
	if size > hook.AnswersBytesMax+agent.HooksMax*100 || lost == 0 {
		t.Errorf("%d bytes, %d answers do not fit", size, lost)
	}
}

// TestAnEndEndsAll: when the loop does not wait any more, nothing runs on.
func TestAnEndEndsAll(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	began := make(chan struct{})
	funcs := map[string]hook.Func{"waits": func(ctx context.Context, _ hook.Call) (agent.HookAnswer, error) {
		close(began)
		<-ctx.Done()
		return agent.HookAnswer{}, ctx.Err()
	}}
	done := make(chan []agent.HookAnswer)
	go func() {
		done <- hook.NewRunner(funcs).Run(ctx, hook.Call{}, agent.RunHooks{Point: agent.HookStop, Hooks: []agent.Hook{{Name: "waits", Point: agent.HookStop}}})
	}()
	<-began
	cancel()
	if a := <-done; a[0].Failed == "" {
		t.Errorf("answer: %+v", a)
	}
}
