package permission_test

import (
	"fmt"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
)

// attempt is a call by which a hostile model tries to do what the rules do not allow. It must not run: a rule denies it,
// or a person reads it.
type attempt struct{ allow, ask, deny, tool, args string }

func shellAttempts(allow, deny string, lines ...string) (list []attempt) {
	for _, line := range lines {
		list = append(list, attempt{allow: allow, deny: deny, tool: "shell", args: command(line)})
	}
	return list
}

func pathAttempts(allow, ask, deny string, tools []string, paths ...string) (list []attempt) {
	for _, tool := range tools {
		for _, path := range paths {
			list = append(list, attempt{allow, ask, deny, tool, at(path)})
		}
	}
	return list
}

// bypasses are ways around rules, by what they abuse.
func bypasses() map[string][]attempt {
	only := []string{"read_file"}
	return map[string][]attempt{
		"a command rides on an allowed one": shellAttempts("shell(git log:*)", "",
			"git log; rm -rf x", "git log ;rm x", "git log && rm x", "git log || rm x", "git log | sh", "git log |& sh", "git log & rm x", "git log\nrm x", "git log\r\nrm x",
			"git log $(rm x)", "git log `rm x`", "git log \"$(rm x)\"", "git log \"`rm x`\"", "git log <(rm x)", "git log > x", "git log >> x", "git log 2> x", "git log >| x", "git log &> x", "git log < /etc/passwd",
			"git log <<E\n$(rm x)\nE", "git log $((a[$(rm x)]))", "git log ${x:-$(rm x)}", "git log $IFS", "git log {a,b}", "git log *", "git log ~root", "git log $'\\x3b rm x'",
			"PAGER='rm x' git log", "GIT_PAGER=rm git log", "PATH=. git log", "LD_PRELOAD=x git log", "X=1 git log", "env git log", "command git log", "exec git log", "! git log", "(git log)", "{ git log; }",
			"if git log; then rm x; fi", "while git log; do rm x; done", "git() { rm x; }; git log", "alias git=rm; git log", "time git log", "git log # x", "git \\\nlog; rm x", "git\tlog;rm x",
			"git  logx", "gitlog", "./git log", "/tmp/git log", "git -c core.pager=rm log", "GIT log", "git log\x00", "git log\x0brm x", "git log \xff", "", "git", "git lo", "git log && git push"),
		"a prefix of a word":                shellAttempts("shell(make test)", "", "make test2", "make testx", "make test; make all", "make test all", "make", "make  -f x test"),
		"an allowed command writes or runs": shellAttempts("shell(git log:*)", "", "git log --output=main.go", "git log --outp main.go", "git log --ext-diff", "git log && git log --output=x"),
		"a denied command hides": shellAttempts("shell(*)", "shell(rm:*)",
			"/bin/rm x", "\\rm x", "'rm' x", "r''m x", "\"rm\" x", "env rm x", "env -i rm x", "sudo rm x", "nohup rm x", "timeout 1 rm x", "xargs rm", "find . -exec rm {} ;", "sh -c 'rm x'", "bash -c \"rm x\"", "eval 'rm x'",
			"eval r''m x", "$(echo rm) x", "`echo rm` x", "R=rm; $R x", "rm\tx", "true; rm x", "true\nrm x", "true | xargs rm", "cat <<E | sh\nrm x\nE", "command rm x", "exec rm x", "trap 'rm x' EXIT", "f() { rm x; }; f",
			"busybox rm x", "python3 -c 'import os; os.system(\"rm x\")'", "git -c alias.x='!rm x' x", "echo $(rm x)", "cat <(rm x)", "[ $(rm x) ]", ". ./x", "source x", "alias x=rm; x y", "bash x.sh", "echo cm0geA== | base64 -d | sh"),
		"a denied file is read": pathAttempts("read_file", "", "read_file(./secrets/**)", []string{"read_file", "grep", "glob", "list_dir", "git_blame", "git_log", "edit_file", "write_file"},
			"secrets/key", "./secrets/key", "secrets//key", "secrets/./key", "x/../secrets/key", "SECRETS/key", "Secrets/Key", "/work/secrets/key", "/work/x/../secrets/key", " secrets/key ", "secrets", "secrets/", "../work/secrets/key"),
		"a denied name is read anywhere": pathAttempts("read_file", "", "read_file(.env)", only, ".env", "a/.env", "a/b/.ENV", "./.env", "a/../.env", ".env/x"),
		"a denied file is in the history": {
			{deny: "read_file(./secrets/**)", tool: "git_show", args: `{"rev":"HEAD:secrets/key"}`}, {deny: "read_file(./secrets/**)", tool: "git_show", args: `{"rev":"HEAD:./secrets/key"}`},
			{deny: "read_file(./secrets/**)", tool: "git_show", args: `{"rev":":secrets/key"}`}, {deny: "read_file(./secrets/**)", tool: "git_show", args: `{"rev":":0:secrets/key"}`},
			{deny: "read_file(./secrets/**)", tool: "git_show", args: `{"rev":"HEAD^{/x:y}:secrets/key"}`}, {deny: "read_file(./secrets/**)", tool: "git_show", args: `{"rev":"HEAD"}`},
			{deny: "read_file(./secrets/**)", tool: "git_show", args: `{"rev":"HEAD:work/secrets/key"}`}, {deny: "read_file(./secrets/**)", tool: "git_show", args: `{"rev":"main@{1 day ago}:secrets/key"}`},
			{deny: "read_file(./secrets/**)", tool: "git_show", args: `{"rev":"0123abcd"}`}, {deny: "read_file(./secrets/**)", tool: "git_show", args: `{"rev":"HEAD","path":"secrets"}`},
		},
		"a command reaches a denied file": shellAttempts("shell(*)", "read_file(./secrets/**)", "cat secrets/key", "git show HEAD:secrets/key", "cd secrets && cat key", "cat s*/key", "python3 x.py", "ls"),
		"a command writes a denied file":  shellAttempts("shell(*)", "edit_file(./.github/**)", "sed -i s/a/b/ .github/x", "make"),
		"a search reaches a file that is asked about": {
			{ask: "read_file(./secrets/**)", tool: "grep", args: `{"pattern":"x"}`}, {ask: "read_file(./secrets/**)", tool: "grep", args: `{"pattern":"x","path":"./"}`}, {ask: "read_file(./secrets/**)", tool: "glob", args: `{"pattern":"**"}`},
			{ask: "read_file(./a/secrets/**)", tool: "grep", args: at("a")}, {ask: "read_file(./secrets/**)", tool: "grep", args: at("x/..")}, {ask: "read_file(key.pem)", tool: "grep", args: at("src")},
		},
		"a write leaves what is allowed": pathAttempts("edit_file(docs/**)", "", "", []string{"write_file", "edit_file"},
			"main.go", "docs/../main.go", "docs2/x", "x/docs/y", "DOCS/x", "docs\\..\\x", "/work/main.go", "docs/./../x", "."),
		"a host is another one": {
			{allow: "http_get(domain:a.org)", ask: "http_get", tool: "http_get", args: `{"url":"https://a.org"}`}, {deny: "http_get(domain:a.org)", tool: "http_get", args: `{"url":"https://A.ORG/"}`},
			{deny: "http_get(domain:a.org)", tool: "http_get", args: `{"url":"https://a.org./x"}`}, {deny: "http_get(domain:a.org)", tool: "http_get", args: `{"url":"https://u:p@a.org/"}`},
			{deny: "http_get(domain:a.org)", tool: "http_get", args: `{"url":"https://a.org:443"}`}, {deny: "http_get(domain:a.org)", tool: "http_get", args: `{"url":"//a.org"}`},
			{deny: "http_get(domain:*.a.org)", tool: "http_get", args: `{"url":"https://x.y.a.org?q"}`}, {deny: "http_get(domain:a.org)", tool: "http_get", args: `{"url":"https://a.org#x"}`},
			{deny: "http_get(domain:a.org)", tool: "http_get", args: `{"url":"https://x\\@a.org"}`}, {deny: "http_get(domain:a.org)", tool: "http_get", args: `{"url":""}`},
		},
		"a tool is another one": {
			{allow: "mcp__files__get_*", tool: "mcp__files__put", args: `{}`}, {allow: "mcp__file", tool: "mcp__files__put", args: `{}`}, {allow: "mcp__files__pu", tool: "mcp__files__put", args: `{}`},
			{deny: "mcp__files", tool: "mcp__files__put", args: `{}`}, {deny: "mcp__*__put", tool: "mcp__files__put", args: `{}`}, {allow: "mcp__bank__pay", tool: "mcp__bank__pay", args: `{}`},
			{deny: "delegate(helper)", tool: "delegate", args: `{"agent":"helper"}`}, {deny: "delegate(helper)", tool: "delegate", args: `{"agent":"x","agent":"helper"}`},
			{deny: "skill(review)", tool: "skill", args: `{"name":"review"}`}, {deny: "write_file(x)", tool: "edit_file", args: at("x")}, {deny: "read_file", tool: "grep", args: `{"pattern":"x"}`},
		},
		"arguments are read in two ways": {
			{deny: "read_file(./secrets/**)", tool: "read_file", args: `{"path":"a","path":"secrets/key"}`}, {deny: "read_file(./secrets/**)", tool: "read_file", args: `{"path":"\u0073ecrets/key"}`},
			{allow: "shell(ls)", tool: "shell", args: `{"command":"ls","command":"rm x"}`}, {allow: "shell(ls)", tool: "shell", args: `{"command":"ls","Command":"rm x"}`}, {allow: "shell(ls)", tool: "shell", args: `{"command":["ls"]}`},
			{allow: "shell(ls)", tool: "shell", args: `{}`}, {allow: "shell(ls)", tool: "shell", args: `not json`},
		},
	}
}

// No way around the rules that is known runs without a person.
//
//behaviour:shows E2
func TestAttackNoKnownWayAroundARule(t *testing.T) {
	t.Parallel()
	count := 0
	for what, list := range bypasses() {
		for _, a := range list {
			count++
			for mode, yes := range map[spec.PermissionMode]bool{spec.ModeDefault: false, spec.ModeDontAsk: false} {
				p := spec.Permissions{Mode: mode, Yes: yes, Allow: rules(a.allow), Ask: rules(a.ask), Deny: rules(a.deny)}
				if got := decide(p, a.tool, a.args); got.Decision < permission.Ask {
					t.Errorf("%s, mode %s: %s %s runs: %+v", what, mode, a.tool, a.args, got)
				}
			}
			if a.deny == "" && a.ask == "" {
				continue
			}
			p := spec.Permissions{Mode: spec.ModeBypass, Yes: true, Allow: rules(a.allow), Ask: rules(a.ask), Deny: rules(a.deny)}
			if got := decide(p, a.tool, a.args); got.Decision < permission.Ask {
				t.Errorf("%s, bypass: %s %s runs: %+v", what, a.tool, a.args, got)
			}
		}
	}
	if count < 200 {
		t.Errorf("only %d attempts", count)
	}
}

// A person is shown arguments in one form only if there is one.
func TestAttackArgumentsWithARepeatedKeyAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		`{"sum":1000, "sum":1}`:       `{"sum":1000, "sum":1}`,
		`{"a":{"x":1,"X":2}}`:         `{"a":{"x":1,"X":2}}`,
		`{"a":[{"x":1},{"x":2}]}`:     `{"a":[{"x":1},{"x":2}]}`,
		`{"b":1, "a":["b","b"]}`:      `{"a":["b","b"],"b":1}`,
		`{"a":{"b":1}, "b":{"a":2} }`: `{"a":{"b":1},"b":{"a":2}}`,
	} {
		if got := permission.Canonical(args); got != want {
			t.Errorf("%s: %s", args, got)
		}
	}
	if got := permission.Show("mcp__bank__pay", `{"sum":1000,"sum":1}`); got != fmt.Sprintf("mcp__bank__pay %s", `{"sum":1000,"sum":1}`) {
		t.Error(got)
	}
}
