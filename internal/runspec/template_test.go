package runspec

import (
	"reflect"
	"testing"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/supervisor"
)

// TestOnlyRequestsWithoutFilesShareATemplate: their own texts do not matter, everything else does.
func TestOnlyRequestsWithoutFilesShareATemplate(t *testing.T) {
	t.Parallel()
	b := New(Config{})
	key := func(change func(*client.RunRequest)) string {
		r := client.RunRequest{RunID: "a", Prompt: "do it", Agent: "boss"}
		change(&r)
		return b.templateKey(r)
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
	if got := New(Config{Pools: &NodePools{}}).templateKey(client.RunRequest{}); got != "" {
		t.Errorf("node pools come and go: %q", got)
	}
}

// TestARunFromATemplateHasItsOwnTexts: and those of the request before it are gone.
func TestARunFromATemplateHasItsOwnTexts(t *testing.T) {
	t.Parallel()
	b := New(Config{})
	first := client.RunRequest{RunID: "a", Prompt: "first", Caller: "me", Trace: "t1", Conversation: "c"}
	built := supervisor.Opened{Run: "a", Goal: "first", Caller: "me", Trace: "t1", Conversation: "c", Root: "boss"}
	b.templates.keep("k", time.Now(), built, client.RunAccepted{RunID: "a", Model: "m"})
	o, a, ok := b.templates.find("k", client.RunRequest{RunID: "b", Prompt: "second"})
	if want := (supervisor.Opened{Run: "b", Goal: "second", Root: "boss"}); !ok || !reflect.DeepEqual(o, want) || a.RunID != "b" || a.Model != "m" {
		t.Errorf("%+v, %+v, %v", o, a, ok)
	}
	b.templates.keep("k", time.Now().Add(-2*templateFresh), built, client.RunAccepted{})
	if _, _, ok := b.templates.find("k", first); ok {
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
