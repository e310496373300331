package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// makeRepository makes a git repository with two commits and returns their hashes.
func makeRepository(t *testing.T) (dir, first, second string) {
	t.Helper()
	dir = t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	write("a.go", "package a\n\n\t_ = f()\r\nkey = \"s3cret\" and \"other\" end\n")
	git("add", ".")
	git("commit", "-q", "-m", "one")
	first = git("rev-parse", "HEAD")
	write("sub/ü b.txt", "only line")
	git("add", ".")
	git("commit", "-q", "-m", "two")
	return dir, first, git("rev-parse", "HEAD")
}

func TestEvidenceIsCheckedAgainstTheDirectory(t *testing.T) {
	dir, first, second := makeRepository(t)
	if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "outside.txt"), []byte("x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name string
		e    evidence
		want error
	}{
		{"exact line", evidence{Path: "a.go", Line: 1, Text: "package a"}, nil},
		{"leading tab and CRLF", evidence{Path: "a.go", Line: 3, Text: "\t_ = f()"}, nil},
		{"tab left out", evidence{Path: "a.go", Line: 3, Text: "_ = f()"}, errText},
		{"no newline at the end", evidence{Path: "sub/ü b.txt", Line: 1, Text: "only line"}, nil},
		{"another line", evidence{Path: "a.go", Line: 2, Text: "package a"}, errText},
		{"empty text", evidence{Path: "a.go", Line: 1}, errText},
		{"past the end", evidence{Path: "a.go", Line: 5, Text: ""}, errLine},
		{"line zero", evidence{Path: "a.go", Text: "package a"}, errForm},
		{"nothing", evidence{}, errForm},
		{"no such file", evidence{Path: "b.go", Line: 1, Text: "x"}, os.ErrNotExist},
		{"masked in place", evidence{Path: "a.go", Line: 4, Text: `key = "[masked]" and "[masked]" end`}, nil},
		{"masked, wrong start", evidence{Path: "a.go", Line: 4, Text: `kex = "[masked]" and "[masked]" end`}, errText},
		{"masked, wrong middle", evidence{Path: "a.go", Line: 4, Text: `key = "[masked]" or "[masked]" end`}, errText},
		{"masked, wrong end", evidence{Path: "a.go", Line: 4, Text: `key = "[masked]" endx`}, errText},
		{"mask alone", evidence{Path: "a.go", Line: 4, Text: "[masked]"}, errMask},
		{"mask hides nothing", evidence{Path: "a.go", Line: 1, Text: "package a[masked]"}, errText},
		{"commit", evidence{Commit: first}, nil},
		{"short commit", evidence{Commit: first[:10]}, nil},
		{"commit touches path", evidence{Commit: second, Path: "sub/ü b.txt"}, nil},
		{"commit does not touch path", evidence{Commit: second, Path: "a.go"}, errUntouched},
		{"unknown commit", evidence{Commit: strings.Repeat("0", 40)}, errCommit},
		{"an option instead of a commit", evidence{Commit: "--output=x"}, errHash},
	}
	j, err := newChecker(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := j.checkEvidence(c.e); !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
		})
	}
	if err := j.checkEvidence(evidence{Path: "../outside.txt", Line: 1, Text: "x"}); err == nil {
		t.Fatal("a path outside the directory passed")
	}
}

func TestCommitPathsBelowTheTopOfTheRepository(t *testing.T) {
	dir, _, second := makeRepository(t)
	j, err := newChecker(filepath.Join(dir, "sub"))
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	for _, path := range []string{"ü b.txt", "sub/ü b.txt"} {
		if err := j.checkEvidence(evidence{Commit: second, Path: path}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestExitSaysWhetherTheReportIsTrue(t *testing.T) {
	dir, first, _ := makeRepository(t)
	good := evidence{Path: "a.go", Line: 1, Text: "package a"}
	bad := evidence{Path: "a.go", Line: 1, Text: "package b"}
	cases := []struct {
		name string
		r    report
		want int
		says string
	}{
		{"all true", report{V: 1, Findings: []finding{{Evidence: []evidence{good, {Commit: first}}}}}, exitTrue, "2 true, 0 false"},
		{"one false", report{V: 1, Findings: []finding{{Evidence: []evidence{good, bad}}}}, exitFalse, "1 true, 1 false"},
		{"a bare finding", report{V: 1, Findings: []finding{{Evidence: []evidence{good}}, {Title: "trust me"}}}, exitFalse, "trust me"},
		{"nothing at all", report{V: 1}, exitFalse, "0 evidence"},
		{"another version", report{V: 2}, exitUsage, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			data, err := json.Marshal(c.r)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "report.json")
			if err := os.WriteFile(file, data, 0o644); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			if got := run([]string{"--dir", dir, file}, &out, &errs); got != c.want || !strings.Contains(out.String(), c.says) {
				t.Fatalf("exit %d, want %d; output %s%s", got, c.want, out.String(), errs.String())
			}
		})
	}
	var out bytes.Buffer
	if got := run([]string{"--dir", dir}, &out, &out); got != exitUsage {
		t.Fatalf("no file named: exit %d", got)
	}
}
