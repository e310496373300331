package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// limitKey is a limit of an agent under the names of its three doors, with a value below its default.
type limitKey struct {
	flag, setting, file string // the file is the front matter; %s is the value
	value               string
	field               string // of the limits in describe
	want                int64
	// replies are those of the model, again and again; the result or the events then have ends, after so many calls of the
	// model. 0: the limit shows in describe alone.
	replies, ends string
	calls         int
}

const oneCall = "calls: [{name: read_file, args: {path: a.txt}}]"

var limitKeys = []limitKey{
	{"max-turns", "max_turns", "maxTurns: %s", "2", "turns", 2, oneCall, `"stop_reason": "max_turns"`, 3},
	{"max-agent-tool-calls", "max_agent_tool_calls", "x-troupe: {limits: {max_tool_calls: %s}}", "1", "tool_calls", 1, oneCall, `"stop_reason": "max_tool_calls"`, 2},
	{"max-reply-calls", "max_reply_calls", "x-troupe: {limits: {max_reply_calls: %s}}", "1", "reply_calls", 1, "calls: [{name: read_file, args: {path: a.txt}}, {name: read_file, args: {path: b.txt}}]", "not run: the limit of tool calls is reached", 0},
	{"max-cuts", "max_cuts", "x-troupe: {limits: {max_cuts: %s}}", "1", "cuts", 1, "{text: half, stop: max_output}", `"stop_reason": "max_output_tokens"`, 2},
	{"max-malformed", "max_malformed", "x-troupe: {limits: {max_malformed: %s}}", "1", "malformed", 1, `{text: " "}`, `"stop_reason": "malformed"`, 1},
	{"max-retries", "max_retries", "x-troupe: {limits: {max_retries: %s}}", "-1", "retries", -1, "{error: {class: overload, times: 9}}", `"stop_reason": "model_error"`, 1},
	{"max-output-tokens", "max_output_tokens", "x-troupe: {limits: {max_output_tokens: %s}}", "700", "output_tokens", 700, "text: done", "", 0},
	{"closing-tokens", "closing_tokens", "x-troupe: {limits: {closing_tokens: %s}}", "70", "closing_tokens", 70, "text: done", "", 0},
	{"max-parallel-tools", "max_parallel_tools", "x-troupe: {limits: {max_parallel_tools: %s}}", "1", "parallel", 1, "text: done", "", 0},
	{"timeout", "timeout", "x-troupe: {timeout: %s}", "90s", "soft_ms", 90_000, "text: done", "", 0},
	{"patience", "patience", "x-troupe: {patience: %s}", "90s", "patience_ms", 90_000, "text: done", "", 0},
}

// Each limit of an agent takes effect, whichever door it comes by: the run records it, and ends as it says.
//
//behaviour:shows A8
func TestEveryLimitTakesEffectByEachDoor(t *testing.T) {
	t.Parallel()
	doors := []string{"flag", "setting", "file"}
	files := map[string]string{}
	for _, limit := range limitKeys {
		for _, door := range doors {
			limit.addFiles(files, door)
		}
	}
	home := newTestHome(t, files)
	startOwner(home) // it computes less than three nodes for each limit and door
	for _, limit := range limitKeys {
		for _, door := range doors {
			t.Run(limit.setting+"/"+door, func(t *testing.T) {
				t.Parallel()
				limit.check(t, home, door)
			})
		}
	}
}

// runOf is the id of the run for a door, and the name of its directory.
func (k limitKey) runOf(door string) string { return k.flag + "-by-" + door }

// addFiles adds the files of the run for a door.
func (k limitKey) addFiles(files map[string]string, door string) {
	front, settings := "", "color: never\n"
	switch door {
	case "setting":
		settings += k.setting + ": " + k.value + "\n"
	case "file":
		front = fmt.Sprintf(k.file, k.value) + "\n"
	}
	for name, text := range map[string]string{"model.yaml": "repeat: true\ndefault:\n  - " + k.replies + "\n", "work/a.txt": "a", "work/b.txt": "b", "work/troupe.yaml": settings,
		"agents/worker.md": "---\nname: worker\ndescription: Works.\ntools: Read\n" + front + "---\nWork.\n"} {
		files[k.runOf(door)+"/"+name] = text
	}
}

func (k limitKey) check(t *testing.T, home testHome, door string) {
	run := k.runOf(door)
	args := []string{"run", "-o", "json", "--run-id", run, "-m", "script/" + run + "/model.yaml", "--dir", run + "/work", "--agents", run + "/agents", "--agent", "worker", "work"}
	if door == "flag" {
		args = append(args, "--"+k.flag, k.value)
	}
	result, _ := home.command(args...).CombinedOutput() // its end is in the result
	described, err := home.command("describe", run, "-o", "json").Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, described, result)
	}
	if got := k.recorded(t, described, door == "file"); got != k.want {
		t.Errorf("describe has %s %d, want %d", k.field, got, k.want)
	}
	events, err := home.command("events", run, "-o", "json").Output()
	if all := string(result) + string(events); err != nil || !strings.Contains(all, k.ends) {
		t.Errorf("%v: no %q in\n%s", err, k.ends, all)
	}
	if n := strings.Count(string(events), `"kind": "model.started"`); k.calls > 0 && n != k.calls {
		t.Errorf("%d calls of the model, want %d", n, k.calls)
	}
}

// recorded reads the limit from the description: that of the definition, or of all agents.
func (k limitKey) recorded(t *testing.T, described []byte, ofFile bool) int64 {
	t.Helper()
	var doc struct{ Description client.Description }
	if err := json.Unmarshal(described, &doc); err != nil {
		t.Fatal(err)
	}
	limits, options := doc.Description.AgentLimits, doc.Description.LoopOptions
	limits.Turns = doc.Description.RootTurns
	for _, d := range doc.Description.Definitions {
		if ofFile && d.Name == "worker" {
			limits = d.Limits
			if d.LoopOptions != nil {
				options = *d.LoopOptions
			}
		}
	}
	if k.field == "patience_ms" {
		return options.PatienceMS
	}
	raw, err := json.Marshal(limits)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]int64
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	return fields[k.field]
}
