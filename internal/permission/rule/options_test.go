package rule_test

import (
	"testing"

	"github.com/troupe-run/troupe/internal/permission/rule"
)

// A rule for a program that reads covers no option by which it writes a file or runs another program.
func TestAttackARuleForAReaderCoversNoOptionThatWritesOrRuns(t *testing.T) {
	t.Parallel()
	rules := []string{"git log:*", "git diff:*", "git show:*", "git grep:*", "git cat-file:*", "git ls-remote:*", "git switch:*", "find:*", "fd:*", "sort:*", "sed:*", "tar tf:*", "tree:*", "rg:*", "uniq:*", "xxd:*",
		"yq:*", "go list:*", "go vet:*", "go env:*", "file:*", "less:*", "env:*", "xargs:*", "timeout:*", "nice:*"}
	for _, command := range []string{
		"git log --output=main.go", "git log --output main.go", "git log -p --outp=x", "git log --ext-diff", "git log -- --output=x", "git diff --output=x", "git diff --ext-d", "git show --textconv", "git grep -Ovi x",
		"git grep --open-files-in-pager=x y", "git grep -nO y", "git cat-file --filters x", "git ls-remote --upload-pack=x y", "git ls-remote --exec=x y", `git log "--output=x"`, `git log '--out'put=x`, "git log && git log --output=x",
		"find . -delete", "find . -exec rm x +", "find . -execdir x ';'", "find . -ok x ';'", "find . -okdir x ';'", "find . -fprint x", "find . -fprintf x y", "find . -fprint0 x", "find . -fls x",
		"fd -x rm", "fd a --exec rm", "fd -HX rm", "fd --exec-batch rm", "sort -o x y", "sort -ox y", "sort -no x", "sort --output=x y", "sort --o x", "sort --compress-program=x y",
		"sed -i s/a/b/ x", "sed -n -i.bak p x", "sed -Ei p x", "sed --in-place p x", "sed p x -i", "sed 'w y' x", "sed 's/a/b/w y' x", "sed 's/a/b/e' x", "sed e x", "sed '1e rm x' x", "sed -n '1p;w y' x", "sed -f x y",
		"sed -e p -e 'w y' x", "sed --expression='w y' x", "sed -n '/a/w y' x", "sed 's|a|b|w y' x", "sed 'p\nw y' x",
		"tar tf a.tar --to-command=x", "tar tf a.tar -I x", "tar tf a.tar --use-compress x", "tar tf a --checkpoint-action=exec=x", "tree -o x", "tree -fo x", "rg --pre x y", "rg --hostname-bin=x y", "uniq a b", "xxd a b",
		"yq -i .a x", "yq --inplace .a x", "go list -toolexec=x ./...", "go list --mod=mod", "go vet -vettool x", "go env -w A=b", "go env -u A", "file -C -m x", "less -o x y",
		"env rm x", "env -i A=b rm x", "xargs rm", "xargs -0 rm", "timeout 5 rm x", "nice -n5 rm x",
	} {
		if rule.Allowed(rules, command) {
			t.Errorf("allowed: %s", command)
		}
		if rule.Uncovered(rules, command) == "" {
			t.Errorf("%s: nothing is named as the reason", command)
		}
	}
	for _, command := range []string{
		"git log --oneline -n 5", "git log -c -p --stat --no-ext-diff", "git log --output-indicator-new=x", "git diff HEAD~1 -- a.go", "git show HEAD:a.go", "git grep -n x", "git switch -c x", "git cat-file -p HEAD",
		"find . -name '*.go' -type f", "find . -executable -print", "fd -e go x", "sort -u -k2 x", "sort --reverse x", "sed -n 1,40p x", "sed -n '$p' x", "sed s/a/b/g x y", "sed -E 's|a|b|' x", "sed -n '/a/,/b/p' x", "sed 5q x",
		"tar tf a.tar", "tar tf a.tar b --wildcards", "tree -L 2", "rg --pre-glob x y", "rg -n x", "uniq -c x", "xxd x", "yq .a x", "go list ./...", "go vet ./...", "go env GOROOT", "file x", "less x", "env",
	} {
		if !rule.Allowed(rules, command) || rule.Uncovered(rules, command) != "" {
			t.Errorf("not allowed: %s: %q", command, rule.Uncovered(rules, command))
		}
	}
}

// A rule that names such an option covers it, and no other.
func TestARuleCoversTheOptionThatItNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, command string
		want          bool
	}{
		{"git log --output:*", "git log --output x", true}, {"git log --output=x", "git log --output=x", true}, {"git log --output=x:*", "git log --output=x -p", true}, {"git log --output=x:*", "git log --output=x --ext-diff", false},
		{"git log --oneline:*", "git log --oneline --output=x", false}, {"find . -exec grep:*", "find . -exec grep x '{}' +", true}, {"find . -exec grep:*", "find . -exec grep x {} + -delete", false}, {"sort -o:*", "sort -o x y", true},
		{"sort -n:*", "sort -n -no x", false}, {"sort -n:*", "sort -n -ox", false}, {"sed -i:*", "sed -i s/a/b/ x", true}, {"sed -i:*", "sed -i 'w y' x", false}, {"sed -n p:*", "sed -n p x", true}, {"sed -n p:*", "sed -n p -e 'w y'", false},
		{"xargs grep:*", "xargs grep x", true}, {"env", "env", true}, {"git:*", "git -c core.pager=x log", false}, {"git:*", "git -C a -c core.pager=x log", false}, {"git:*", "git switch -c x", true}, {"git:*", "git log --output=x", false},
		{"tar:*", "tar xIf x y", false}, {"tar:*", "tar xf y", true}, {"make:*", "make -o x", true}, {"go build:*", "go build -o x", true}, {"*", "git log --output=x", true},
	} {
		if got := rule.Allowed([]string{c.rule}, c.command); got != c.want {
			t.Errorf("%s, %s: %v", c.rule, c.command, got)
		}
	}
}
