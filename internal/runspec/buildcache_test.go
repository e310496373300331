package runspec

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/supervisor"
)

// TestOnlyRequestsWithoutFilesShareABuild: their own texts do not matter, everything else does.
func TestOnlyRequestsWithoutFilesShareABuild(t *testing.T) {
	t.Parallel()
	b := New(Config{})
	key := func(change func(*client.RunRequest)) string {
		r := client.RunRequest{RunID: "a", Prompt: "do it", Agent: "boss"}
		change(&r)
		return b.cacheKey(r)
	}
	base := key(func(*client.RunRequest) {})
	if other := key(func(r *client.RunRequest) {
		r.RunID, r.Prompt, r.Caller, r.Trace, r.Conversation = "b", "else", "me", "t", "c"
	}); base == "" || other != base {
		t.Errorf("%q, %q", base, other)
	}
	if other := key(func(r *client.RunRequest) { r.Criteria = []string{"x"} }); other == "" || other == base {
		t.Errorf("%q", other)
	}
	for name, change := range map[string]func(*client.RunRequest){
		"a directory":   func(r *client.RunRequest) { r.Dir = "/d" },
		"agent files":   func(r *client.RunRequest) { r.Agents = "/d" },
		"servers":       func(r *client.RunRequest) { r.MCPConfig = "/d" },
		"a fork":        func(r *client.RunRequest) { r.Fork = "other" },
		"an attachment": func(r *client.RunRequest) { r.Attach = []client.Attachment{{}} },
		"a plan":        func(r *client.RunRequest) { r.Agent = "chain" },
		"a script":      func(r *client.RunRequest) { r.Model = "script/x" },
	} {
		if got := key(change); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := New(Config{Pools: &NodePools{}}).cacheKey(client.RunRequest{}); got != "" {
		t.Errorf("node pools come and go: %q", got)
	}
}

// TestARunOfACachedBuildHasItsOwnTexts: and those of the request before it are gone.
func TestARunOfACachedBuildHasItsOwnTexts(t *testing.T) {
	t.Parallel()
	b := New(Config{})
	first := client.RunRequest{RunID: "a", Prompt: "first", Caller: "me", Trace: "t1", Conversation: "c"}
	built := supervisor.Opened{Run: "a", Goal: "first", Caller: "me", Trace: "t1", Conversation: "c", Root: "boss"}
	b.cache.put("k", time.Now(), built, client.RunAccepted{RunID: "a", Model: "m"})
	o, a, ok := b.cache.get("k", client.RunRequest{RunID: "b", Prompt: "second"})
	if want := (supervisor.Opened{Run: "b", Goal: "second", Root: "boss"}); !ok || !reflect.DeepEqual(o, want) || a.RunID != "b" || a.Model != "m" {
		t.Errorf("%+v, %+v, %v", o, a, ok)
	}
	b.cache.put("k", time.Now().Add(-2*buildFreshFor), built, client.RunAccepted{})
	if _, _, ok := b.cache.get("k", first); ok {
		t.Error("an old build counts")
	}
}

// TestAgentsThatNoneCanCallAreLeftOut: the others keep their order.
func TestAgentsThatNoneCanCallAreLeftOut(t *testing.T) {
	t.Parallel()
	all := []supervisor.Definition{{Name: "coordinator", OnlyNamed: true}, {Name: "auditor", OnlyNamed: true}, {Name: "helper"},
		{Name: "judge", OnlyNamed: true}, {Name: "boss", Delegates: []string{"helper"}}}
	names := func(list []supervisor.Definition) (names []string) {
		for _, d := range list {
			names = append(names, d.Name)
		}
		return names
	}
	if got := names(keepReachable(all, []string{"boss"})); !reflect.DeepEqual(got, []string{"helper", "boss"}) {
		t.Error(got)
	}
	if got := names(keepReachable(all, []string{"boss", "judge"})); !reflect.DeepEqual(got, []string{"helper", "judge", "boss"}) {
		t.Error(got)
	}
}

// TestEveryFieldOfARequestIsClassified: a new field may name a file, or be a text of one run. Until somebody has
// decided that here, a build with it must not be shared.
func TestEveryFieldOfARequestIsClassified(t *testing.T) {
	t.Parallel()
	ownTexts := []string{"RunID", "Prompt", "Conversation", "Caller", "Trace"}
	notShared := []string{"Dir", "Agents", "MCPConfig", "Attach", "Fork", "Instead", "Layers", "History"}
	values := []string{"Agent", "Holder", "Owner", "Model", "MaxTurns", "MaxTokens", "MaxBudgetUSD", "MaxToolCalls", "MaxDepth", "MaxChildren", "MaxMessages", "MaxAgents",
		"TimeoutMS", "Temperature", "Effort", "Priority", "AllowedTools", "DisallowedTools", "AskTools", "PermissionMode", "Approvals", "Taint", "TaintFiles", "Outside", "QuestionTimeout", "ParkTimeout", "Unattended", "Yes", "Interactive",
		"Constraints", "Criteria", "FailureConditions", "Policy", "Fallback", "Guardrails", "PaidLimit", "AllowUnpriced", "AllowUnbounded", "RequireTool", "JSONSchema", "UseTokens",
		"ToolRetries", "PatienceMS", "LoopOptions", "NoAgentsMD", "Resume", "AgentLimits", "MaxBacklog", "BacklogLease",
		"At", "Every", "Zone", "On", "Missed", "Overlap", "DryRun"}
	known := slices.Concat(ownTexts, notShared, values)
	for f := range reflect.TypeFor[client.RunRequest]().Fields() {
		if !slices.Contains(known, f.Name) {
			t.Errorf("client.RunRequest.%s: may requests that differ in it, or runs with the same one, share a build? Decide in cacheKey and here", f.Name)
		}
	}
}
