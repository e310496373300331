//go:build unix

package builtin_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-run/troupe/internal/toolset/builtin"
	"github.com/troupe-run/troupe/tool"
)

func TestGrepShowsLinesByPathThenLineAndCounts(t *testing.T) {
	b := newRepoBox(t, map[string]string{"b.go": "x\nneedle 1\r\n", "a/c.go": "needle 2\nneedle 3", "a/d.md": "Needle 4", "bin": "needle\x00"})
	b.wantLines(b.callTool("grep", `{"pattern":"needle"}`), "a/c.go:1:needle 2", "a/c.go:2:needle 3", "b.go:2:needle 1", "[3 matches in 2 files; 3 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"(?i)^needle \\d$","glob":"*.md"}`), "a/d.md:1:Needle 4", "[1 matches in 1 files; 1 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"needle","path":"a","glob":"**/*.{go,rs}"}`), "a/c.go:1:needle 2", "a/c.go:2:needle 3", "[2 matches in 1 files; 1 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"needle","path":"b.go"}`), "b.go:2:needle 1", "[1 matches in 1 files; 1 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"nothing"}`), "[0 matches in 0 files; 3 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"("}`), "error: pattern: error parsing regexp: missing closing ): `(`")
	b.wantLines(b.callTool("grep", `{"pattern":"a","glob":"[a"}`), "error: glob: syntax error in pattern")
	b.wantLines(b.callTool("grep", `{"pattern":"a","path":"none"}`), "error: none: file does not exist")
}

func TestGrepShowsTheFirst100AndClipsLongLines(t *testing.T) {
	b := newBox(t, map[string]string{"a": strings.Repeat("hit\n", 80), "b": strings.Repeat("hit\n", 80), "wide": "hit" + strings.Repeat("-", 400)})
	got := b.callTool("grep", `{"pattern":"hit"}`)
	if !strings.HasSuffix(got, "b:20:hit\n[161 matches in 3 files; 3 files searched; first 100 shown]") || strings.Count(got, "\n") != 100 {
		t.Error(got)
	}
	b.wantLines(b.callTool("grep", `{"pattern":"hit","path":"wide"}`), "wide:1:hit"+strings.Repeat("-", 297)+" …[line clipped]", "[1 matches in 1 files; 1 files searched]")
}

func TestGrepSkipsHugeFilesAndSaysSo(t *testing.T) {
	b := newBox(t, map[string]string{"small": "needle", "huge": "needle"})
	if err := os.Truncate(filepath.Join(b.dir, "huge"), 256<<20+1); err != nil {
		t.Fatal(err)
	}
	b.wantLines(b.callTool("grep", `{"pattern":"needle"}`), "small:1:needle", "[1 matches in 1 files; 1 files searched; 1 large files skipped]")
}

// TestGrepCountsAllOfALargeFile: also lines that are longer than the buffer, and the last one.
func TestGrepCountsAllOfALargeFile(t *testing.T) {
	wide := strings.Repeat("-", 3<<20)
	b := newBox(t, map[string]string{"big": strings.Repeat("needle\n", 1_000_000) + wide + "needle\n" + "needle " + wide + "\nlast needle"})
	got := b.callTool("grep", `{"pattern":"needle","limit":1}`)
	b.wantLines(got, "big:1:needle", "[1000002 matches in 1 files; 1 files searched; first 1 shown]")
	b.wantLines(b.callTool("grep", `{"pattern":"last"}`), "big:1000003:last needle", "[1 matches in 1 files; 1 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"x","limit":101}`), "error: limit is 101; it must be 1 to 100")
}

// TestGrepGroupsLinesByForm: the counts are of all lines, whatever is shown.
func TestGrepGroupsLinesByForm(t *testing.T) {
	var log strings.Builder
	for i := range 598 {
		fmt.Fprintf(&log, "10:00:%02d ERROR req-%04d timeout after %dms\n10:00:%02d INFO ok\n", i%60, i, i, i%60)
	}
	b := newBox(t, map[string]string{"a.log": log.String(), "b.log": "ERROR ORA-00942 no table\nERROR ORA-00001 not unique\n10:00:00 ERROR req-1 timeout after 1ms\n"})
	b.wantLines(b.callTool("grep", `{"pattern":"ERROR","group":true}`), "a.log:1:[599× to b.log:3] 10:00:00 ERROR req-0000 timeout after 0ms",
		"b.log:1:[1×] ERROR ORA-00942 no table", "b.log:2:[1×] ERROR ORA-00001 not unique", "[601 matches in 2 files; 2 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"ERROR","group":true,"limit":1}`), "a.log:1:[599× to b.log:3] 10:00:00 ERROR req-0000 timeout after 0ms",
		"[601 matches in 2 files; 2 files searched; first 1 shown]")
}

// TestGrepGroupsJSONLinesByTheirMessage: other fields of a structured log do not make another form.
func TestGrepGroupsJSONLinesByTheirMessage(t *testing.T) {
	b := newBox(t, map[string]string{"a.jsonl": `{"level":"ERROR","msg":"job 1 failed","who":"ada"}` + "\n" + `{"level":"ERROR","msg":"job 2 failed","who":"bob"}` + "\n" +
		`{"level":"WARN","msg":"job 2 failed","who":"bob"}` + "\n" + `{"who":"eve","level":"ERROR","msg":"job 3 failed","error":"EOF"}` + "\n"})
	b.wantLines(b.callTool("grep", `{"pattern":"job","group":true}`), `a.jsonl:1:[2× to a.jsonl:2] {"level":"ERROR","msg":"job 1 failed","who":"ada"}`,
		`a.jsonl:3:[1×] {"level":"WARN","msg":"job 2 failed","who":"bob"}`, `a.jsonl:4:[1×] {"who":"eve","level":"ERROR","msg":"job 3 failed","error":"EOF"}`,
		"[4 matches in 1 files; 1 files searched]")
}

func TestSearchFollowsGitignore(t *testing.T) {
	b := newRepoBox(t, map[string]string{".gitignore": "out/\n", "out/x": "hit", "vendor/v": "hit", "tracked": "hit"})
	b.writeFiles(map[string]string{"new": "hit"})
	b.wantLines(b.callTool("grep", `{"pattern":"hit"}`), "new:1:hit", "tracked:1:hit", "vendor/v:1:hit", "[3 matches in 3 files; 4 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"hit","path":"out/x"}`), "out/x:1:hit", "[1 matches in 1 files; 1 files searched]")
	b.wantLines(b.callTool("glob", `{"pattern":"{out,vendor}/*"}`), "vendor/v", "[1 files, 3 bytes]", "[extensions: (none) 1 3]", "[largest: vendor/v 3]")
}

func TestSearchOutsideGitSkipsVendoredCode(t *testing.T) {
	b := newBox(t, map[string]string{"vendor/v": "hit", "a/node_modules/n": "hit", ".git/x": "hit", "a/b/c": "hit"})
	b.wantLines(b.callTool("grep", `{"pattern":"hit"}`), "a/b/c:1:hit", "[1 matches in 1 files; 1 files searched]")
}

func TestAnIgnoredDirectoryIsSearchedAllTheSame(t *testing.T) {
	b := newRepoBox(t, map[string]string{".gitignore": "work/\n", "work/a": "hit"})
	b.dir += "/work"
	b.openTools(builtin.Config{})
	b.wantLines(b.callTool("grep", `{"pattern":"hit"}`), "a:1:hit", "[1 matches in 1 files; 1 files searched]")
}

func TestADirectoryThatIsLeftOutIsNotThere(t *testing.T) {
	files := map[string]string{"a/tape/0001.json": "hit", "a/tape/b/c": "hit", "a/tapes": "hit", "d": "hit"}
	for _, b := range []*testBox{newBox(t, files), newRepoBox(t, files)} {
		b.openTools(builtin.Config{Writable: []string{"**"}, Without: []string{b.dir + "/a/tape"}})
		b.wantLines(b.callTool("grep", `{"pattern":"hit"}`), "a/tapes:1:hit", "d:1:hit", "[2 matches in 2 files; 2 files searched]")
		b.wantLines(b.callTool("list_dir", `{"path":"a"}`), "tapes\t3")
		if got := b.callTool("glob", `{"pattern":"**"}`); strings.Contains(got, "tape/") || !strings.HasPrefix(got, "a/tapes\nd\n") {
			t.Error(got)
		}
		for _, c := range [][2]string{{"grep", `{"pattern":"hit","path":"a/tape"}`}, {"list_dir", `{"path":"a/tape"}`}, {"list_dir", `{"path":"a/x/../tape"}`}} {
			b.wantLines(b.callTool(c[0], "%s", c[1]), "error: a/tape: file does not exist")
		}
		b.wantLines(b.callTool("read_file", `{"path":"a/tape/0001.json"}`), "error: a/tape/0001.json: file does not exist")
		b.wantLines(b.callTool("write_file", `{"path":"a/tape/new","content":"x"}`), "error: a/tape/new: file does not exist")
	}
	b := newBox(t, files) // it itself is not left out, nor what is elsewhere
	for _, without := range []string{b.dir, b.dir + "/..", t.TempDir(), b.dir + "/nothing"} {
		b.openTools(builtin.Config{Without: []string{without}})
		b.wantLines(b.callTool("list_dir", `{}`), "a/", "d\t3")
	}
}

func TestReportsThatTroupeWroteAreNoInput(t *testing.T) {
	b := newBox(t, map[string]string{
		"report.md":      "<!-- generated by troupe -->\n# hit",
		"report.json":    `{"v":1,"generator":"troupe","x":"hit"}`,
		"docs/report.md": "<!-- generated by troupe -->\nhit",
		"README.md":      "# tool\nhit: files generated by troupe\n",
	})
	b.wantLines(b.callTool("grep", `{"pattern":"hit"}`), "README.md:2:hit: files generated by troupe", "docs/report.md:2:hit", "[2 matches in 2 files; 2 files searched]")
}

func TestGlobListsPathsAndSumsThemUp(t *testing.T) {
	b := newBox(t, map[string]string{"a.go": "12345", "b/c.GO": "123", "b/d.md": "1", "Makefile": "1234", ".env": "1"})
	b.wantLines(b.callTool("glob", `{"pattern":"**"}`), ".env", "Makefile", "a.go", "b/c.GO", "b/d.md", "[5 files, 14 bytes]",
		"[extensions: .go 2 8; (none) 2 5; .md 1 1]", "[largest: a.go 5; Makefile 4; b/c.GO 3; .env 1; b/d.md 1]")
	b.wantLines(b.callTool("glob", `{"pattern":"*.go"}`), "a.go", "[1 files, 5 bytes]", "[extensions: .go 1 5]", "[largest: a.go 5]")
	b.wantLines(b.callTool("glob", `{"pattern":"b/*.{md,txt}"}`), "b/d.md", "[1 files, 1 bytes]", "[extensions: .md 1 1]", "[largest: b/d.md 1]")
	b.wantLines(b.callTool("glob", `{"pattern":"*.none"}`), "[0 files, 0 bytes]")
	b.wantLines(b.callTool("glob", `{"pattern":"{"}`), "error: pattern: syntax error in pattern")
}

func TestGlobShows100PathsOfAnyNumber(t *testing.T) {
	files := map[string]string{}
	for i := range 130 {
		files[fmt.Sprintf("f%03d.x%d", i, i%15)] = strings.Repeat("b", i%15+1)
	}
	got := strings.Split(newBox(t, files).callTool("glob", `{"pattern":"**"}`), "\n")
	if len(got) != 103 || got[99] != "f099.x9" || !strings.HasPrefix(got[100], "[130 files, ") || strings.Count(got[101], ";") != 11 || strings.Count(got[102], ";") != 4 {
		t.Errorf("%d lines: %v", len(got), got[100:])
	}
}

func TestNamesThatAreNoTextAreShownAsText(t *testing.T) {
	b := newRepoBox(t, map[string]string{"ok": "hit", "caf\xe9/a\nb.txt": "hit \xff"})
	b.wantLines(b.callTool("grep", `{"pattern":"hit"}`), "caf\uFFFD/a\uFFFDb.txt:1:hit \uFFFD", "ok:1:hit", "[2 matches in 2 files; 2 files searched]")
	b.wantLines(b.callTool("list_dir", `{}`), ".git/", "caf\uFFFD/", "ok\t3")
	if got := b.callTool("git_show", `{"rev":"HEAD"}`); !strings.Contains(got, "1\t0\tcaf\uFFFD/a\uFFFDb.txt\n") {
		t.Error(got)
	}
	if got := b.callTool("git_numstat", `{}`); !strings.Contains(got, "1\t1\t0\t1\tcaf\uFFFD/a\uFFFDb.txt\n") {
		t.Error(got)
	}
}

func TestCanceledSearchIsReported(t *testing.T) {
	b := newBox(t, map[string]string{"a": "x"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := b.set.Call(ctx, "grep", tool.Call{Args: []byte(`{"pattern":"x"}`)}); !r.Error || !strings.Contains(r.Text, "canceled") {
		t.Errorf("%+v", r)
	}
}

// TestGrepAgreesWithTheRegularExpression compares grep, which looks for words of a
// pattern first, with the plain regular expression.
func TestGrepAgreesWithTheRegularExpression(t *testing.T) {
	patterns := []string{`abc`, `(?i)ask`, `a(b|c)+d`, `(ab|cd)e?f`, `[ab]x|yz{2,3}`, `^ab|cd$`, `\bfoo\b`, `(?i)k`, `x*`, `(a|)b`, `a.c`, `(?:ab){2}`,
		`[^a]b`, `(?i)éa`, `ab(cd|ef(gh|ij))`, `a?b?cd`, `(x|yy)(a|bb)zz`, `\.catch\(\s*\)`, `(^|\s)_ = `, `(?i:get|Set)_?key`}
	rapid.Check(t, func(rt *rapid.T) {
		pattern := rapid.SampledFrom(patterns).Draw(rt, "pattern")
		lines := rapid.SliceOfN(rapid.StringMatching(`[abcdefxyzkK\x{212A}sS_ =.éÉ()ghij]{0,12}`), 1, 6).Draw(rt, "lines")
		lines = append(lines, "ask aSK ASK a\u017Fk", "yzz", "abab", "xabzz yyazz", "get_key SETKEY", ".catch( )", "ab\t_ = x", "abefgh")
		re, want := regexp.MustCompile(pattern), []string{}
		for i, line := range lines {
			if re.MatchString(line) {
				want = append(want, fmt.Sprintf("a:%d:%s", i+1, line))
			}
		}
		if got := builtin.GrepText("a", pattern, strings.Join(lines, "\n")); fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("%s: got %q, want %q", pattern, got, want)
		}
	})
}

// BenchmarkGrepOfFiveThousandFiles is the promise that one search of a usual
// repository takes less than a second: 5,000 files of 4 KB.
func BenchmarkGrepOfFiveThousandFiles(b *testing.B) {
	files := map[string]string{}
	text := strings.Repeat("\tif err := store.Save(ctx, token, value); err != nil { return err } // see https://example.com\n", 40)
	for i := range 5000 {
		files[fmt.Sprintf("d%02d/e%02d/f%04d.go", i%10, i%100, i)] = text
	}
	box := newRepoBox(b, files)
	b.ResetTimer()
	for b.Loop() {
		if got := box.callTool("grep", `{"pattern":"FIXME|panic\\(|_ = \\w+\\("}`); got != "[0 matches in 0 files; 5000 files searched]" {
			b.Fatal(got)
		}
	}
}

// TestGrepBoundsTheFormsOfAllFiles: a search of many different lines takes a bounded amount of memory,
// and says how many lines it did not tell apart.
func TestGrepBoundsTheFormsOfAllFiles(t *testing.T) {
	files := map[string]string{}
	for i := range 5 {
		var b strings.Builder
		for j := range 5000 {
			fmt.Fprintf(&b, "hit %s\n", strings.Map(func(r rune) rune { return r - '0' + 'a' }, strconv.Itoa(i*5000+j)))
		}
		files[fmt.Sprintf("f%d", i)] = b.String()
	}
	got := newBox(t, files).callTool("grep", `{"pattern":"hit","group":true,"limit":1}`)
	if want := "f0:1:[1×] hit a\n[25000 matches in 5 files; 5 files searched; first 1 shown; 5000 lines of further forms]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
