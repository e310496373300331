//go:build unix

package builtin_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/toolset/builtin"
	"github.com/troupe-run/troupe/tool"
)

// testBox is a directory with tools on it.
type testBox struct {
	t   testing.TB
	dir string
	set *tool.Set
	day int
}

// newBox makes a directory with these files.
func newBox(t testing.TB, files map[string]string) *testBox {
	t.Helper()
	b := &testBox{t: t, dir: t.TempDir()}
	b.writeFiles(files)
	b.openTools(builtin.Config{})
	return b
}

// newRepoBox makes a git repository and commits these files.
func newRepoBox(t testing.TB, files map[string]string) *testBox {
	t.Helper()
	b := newBox(t, files)
	b.runGit("init", "-q", "-b", "main")
	if len(files) > 0 {
		b.commitAll("first")
	}
	return b
}

func (b *testBox) openTools(cfg builtin.Config) {
	b.t.Helper()
	tools, err := builtin.Dir(b.dir, cfg)
	if err == nil {
		b.set, err = tool.NewSet(tools...)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *testBox) writeFiles(files map[string]string) {
	b.t.Helper()
	for name, text := range files {
		name = filepath.Join(b.dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *testBox) readFile(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func (b *testBox) runGit(args ...string) string {
	b.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = b.dir
	when := fmt.Sprintf("2024-05-%02dT12:00:00Z", max(b.day, 1))
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=a@b", "GIT_AUTHOR_DATE="+when, "GIT_COMMITTER_DATE="+when)
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commitAll commits everything, one day after the last commit, and gives the hash as it is shown.
func (b *testBox) commitAll(subject string, more ...string) string {
	b.t.Helper()
	b.day++
	b.runGit("add", "-A")
	b.runGit(append([]string{"commit", "-q", "--allow-empty", "-m", subject}, more...)...)
	return b.runGit("rev-parse", "HEAD")[:12]
}

// callTool runs a tool and gives the text of its result, after "error: " if it is one.
func (b *testBox) callTool(name, args string, format ...any) string {
	b.t.Helper()
	r := b.set.Call(b.t.Context(), name, tool.Call{Key: "r.a.1-0", Args: fmt.Appendf(nil, args, format...)})
	if r.Error {
		return "error: " + r.Text
	}
	return r.Text
}

// wantLines compares a result with lines.
func (b *testBox) wantLines(got string, lines ...string) {
	b.t.Helper()
	if want := strings.Join(lines, "\n"); strings.TrimSuffix(got, "\n") != want {
		b.t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestListDirShowsDirectoriesFilesAndLinksSorted(t *testing.T) {
	b := newBox(t, map[string]string{"b.txt": "12345", "a/x": "", "c": ""})
	if err := os.Symlink("b.txt", filepath.Join(b.dir, "l")); err != nil {
		t.Fatal(err)
	}
	b.wantLines(b.callTool("list_dir", `{"path":"."}`), "a/", "b.txt\t5", "c\t0", "l@")
	b.wantLines(b.callTool("list_dir", `{"path":"a/"}`), "x\t0")
	b.wantLines(b.callTool("list_dir", `{"path":"none"}`), "error: none: file does not exist")
	b.wantLines(b.callTool("list_dir", `{"path":"c"}`), "error: c: not a directory")
}

func TestListDirCountsHiddenEntries(t *testing.T) {
	files := map[string]string{}
	for i := range 310 {
		files[fmt.Sprintf("f%03d", i)] = ""
	}
	got := newBox(t, files).callTool("list_dir", `{}`)
	if strings.Count(got, "\n") != 301 || !strings.HasSuffix(got, "f299\t0\n[10 more entries]\n") {
		t.Errorf("%s", got)
	}
}

func TestReadFileShowsNumberedLinesAndWhichTheyAre(t *testing.T) {
	b := newBox(t, map[string]string{"f": "one\r\ntwo\nthree\nfour", "empty": "", "long": strings.Repeat("é", 300) + "\nx\n"})
	b.wantLines(b.callTool("read_file", `{"path":"f"}`), "1\tone", "2\ttwo", "3\tthree", "4\tfour", "[lines 1-4 of 4]")
	b.wantLines(b.callTool("read_file", `{"path":"f","offset":2,"limit":2}`), "2\ttwo", "3\tthree", "[lines 2-3 of 4]")
	b.wantLines(b.callTool("read_file", `{"path":"f","offset":9}`), "[lines 0-0 of 4]")
	b.wantLines(b.callTool("read_file", `{"path":"empty"}`), "[lines 0-0 of 0]")
	b.wantLines(b.callTool("read_file", `{"path":"long"}`), "1\t"+strings.Repeat("é", 200)+" …[line clipped]", "2\tx", "[lines 1-2 of 2]")
	b.wantLines(b.callTool("read_file", `{"path":"."}`), "error: .: is a directory; use list_dir")
}

func TestReadFileShows200LinesUnlessAsked(t *testing.T) {
	b := newBox(t, map[string]string{"f": strings.Repeat("x\n", 500), "wide": strings.Repeat(strings.Repeat("y", 390)+"\n", 500)})
	if got := b.callTool("read_file", `{"path":"f"}`); !strings.HasSuffix(got, "\n200\tx\n[lines 1-200 of 500]") {
		t.Error(got)
	}
	got := b.callTool("read_file", `{"path":"wide","limit":500}`)
	if strings.Contains(got, "[clipped") || !strings.HasSuffix(got, "[lines 1-145 of 500]") || len(got) > tool.OutputBytesMax {
		t.Errorf("%d bytes, ends in %s", len(got), got[len(got)-60:])
	}
}

func TestABinaryFileIsAnErrorThatSaysItsSize(t *testing.T) {
	b := newBox(t, map[string]string{"b": "PNG\x00\x01"})
	b.wantLines(b.callTool("read_file", `{"path":"b"}`), "error: binary file: 5 bytes")
}

func TestALargeFileIsReadOnlyAsFarAsAsked(t *testing.T) {
	b := newBox(t, map[string]string{"big": "first\n" + strings.Repeat("0123456789abcde\n", 600_000)})
	b.wantLines(b.callTool("read_file", `{"path":"big","limit":1}`), "1\tfirst", "[lines 1-1 of ?]")
	b.wantLines(b.callTool("read_file", `{"path":"big","offset":600001}`), "600001\t0123456789abcde", "[lines 600001-600001 of 600001]")
	b.writeFiles(map[string]string{"one": strings.Repeat("z", 9<<20)})
	b.wantLines(b.callTool("read_file", `{"path":"one"}`), "1\t"+strings.Repeat("z", 400)+" …[line clipped]", "[lines 1-1 of 1]")
}

func TestToolsCannotLeaveTheDirectory(t *testing.T) {
	b := newBox(t, map[string]string{"in/a": "inside\n"})
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": outside, "up": "..", "in/loop": "loop", "fine": "in/a"} {
		if err := os.Symlink(to, filepath.Join(b.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	b.openTools(builtin.Config{Writable: []string{"**"}})
	for _, name := range []string{"../x", "..", "/etc/passwd", outside, "link", "up/x", "in/../../x", "in/loop", "a\x00b", `..\x`} {
		for _, call := range []string{"read_file", "list_dir", "grep", "git_log", "git_blame", "write_file"} {
			args := fmt.Sprintf(`{"path":%q}`, name)
			switch call {
			case "grep":
				args = fmt.Sprintf(`{"pattern":".","path":%q}`, name)
			case "write_file":
				args = fmt.Sprintf(`{"path":%q,"content":"x"}`, name)
			}
			got := b.set.Call(t.Context(), call, tool.Call{Args: []byte(strings.ReplaceAll(args, `\x00`, `\u0000`))})
			if strings.Contains(got.Text, "outside\n") || strings.Contains(got.Text, "root:") || !got.Error && !strings.HasPrefix(call, "git_") && call != "write_file" {
				t.Errorf("%s %q: %+v", call, name, got)
			}
		}
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "outside" {
		t.Errorf("the file outside: %q %v", data, err)
	}
	b.wantLines(b.callTool("read_file", `{"path":"fine"}`), "1\tinside", "[lines 1-1 of 1]")
	b.wantLines(b.callTool("read_file", `{"path":%q}`, b.dir+"/in/a"), "1\tinside", "[lines 1-1 of 1]")
}

func TestANamedPipeDoesNotHoldAToolUp(t *testing.T) {
	b := newBox(t, map[string]string{"a": "x"})
	if out, err := exec.Command("mkfifo", filepath.Join(b.dir, "pipe")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.wantLines(b.callTool("read_file", `{"path":"pipe"}`), "error: pipe: is not a regular file")
	b.wantLines(b.callTool("list_dir", `{"path":"pipe"}`), "error: pipe: not a directory")
	b.wantLines(b.callTool("grep", `{"pattern":"x"}`), "a:1:x", "[1 matches in 1 files; 1 files searched]")
}

func TestSecretsAreShownMaskedInPlace(t *testing.T) {
	key := "AKIA" + "IOSFODNN7REALKEY"
	b := newRepoBox(t, map[string]string{
		".env":     "DB_PASSWORD=correcthorse\nMODE=dev\n",
		"conf.yml": "db: correcthorse # mode dev\nkey: " + key + " x\n",
		"k.pem":    "-----BEGIN " + "PRIVATE KEY-----\nAAAA\n-----END " + "PRIVATE KEY-----\n",
	})
	b.openTools(builtin.Config{})
	b.wantLines(b.callTool("read_file", `{"path":".env"}`), "1\tDB_PASSWORD=[masked]", "2\tMODE=[masked]", "[lines 1-2 of 2]")
	b.wantLines(b.callTool("read_file", `{"path":"conf.yml"}`), "1\tdb: [masked] # mode dev", "2\tkey: [masked] x", "[lines 1-2 of 2]")
	b.wantLines(b.callTool("read_file", `{"path":"k.pem","offset":2,"limit":1}`), "2\t[masked]", "[lines 2-2 of 3]")
	b.wantLines(b.callTool("grep", `{"pattern":"DB_|key:|AAAA"}`), ".env:1:DB_PASSWORD=[masked]", "conf.yml:2:key: [masked] x",
		"[2 matches in 2 files; 3 files searched]")
	for _, got := range []string{b.callTool("git_show", `{"rev":"HEAD","path":"."}`), b.callTool("git_blame", `{"path":".env"}`), b.callTool("git_blame", `{"path":"k.pem"}`)} {
		if !strings.Contains(got, "[masked]") || strings.Contains(got, "correcthorse") || strings.Contains(got, "AAAA") || strings.Contains(got, key) || strings.Contains(got, "=dev") {
			t.Errorf("shows a secret:\n%s", got)
		}
	}
}

func TestDirectorySecretsAreMaskedInOtherOutput(t *testing.T) {
	b := newBox(t, map[string]string{".env": "DB_PASSWORD=correcthorse\n", ".env.local": "API_TOKEN='battery staple'\nPORT=80\n", "a/.env": "X_KEY=not-at-the-top\n"})
	got, err := builtin.Secrets(b.dir)
	if err != nil || strings.Join(got, "|") != "correcthorse|battery staple" {
		t.Errorf("%q %v", got, err)
	}
}

func TestGrepCannotBeUsedToGuessASecret(t *testing.T) {
	b := newBox(t, map[string]string{"a.yml": `password: "Zx9Qw7Rt5Yu3"` + "\n"})
	b.wantLines(b.callTool("grep", `{"pattern":"Zx9"}`), "[0 matches in 0 files; 1 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"\\[masked\\]"}`), `a.yml:1:password: "[masked]"`, "[1 matches in 1 files; 1 files searched]")
}

func TestSchemasFitInFewTokens(t *testing.T) {
	total := 0
	for _, s := range newBox(t, nil).set.Specs() {
		total += len(s.Description) + len(s.Schema)
	}
	if total > 2400 {
		t.Errorf("the specs are %d bytes", total)
	}
}
