package rule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/permission/rule"
	"github.com/troupe-run/troupe/internal/test/cputime"
)

// Bash runs a substitution in the subscript of a name that a builtin evaluates, also
// where the word stands in single quotes. A rule for the builtin allows none of it.
func TestAttackAllowRuleCoversNoCommandInASubscript(t *testing.T) {
	rules := []string{"printf:*", "test:*", "[[:*", "'[':*", "[:*", "read:*", "unset:*", "wait:*", "getopts:*", "mapfile:*", "declare:*", "let:*", "export:*", "shift:*", "compgen:*", "kill:*", "git log:*", "echo:*"}
	for _, command := range []string{
		`printf -v 'a[$(touch made)]' x`, `printf -v'a[$(touch made)]' x`, "printf -v 'a[`touch made`]' x", `test -v 'a[$(touch made)]'`, `'[' -v 'a[$(touch made)]' ']'`, `test 'a[$(touch made)]' -eq 1`,
		`'read' 'a[$(touch made)]'`, `unset 'a[$(touch made)]'`, `wait -n -p 'a[$(touch made)]'`, `getopts o 'a[$(touch made)]' -o`, `mapfile 'a[$(touch made)]'`, `mapfile -C 'touch made;' x`, `'declare' 'a[$(touch made)]=1'`,
		`'let' 'a[$(touch made)]'`, `'export' 'a[$(touch made)]=1'`, `shift 'a[$(touch made)]'`, `compgen -W '$(touch made)'`, `kill 'a[$(touch made)]'`, `printf %d 'a[$(touch made)]'`,
		`printf -v y %s%s 'a[' '$(touch made)]'; printf -v 'x[y]' 1`, `printf -v PATH %s /tmp/evil; git log`, `test -v 'x[y]'`, `'export' PATH=evil; git log`, `'read' PATH`,
	} {
		if rule.Allowed(rules, command) {
			t.Errorf("allowed: %s", command)
		}
	}
	for _, command := range []string{`printf '%s\n' x`, `printf '[%s]' x`, `test -f x`, `kill -9 1`, `git log --format='[$(x)]'`, `echo '[$(x)]'`, "wait", "unset x"} {
		if !rule.Allowed(rules, command) {
			t.Errorf("not allowed: %s", command)
		}
	}
}

// What is quoted and evaluated later is decided when it runs.
func TestAttackDeniedCommandThatIsEvaluatedLaterIsRefused(t *testing.T) {
	rules := []string{"rm:*"}
	for _, command := range []string{
		`printf -v 'a[$(rm x)]' y`, `test -v 'a[$(rm x)]'`, `[ -v 'a[$(rm x)]' ]`, `read 'a[$(rm x)]'`, `declare 'a[$(rm x)]=1'`, `let 'a[$(rm x)]'`, `wait -p 'a[$(rm x)]'`, `unset 'a[$(rm x)]'`,
		`[[ -v 'a[$(rm x)]' ]]`, `[[ 'a[$(rm x)]' -eq 1 ]]`, `(( 'a[$(rm x)]' ))`, `x='a[$(rm x)]'; ((x))`, `x='a[$(rm x)]'; echo $((x))`, `x='a[$(rm x)]'; : ${!x}`, `x='$(rm x)'; : ${x@P}`, `x="a[\$(rm x)]"; ((x))`,
		`x=a[\$\(rm\ x\)]; ((x))`, `x='a[$'; y='(rm x)]'; z=$x$y; ((z))`, `for i in 'a[$(rm x)]'; do ((i)); done`, `f() { (($1)); }; f 'a[$(rm x)]'`, `set -- 'a[$(rm x)]'; echo ${y[$1]}`, "read x << 'E'\na[$(rm x)]\nE\n((x))",
		`x=$'a[\x24(rm x)]'; ((x))`, `compgen -W '$(rm x)'`, `mapfile -C 'rm x;' y`, `trap -- "$X" EXIT`, `bind -x '"a": rm x'`, `enable -f ./x.so x`, `complete -C 'rm x' y`, `fc -e 'rm x'`,
		`PS4='$(rm x)'; set -x; ls`, `PS4=$X; set -x; ls`, `ENV=x sh`, `BASH_ENV=./x ls`, `PROMPT_COMMAND='rm x'`, `PATH=evil ls`, `export PATH=evil; ls`, `declare -x PATH=evil; ls`, `printf -v PATH %s evil; ls`, `read PATH`, `for PATH in evil; do ls; done`,
		`LD_PRELOAD=./x.so ls`, `DYLD_INSERT_LIBRARIES=x ls`, `SHELLOPTS=xtrace sh`, `BASHOPTS=x ls`, `CDPATH=x ls`, `env PATH=evil ls`, `env -i LD_PRELOAD=x ls`, `sudo LD_PRELOAD=x ls`, `GIT_SSH=./x git fetch`, `GIT_EXTERNAL_DIFF=./x git diff`, `env 'BASH_FUNC_ls%%=() { rm x; }' ls`,
		`GIT_CONFIG_COUNT=1 git log`, `GIT_CONFIG_GLOBAL=x git log`, `GIT_PAGER='rm x' git log`, `PAGER='rm x' man ls`, `EDITOR="rm" git commit`, `EDITOR=$X git commit`, `FOO='sh -c "rm x"' ls`,
		`EDITOR='rm x'; export EDITOR; git commit`, `FOO='rm x'; export FOO; ls`, `set -a; FOO='rm x'; ls`, `X=GIT_SSH=./x; export "$X"; git fetch`, `X=PATH; read "$X"`, `A=PATH; export "$A=x"; ls`, `declare $X`,
		"if\n" + strings.Repeat("if\n", 200) + "ls",
	} {
		if got := rule.Find(rules, command); got < rule.Unclear {
			t.Errorf("%s: %v", command, got)
		}
	}
	for _, command := range []string{`echo $((i+1))`, `((i++))`, `printf '%s\n' x`, `while IFS= read -r x; do echo "$x"; done`, `[[ -f x ]]`, `awk '{print $1}' x`, `n=$(wc -l x | awk '{print $1}'); echo $((n+1))`, `CGO_ENABLED=0 go build`, `GIT_PAGER=cat git log`,
		`GIT_AUTHOR_NAME=x git commit`, `x='a b'; echo "$x"`, `echo '$(rm x)'`, `[ "$x" = y ]`, `for i in 1 2; do echo $i; done`, `export FOO="$X"`, `export HOME`, `read -r line`} {
		if got := rule.Find(rules, command); got != rule.Clear {
			t.Errorf("%s: %v", command, got)
		}
	}
}

// A program that is not known to take plain arguments may run what they name.
func TestAttackDeniedCommandOfAnUnusualStarterIsRefused(t *testing.T) {
	rules := []string{"rm:*", "git push:*"}
	for _, command := range []string{
		"ld.so /bin/rm x", "/lib64/ld-linux-x86-64.so.2 /bin/rm x", "systemd-inhibit rm x", "systemd-run --wait rm x", "run0 rm x", "numactl -N0 rm x", "eatmydata rm x", "chronic rm x", "start-stop-daemon --start --exec /bin/rm -- x", "sg root 'rm x'", "sg root -c 'rm x'",
		"tmux new-session 'rm x'", "screen -dm rm x", "capsh -- -c 'rm x'", "unshare -r rm x", "nsenter rm x", "setpriv rm x", "flock x rm y", "flock x -c 'rm x'", "script -c 'rm x'", "ls | entr rm x", "parallel 'rm {}' ::: x", "git submodule foreach 'rm x'",
		"git bisect run rm x", "git rebase -x 'rm x'", "git rebase -x'rm x'", "git rebase --exec='rm x' y", "git -c alias.x='!rm y' x", "git -c core.pager='rm x' log", "git -c alias.x=push x", "git -c alias.x='!git push' x", "git config alias.x push", "/usr/lib/git-core/git-push", "git-push origin",
		"bash5 -c 'rm x'", "bash-5.2 -c 'rm x'", "lksh -c 'rm x'", "yash -c 'rm x'", "rbash -c 'rm x'", "busybox sh -c 'rm x'", "oksh -c 'rm x'", "pwsh -Command 'rm x'", "python3 -c 'import os; os.system(\"rm x\")'", "awk 'BEGIN { system(\"rm x\") }'", "sed '1e rm x' y",
		"perl -e 'exec \"/bin/rm\", \"x\"'", "vim -c '!rm x'", "make SHELL=/bin/rm x", "go run -exec rm x.go", "go test -exec=rm ./...", "tar --to-command='rm x' -xf y", "rsync -e 'rm x' a b", "cp /bin/rm y", "ln -s /bin/rm y", "rg --pre rm x", "gdb -ex '!rm x'", "tmux new \"rm $X\"",
		"unknown-starter “rm x”", "unknown-starter -- rm x", "unknown-starter 'a; rm x'", "unknown-starter -crm", "docker run x git push",
	} {
		if got := rule.Find(rules, command); got < rule.Unclear {
			t.Errorf("%s: %v", command, got)
		}
	}
	for _, command := range []string{"git log", "git commit -m 'arm the alarm'", "git commit -m 'will push tomorrow'", "go test ./...", "go vet ./rmx/...", "grep -rn rm .", "echo 'rm x'", "rg rm", "cat rm", "ls rm", "python3 x.py", "sed -n '1,3p' x", "vim rm.txt", "head -n 3 rm", "npm run build -- --format=x", "git push-x", "docker run --rm x"} {
		if got := rule.Find(rules, command); got != rule.Clear {
			t.Errorf("%s: %v", command, got)
		}
	}
}

// A long command line is judged in little time, whatever it repeats.
func TestAttackALongCommandLineCostsLittle(t *testing.T) {
	rules := []string{"rm:*", "git push:*", "a b c d e:*"}
	for _, piece := range []string{"rm", "x rm", "-rm", "rm=", "git ", "a b c d ", "eval 'rm ", "A=rm ", "$x", "\\"} {
		begin := cputime.Used(t)
		rule.Find(rules, "foo "+strings.Repeat(piece, 60<<10/len(piece)))
		if took := cputime.Used(t) - begin; took > 5*time.Second {
			t.Errorf("%q: %v", piece, took)
		}
	}
}
