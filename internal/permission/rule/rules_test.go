package rule_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/permission/rule"
)

// A rule that allows a command allows nothing that a shell makes of it beside or
// instead of that command.
func TestAttackAllowRuleCoversNoOtherCommand(t *testing.T) {
	rules := []string{"git log:*", "echo:*", "make test", "ls *", "[[:*", "time:*", "let:*"}
	for _, command := range []string{
		"git log; rm -rf x", "git log && rm x", "git log || rm x", "git log | sh", "git log |& sh", "git log & rm x", "git log &", "git log\nrm x",
		"git log > x", "git log >> x", "git log 2>x", "git log < x", "git log >| x", "git log &> x", "git log <> x", "git log << E\nx\nE", "git log <<< x",
		"git log $(rm x)", "git log `rm x`", `git log "$(rm x)"`, "git log \"`rm x`\"", "git log <(rm x)", "git log >(rm x)", "git log ${x:-$(rm x)}", "git log $((x))",
		"git log $X", `git log "$X"`, "git log $'x'", `git log $"x"`, "GIT_EXTERNAL_DIFF=x git log", "X=1 Y=2 git log", "X=$(rm x) git log", "git log *", "git log [a-z]",
		"git log {a,b}", "git log ~", "git log ~root", "git log a=~", "git log # x", "# x", `g\it log`, `git \log`, `git log \` + "\n; rm x", "(git log)", "{ git log; }",
		"! git log", "if git log; then rm x; fi", "while git log; do rm x; done", "for x in 1; do git log; done", "f() { rm x; }; git log", "git() { rm x; }; git log",
		"git log\x00rm x", "git log\rrm x", "git log \x7f", "git log \xff", "git log\u00a0x; rm x", "'git log'", "g''it-x log", "git 'log x'", "coproc git log", "git log; coproc rm x",
		"[[ -f x ]]", "time rm x", "let x=1", "echo x | tee y", "echo hi; touch made", "git log;", "", " ", ";", "&&", "git log &&", "git log 'x", "alias ls=rm\nls x",
		"case x in x) rm x;; esac", "case git in git) git log;; esac", "exec git log", "command git log", "env git log", "/usr/bin/git log", "git -c core.pager=x log",
		"git log " + strings.Repeat("(", 10_000), "git log " + strings.Repeat("$(", 5000), strings.Repeat("! ", 20_000) + "git log", "git log " + strings.Repeat("x", 100<<10),
	} {
		if strings.HasPrefix(command, "git log;") && len(command) == 8 {
			continue // just the command: see below
		}
		if rule.Allowed(rules, command) {
			t.Errorf("allowed: %.80q", command)
		}
	}
	for _, command := range []string{"git log", "git log;", "git  log\t-n 3", "git log 'a;b' \"$\"", `git log "a|b (c)"`, "git log HEAD^ HEAD~2", "'git' log", "git log && echo done", "git log; ls -l\nmake test",
		"git log --format='%h $x `y`'", "git log || echo none", "git log a#b"} {
		if want := !strings.Contains(command, `"$"`); rule.Allowed(rules, command) != want {
			t.Errorf("not allowed: %q", command)
		}
	}
	if rule.Allowed(nil, "ls") || rule.Allowed([]string{""}, "ls") || rule.Allowed([]string{":*"}, "ls") || !rule.Allowed([]string{"*"}, "a | b") {
		t.Error("no rule allows nothing, * anything")
	}
}

// A rule that denies a command denies it wherever in a command line it stands.
func TestAttackDeniedCommandIsFoundInACommandLine(t *testing.T) {
	rules := []string{"rm:*", "git push:*", "curl", "/usr/bin/dd:*", "make all"}
	for _, command := range []string{
		"rm x", "rm", "/bin/rm x", "./rm x", "../x/rm x", "a; rm x", "a && rm x", "a || rm x", "a | rm x", "a & rm x", "a\nrm x", "(rm x)", "{ rm x; }", "! rm x", "rm x > y", "X=1 rm x",
		"echo $(rm x)", "echo `rm x`", `echo "$(rm x)"`, "X=$(rm x)", "X=$(rm x) a", "cat <(rm x)", "echo ${x:-$(rm x)}", "echo $((1 + $(rm x)))", "cat << E\n$(rm x)\nE", "[[ $(rm x) ]]", "a[$(rm x)]=1",
		"if rm x; then a; fi", "if a; then rm x; fi", "while a; do rm x; done", "for x in $(rm x); do a; done", "case a in a) rm x;; esac", "f() { rm x; }; f", "function f { rm x; }", "time rm x", "coproc rm x", "declare x=$(rm x)",
		`'rm' x`, `"rm" x`, `r\m x`, `r''m x`, `r"m" x`, "r\\\nm x", `\rm x`, "env rm x", "env -i A=b rm x", "command rm x", "exec rm x", "sudo -u root rm x", "doas rm", "xargs rm", "a | xargs -n1 rm -f", "nice -n 5 rm x",
		"nohup rm x", "timeout 5 rm x", "setsid rm x", "stdbuf -o0 rm x", "busybox rm x", "find . -exec rm {} +", "find . -name 'a' -exec /bin/rm {} \\;", "sh -c 'rm x'", "bash -lc 'a; rm x'", "sh -ec 'rm x' y", "eval rm x", "eval 'rm' x",
		`eval "r""m x"`, "env sh -c 'rm x'", "sudo env -i timeout 3 rm x", "sh -c \"sh -c 'rm x'\"", "trap 'rm x' EXIT", "env -S 'rm x'", "su -c 'rm x'", "watch 'rm x'", "watch rm x", "builtin command rm x",
		"git push", "git -C x push", "git -c a=b push origin", "/usr/bin/git --no-pager push", "curl", "curl -o x http://y", "dd if=x", "/bin/dd if=x", "make all",
	} {
		if got := rule.Find(rules, command); got != rule.Denied {
			t.Errorf("%q: %v", command, got)
		}
	}
	for _, command := range []string{"$X x", "${X} x", "$(echo rm) x", "r? x", "/bin/r* x", "{rm,-rf,x}", "~/rm x", "$'rm' x", "eval $X", "sh x.sh", "echo rm x | sh", "sh < x", "sh -c \"$X\"", "env $X x", "xargs $X", "git $X", "'", "a (", ". x",
		"source x", "alias x=rm; x y", "hash -p /bin/rm ls", "\xff", "rm\x00", strings.Repeat("$(", 5000), strings.Repeat("eval ", 31) + "x", strings.Repeat("env ", 400) + "x", "make $X", "git \"$@\"", "f() { \"$@\"; }; f x"} {
		if got := rule.Find(rules, command); got != rule.Unclear {
			t.Errorf("%.80q: %v", command, got)
		}
	}
	for _, command := range []string{"ls", "echo rm x", "git log", "git commit -m 'x'", "echo 'a; rm x'", "grep -r rm .", "make test", "make all -n", "make", "ls *.go", "echo $X", "X=1 make test", "echo x > y", "a | b && c; (d)", "cat << 'E'\nrm x\nE", "env A=b ls", "find . -name '*.go'", "arm x", "rmdir x"} {
		if got := rule.Find(rules, command); got != rule.Clear {
			t.Errorf("%q: %v", command, got)
		}
	}
	if rule.Find(nil, "rm '") != rule.Clear || rule.Find([]string{"*"}, "ls") != rule.Denied {
		t.Error("no rule denies nothing, * anything")
	}
}

// FuzzRules: no command line makes the rules panic or take long, and what a rule
// allows a rule denies.
func FuzzRules(f *testing.F) {
	f.Add("git log; rm x")
	f.Add("eval 'sh -c \"rm x\"'")
	f.Fuzz(func(t *testing.T, command string) {
		rules := []string{"git log:*", "rm"}
		if rule.Allowed(rules, command) && rule.Find(rules, command) != rule.Denied {
			t.Errorf("%q is allowed, and the same rule does not deny it", command)
		}
	})
}

func TestACommandIsAllowedByRulesOnlyWhereItIsOneCommand(t *testing.T) {
	rules := []string{"git log:*", "make test", "ls *", " "}
	for command, want := range map[string]bool{
		"git log": true, "git log --oneline -n 3": true, "git  log": true, "make test": true, "ls -l": true, "ls": true, `git log --format="%h %s"`: true,
		"git": false, "git logs": false, "git -c x=y log": false, "make test all": false, "make": false, "": false, "rm -rf .": false,
		"git log; rm -rf .": false, "git log && rm x": false, "git log | sh": false, "git log > x": false, "git log $(rm x)": false, "git log `rm x`": false,
		"git log\nrm x": false, "git log & rm x": false, "X=1 git log": false, "git log ${IFS}x": false, "git log <(rm x)": false,
	} {
		if got := rule.Allowed(rules, command); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
	if !rule.Allowed([]string{"*"}, "a; b") || rule.Allowed(nil, "ls") || rule.Allowed([]string{":*"}, "ls") {
		t.Error("* is any command, and nothing is none")
	}
}

// A rule that could never fit a command is an error: a deny rule that matches nothing would be a false sense of safety.
func TestRulesThatWouldMatchNothingAreErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a && b": `operator "&&"`, "cat x | sh:*": `operator "|"`, "cd x; make": `operator "x;"`, "make >out": `operator ">out"`, "make 2>&1": `operator "2>&1"`,
		"make &>out": `operator "&>out"`, "sort <in": `operator "<in"`, "sleep 9 &": `operator "&"`,
		"FOO=1 make:*": `assignment "FOO=1"`, "PATH+=:x make": `assignment "PATH+=:x"`,
	} {
		if err := rule.Check(text); !errors.Is(err, rule.ErrRule) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"make FOO=1", "curl http://h/?a=1&b=2:*", "git log:*", "go test ./...", "1=2"} {
		if err := rule.Check(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
