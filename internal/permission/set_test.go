package permission_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/model"
)

func rules(texts ...string) (list []spec.PermissionRule) {
	for _, text := range texts {
		if text != "" {
			list = append(list, spec.PermissionRule{Text: text})
		}
	}
	return list
}

func classOf(tool string) model.Class {
	switch tool {
	case "shell", "edit_file", "mcp__files__put", "mcp__files__get_all":
		return model.Effect
	case "write_file":
		return model.Idempotent
	case "mcp__bank__pay":
		return model.Irreversible
	}
	return model.Read
}

func decide(p spec.Permissions, tool, args string) permission.Verdict {
	set := permission.Compile([]spec.Permissions{p}, "/work", []string{"report.md"})
	return set.Decide(permission.Call{Tool: tool, Args: args}, permission.Tool{Class: classOf(tool)}, nil)
}

func command(line string) string { return fmt.Sprintf(`{"command":%q}`, line) }

func at(path string) string { return fmt.Sprintf(`{"path":%q}`, path) }

// Each mode decides about the calls that no rule fits, as in Claude Code.
func TestModesDecideWhatNoRuleFits(t *testing.T) {
	t.Parallel()
	const allow, confined, ask, deny = permission.Allow, permission.AllowConfined, permission.Ask, permission.Deny
	calls := []struct{ tool, args string }{
		{"delegate", `{"agent":"cc/derek/reviewer","task":"x"}`},
		{"read_file", at("a.go")}, {"write_file", at("report.md")}, {"write_file", at("a.go")}, {"edit_file", at("a.go")}, {"shell", command("make")},
		{"shell", command("mkdir x")}, {"mcp__files__put", `{}`}, {"mcp__bank__pay", `{}`}, {"delegate", `{"task":"x"}`},
	}
	for mode, want := range map[spec.PermissionMode][]permission.Decision{
		"":                   {ask, allow, allow, ask, ask, ask, ask, ask, ask, allow},
		spec.ModeDefault:     {ask, allow, allow, ask, ask, ask, ask, ask, ask, allow},
		spec.ModeAcceptEdits: {ask, allow, allow, allow, allow, ask, confined, ask, ask, allow},
		spec.ModePlan:        {deny, allow, deny, deny, deny, deny, deny, deny, deny, allow},
		spec.ModeDontAsk:     {deny, allow, allow, deny, deny, deny, deny, deny, deny, allow},
		spec.ModeBypass:      {allow, allow, allow, allow, allow, allow, allow, allow, ask, allow},
		"unknown":            {deny, deny, deny, deny, deny, deny, deny, deny, deny, deny},
	} {
		for i, c := range calls {
			if got := decide(spec.Permissions{Mode: mode}, c.tool, c.args); got.Decision != want[i] {
				t.Errorf("mode %q, %s %s: %+v, want %d", mode, c.tool, c.args, got, want[i])
			}
		}
	}
	if got := decide(spec.Permissions{Mode: spec.ModeBypass, Confined: true}, "shell", command("make")); got.Decision != confined {
		t.Errorf("bypass of a request lets a command run that no sandbox confines: %+v", got)
	}
	if got := decide(spec.Permissions{Mode: spec.ModeDontAsk}, "shell", command("make")); !strings.Contains(got.Why, "nobody can be asked") {
		t.Errorf("the denial does not say that nobody can be asked: %q", got.Why)
	}
}

// Deny wins over ask, ask over allow, whatever the order and however narrow a rule is.
func TestDenyWinsOverAskOverAllow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		allow, ask, deny string
		tool, args       string
		want             permission.Decision
	}{
		{"shell(git log:*)", "", "", "shell", command("git log -1"), permission.Allow},
		{"shell(git log:*)", "shell(git:*)", "", "shell", command("git log -1"), permission.Ask},
		{"shell(git log -1)", "", "shell(git:*)", "shell", command("git log -1"), permission.Deny},
		{"shell", "shell", "shell", "shell", command("ls"), permission.Deny},
		{"shell(*)", "", "shell(rm:*)", "shell", command("ls; rm x"), permission.Deny},
		{"shell(*)", "", "shell(rm:*)", "shell", command("ls; $X x"), permission.Ask},
		{"edit_file(docs/**)", "", "", "write_file", at("docs/a/b.md"), permission.Allow},
		{"write_file(docs/**)", "", "", "edit_file", at("./docs/../docs/b.md"), permission.Allow},
		{"edit_file(docs/**)", "", "", "write_file", at("docs/../main.go"), permission.Ask},
		{"edit_file(*.md)", "", "", "write_file", at("docs/a.md"), permission.Allow},
		{"edit_file(/*.md)", "", "", "write_file", at("docs/a.md"), permission.Ask},
		{"edit_file", "edit_file(go.mod)", "", "write_file", at("go.mod"), permission.Ask},
		{"read_file", "", "read_file(./secrets/**)", "read_file", at("secrets/key"), permission.Deny},
		{"read_file", "", "read_file(./secrets/**)", "grep", at("secrets"), permission.Deny},
		{"", "", "read_file(.env)", "read_file", at("deep/.env"), permission.Deny},
		{"", "", "read_file(./secrets/**)", "read_file", at("Secrets/key"), permission.Deny},
		{"", "", "read_file(./secrets/**)", "read_file", at("/work/secrets/key"), permission.Deny},
		{"", "", "read_file(//work/secrets/**)", "read_file", at("secrets/key"), permission.Deny},
		{"", "", "read_file(./secrets/**)", "git_show", `{"rev":"HEAD:secrets/key"}`, permission.Deny},
		{"", "", "read_file(./secrets/**)", "read_file", at("other/key"), permission.Allow},
		{"", "read_file(./secrets/**)", "", "grep", `{"pattern":"x"}`, permission.Ask},
		{"", "read_file(./secrets/**)", "", "grep", at("src"), permission.Allow},
		{"http_get(domain:example.com)", "", "http_get(domain:*.example.com)", "http_get", `{"url":"https://a.example.com/"}`, permission.Deny},
		{"", "", "http_get(domain:example.com)", "http_get", `{"url":"https://example.com:8443/x"}`, permission.Deny},
		{"", "", "http_get(domain:example.com)", "http_get", `{"url":"https://x@EXAMPLE.com/"}`, permission.Deny},
		{"", "", "http_get(domain:example.com)", "http_get", `{"url":"https://other.org/example.com"}`, permission.Allow},
		{"mcp__files", "", "", "mcp__files__put", `{}`, permission.Allow},
		{"mcp__files__get_*", "", "", "mcp__files__put", `{}`, permission.Ask},
		{"mcp__files", "", "mcp__files__put", "mcp__files__put", `{}`, permission.Deny},
		{"", "", "mcp__*", "mcp__files__put", `{}`, permission.Deny},
		{"mcp__bank__pay", "", "", "mcp__bank__pay", `{}`, permission.Ask},
		{"", "", "delegate(helper)", "delegate", `{"agent":"helper","task":"x"}`, permission.Deny},
		{"", "", "handoff(helper)", "handoff", `{"agent":"helper","message":"x"}`, permission.Deny},
		{"", "", "handoff(helper)", "handoff", `{"agent":"other","message":"x"}`, permission.Allow},
		{"", "", "delegate(helper)", "handoff", `{"agent":"helper","message":"x"}`, permission.Allow},
		{"", "", "delegate(helper)", "delegate", `{"agent":"other","task":"x"}`, permission.Allow},
	} {
		got := decide(spec.Permissions{Allow: rules(c.allow), Ask: rules(c.ask), Deny: rules(c.deny)}, c.tool, c.args)
		if got.Decision != c.want {
			t.Errorf("allow %q ask %q deny %q, %s %s: %+v, want %d", c.allow, c.ask, c.deny, c.tool, c.args, got, c.want)
		}
	}
}

// A rule that allows a command allows nothing that a shell makes of it beside that command.
func TestAttackACommandRidesOnAnAllowedOne(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"git log; rm -rf /", "git log && rm x", "git log | sh", "git log\nrm x", "git log $(rm x)", "git log `rm x`", "X=1 git log", "git log > x", "git log &",
		"git log <(rm x)", "env git log", "git  logx", "git log\x00", "(git log)", "git log; git push"} {
		if got := decide(spec.Permissions{Allow: rules("shell(git log:*)")}, "shell", command(line)); got.Decision != permission.Ask {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

// Without permissions, and with permissions that cannot be read, nothing runs.
//
//behaviour:shows E2
func TestMissingAndBrokenPermissionsDeny(t *testing.T) {
	t.Parallel()
	var none *permission.Set
	for what, set := range map[string]*permission.Set{
		"nil": none, "zero": {}, "none": permission.Compile(nil, "", nil),
		"broken deny":  permission.Compile([]spec.Permissions{{Mode: spec.ModeBypass, Deny: rules("shell(git * push)")}}, "", nil),
		"broken allow": permission.Compile([]spec.Permissions{{Allow: rules("*")}}, "", nil),
		"broken mode":  permission.Compile([]spec.Permissions{{}, {Mode: "yolo"}}, "", nil),
	} {
		if got := set.Decide(permission.Call{Tool: "read_file", Args: at("a")}, permission.Tool{Class: model.Read}, rules("read_file")); got.Decision != permission.Deny {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// A rule that says something else than its author believes is an error, not a rule that never fits.
func TestRulesThatWouldNeverFitAreErrors(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "shell(", "shell()", "shell(git log", "shell(:*)", "shell(git * push)", "shell(*git)", "read_file([)", "read_file(../x)", "http_get(example.com)", "http_get(domain:)",
		"http_get(domain:a/b)", "mcp__a__b(x)", "do it", "a*b*c", "delegate(a*)", strings.Repeat("x", 2000)} {
		if _, err := permission.Parse(text); err == nil {
			t.Errorf("%.40q was parsed", text)
		}
	}
	for _, text := range []string{"*", "mcp__*", "mcp__x*", "web*"} {
		if _, err := permission.ParseAllow(text); err == nil {
			t.Errorf("%q allows tools that nobody knows", text)
		}
		if _, err := permission.Parse(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What a person adds while a run works allows what no rule decides, and nothing that a rule denies or asks for.
func TestAGrantAllowsOnlyWhatNoRuleDecides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    spec.Permissions
		want permission.Decision
	}{
		{spec.Permissions{}, permission.Allow},
		{spec.Permissions{Ask: rules("shell(make:*)")}, permission.Ask},
		{spec.Permissions{Deny: rules("shell(make:*)")}, permission.Deny},
		{spec.Permissions{Mode: spec.ModePlan}, permission.Deny},
		{spec.Permissions{Mode: spec.ModeDontAsk}, permission.Allow},
	} {
		set := permission.Compile([]spec.Permissions{c.p}, "/work", nil)
		call := permission.Call{Tool: "shell", Args: command("make test")}
		granted := rules(permission.RuleFor(call))
		if got := set.Decide(call, permission.Tool{Class: model.Effect}, granted); got.Decision != c.want {
			t.Errorf("%+v: %+v", c.p, got)
		}
		other := permission.Call{Tool: "shell", Args: command("make clean")}
		if got := set.Decide(other, permission.Tool{Class: model.Effect}, granted); got.Decision == permission.Allow {
			t.Errorf("%+v: the grant allows another command: %+v", c.p, got)
		}
	}
}

// The rule that "always" adds fits the call that was asked about, and is never wider than one command,
// one file, one host or one tool.
func TestTheRuleOfAnAnswerIsNarrow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tool, args, want string }{
		{"shell", command("make test"), "shell(make test)"}, {"shell", command("make test; make all"), ""}, {"shell", command("echo '*'"), ""}, {"shell", command("echo 'a b'"), ""},
		{"write_file", at("docs/a.md"), "edit_file(/docs/a.md)"}, {"edit_file", at("../x"), ""}, {"write_file", at("[a].md"), ""},
		{"http_get", `{"url":"https://a.org/x"}`, "http_get(domain:a.org)"}, {"mcp__x__y", `{}`, "mcp__x__y"},
	} {
		if got := permission.RuleFor(permission.Call{Tool: c.tool, Args: c.args, Workspace: "/work"}); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.tool, c.args, got, c.want)
		}
	}
}

// What a person reads hides nothing.
func TestShownTextHidesNothing(t *testing.T) {
	t.Parallel()
	got := permission.Show("shell", `{"command":"ls \u202e\u001b[2K\rrm\u200bx\nid"}`)
	if want := "$ ls \\u202e\\x1b[2K\\x0drm\\u200bx\n  id"; got != want {
		t.Errorf("%q", got)
	}
	if got := permission.Show("edit_file", `{"path":"a","old":"x\ny\n","new":"z"}`); got != "edit a\n-x\n-y\n+z\n" {
		t.Errorf("%q", got)
	}
}

// The digest is that of the arguments, not of how they are written, and of the tool as it was offered.
func TestDigestIsOfCanonicalArguments(t *testing.T) {
	t.Parallel()
	tool := model.ToolSpec{Name: "pay", Schema: `{"type":"object"}`}
	one := permission.Digest(tool, `{"a":1,"b":"<x>"}`)
	if one != permission.Digest(tool, "{ \"b\" : \"\\u003cx>\", \"a\": 1 }") {
		t.Error("the same arguments have two digests")
	}
	other := tool
	other.Description = "else"
	if one == permission.Digest(tool, `{"a":1.0,"b":"<x>"}`) || one == permission.Digest(other, `{"a":1,"b":"<x>"}`) {
		t.Error("other arguments, or another tool, have the same digest")
	}
}

// No text makes the parser or a decision panic, and no deny rule is weakened by an allow rule.
func FuzzDenyWins(f *testing.F) {
	f.Add("shell(git log:*)", "shell", `{"command":"git log; rm x"}`)
	f.Add("read_file(./a/**)", "grep", `{"path":"a"}`)
	f.Add("http_get(domain:*.b)", "http_get", `{"url":"https://a.b"}`)
	f.Fuzz(func(t *testing.T, text, tool, args string) {
		if _, err := permission.Parse(text); err != nil {
			return
		}
		denied := decide(spec.Permissions{Deny: rules(text)}, tool, args)
		both := decide(spec.Permissions{Mode: spec.ModeBypass, Deny: rules(text)}, tool, args)
		if denied.Decision == permission.Deny && both.Decision != permission.Deny {
			t.Errorf("%q %q %q: %+v, with bypass %+v", text, tool, args, denied, both)
		}
		if allowed := decide(spec.Permissions{Allow: rules(text)}, tool, args); allowed.Rule.Text == text && allowed.Decision == permission.Allow && denied.Decision == permission.Allow && classOf(tool) != model.Irreversible {
			if _, err := permission.ParseAllow(text); err == nil {
				t.Errorf("%q allows %q %q, and does not deny it", text, tool, args)
			}
		}
	})
}
