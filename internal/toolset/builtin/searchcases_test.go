//go:build unix

package builtin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/toolset/builtin"
)

// inUTF16 returns a text as UTF-16 with its mark.
func inUTF16(text string) string {
	var b strings.Builder
	for _, unit := range append([]uint16{0xfeff}, utf16.Encode([]rune(text))...) {
		b.Write([]byte{byte(unit), byte(unit >> 8)})
	}
	return b.String()
}

// TestSearchOfEachKindOfFile keeps what grep and glob answer about ignored files, links, binary files, long lines and secrets.
func TestSearchOfEachKindOfFile(t *testing.T) {
	long := strings.Repeat("-", 70_000)
	secret := strings.Repeat("Q7xZ2pL9", 5)
	b := newRepoBox(t, map[string]string{
		".gitignore": "*.log\nout/\n!keep.log\n", "sub/.gitignore": "local\n/top\n", "keep.log": "hit kept\n", "drop.log": "hit\n", "out/x": "hit\n", "sub/local": "hit\n", "sub/top": "hit\n", "sub/deep/top": "hit deep\n",
		"text": "one\r\nhit two\r\nlast hit", "empty": "", "binary": "hit\x00", "lateBinary": strings.Repeat("a", 8000) + "\x00hit\n", "wide": long + "hit\nhit" + long, "utf16": inUTF16("a\nhit ü\n"),
		"secret.yaml": "hit: 1\npassword: " + secret + " # hit\n", "a.pem": "hit\n", "key.txt": "-----BEGIN PRIVATE KEY-----\nhit" + secret + "\n-----END PRIVATE KEY-----\nhit after\n", "ä/ü.go": "hit\n",
	})
	b.linkFile("text", "link")
	b.linkFile("sub", "linked")
	b.linkFile("/etc/passwd", "outside")
	b.writeFiles(map[string]string{"up/.gitignore": "*\n"})
	b.linkFile("..", "up/here")
	b.writeFiles(map[string]string{"untracked": "hit\n"})
	b.wantLines(b.callTool("grep", `{"pattern":"hit"}`), "keep.log:1:hit kept", "key.txt:4:hit after", "lateBinary:1:"+strings.Repeat("a", 300)+" …[line clipped]",
		"secret.yaml:1:hit: 1", "secret.yaml:2:password: [masked] # hit", "sub/deep/top:1:hit deep", "text:2:hit two", "text:3:last hit", "untracked:1:hit", "utf16:2:hit ü",
		"wide:1:"+long[:300]+" …[line clipped]", "wide:2:hit"+long[:297]+" …[line clipped]", "ä/ü.go:1:hit", "[13 matches in 10 files; 14 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"\\[masked\\]|Q7xZ"}`), "a.pem:1:[masked]", "key.txt:2:[masked]", "secret.yaml:2:password: [masked] # hit", "[3 matches in 3 files; 14 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"ked] #"}`), "secret.yaml:2:password: [masked] # hit", "[1 matches in 1 files; 14 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"hit","path":"link"}`), "[0 matches in 0 files; 0 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"deep","path":"linked"}`), "[0 matches in 0 files; 0 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"hit","path":"linked/deep/top"}`), "linked/deep/top:1:hit deep", "[1 matches in 1 files; 1 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"hit","path":"up/here/text"}`), "up/here/text:2:hit two", "up/here/text:3:last hit", "[2 matches in 1 files; 1 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"hit","path":"out/x"}`), "out/x:1:hit", "[1 matches in 1 files; 1 files searched]")
	b.wantLines(b.callTool("grep", `{"pattern":"hit","path":"binary"}`), "[0 matches in 0 files; 0 files searched]")
	b.wantLines(b.callTool("glob", `{"pattern":"{link,linked,outside,empty,out/*,sub/**,ä/*}"}`), "empty", "sub/.gitignore", "sub/deep/top", "ä/ü.go", "[4 files, 24 bytes]",
		"[extensions: (none) 3 20; .go 1 4]", "[largest: sub/.gitignore 11; sub/deep/top 9; ä/ü.go 4; empty 0]")
}

// TestSearchSeesWhatHasChangedSinceTheLastOne: nothing of a search is kept for the next one.
func TestSearchSeesWhatHasChangedSinceTheLastOne(t *testing.T) {
	b := newRepoBox(t, map[string]string{"a": "hit 1\n", "d/b": "hit 1\n", "e/c": "hit 1\n", ".gitignore": ""})
	b.wantLines(b.callTool("grep", `{"pattern":"hit \\d"}`), "a:1:hit 1", "d/b:1:hit 1", "e/c:1:hit 1", "[3 matches in 3 files; 4 files searched]")
	b.writeFiles(map[string]string{"a": "hit 2\n", "d/new": "hit 3\n", "f/g/h": "hit 4\n"})
	b.wantLines(b.callTool("grep", `{"pattern":"hit \\d"}`), "a:1:hit 2", "d/b:1:hit 1", "d/new:1:hit 3", "e/c:1:hit 1", "f/g/h:1:hit 4", "[5 matches in 5 files; 6 files searched]")
	b.writeFiles(map[string]string{".gitignore": "f\n"})
	if err := os.Remove(filepath.Join(b.dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(b.dir, "e"), filepath.Join(b.dir, "moved")); err != nil {
		t.Fatal(err)
	}
	b.linkFile("moved", "e")
	b.wantLines(b.callTool("grep", `{"pattern":"hit \\d"}`), "d/b:1:hit 1", "d/new:1:hit 3", "moved/c:1:hit 1", "[3 matches in 3 files; 4 files searched]")
	b.wantLines(b.callTool("glob", `{"pattern":"**/{c,h,new}"}`), "d/new", "moved/c", "[2 files, 12 bytes]", "[extensions: (none) 2 12]", "[largest: d/new 6; moved/c 6]")
	if err := os.RemoveAll(filepath.Join(b.dir, "d")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(b.dir, "d"), 0o600); err != nil { // git still names d/b
		t.Fatal(err)
	}
	b.wantLines(b.callTool("grep", `{"pattern":"hit \\d"}`), "moved/c:1:hit 1", "[1 matches in 1 files; 2 files searched]")
	b.runGit("add", "-f", "f/g/h")
	b.wantLines(b.callTool("grep", `{"pattern":"hit 4"}`), "f/g/h:1:hit 4", "[1 matches in 1 files; 3 files searched]")
}

// TestGrepMatchesMaskedLines compares grep with the plain rule: each line is masked, in order, and then matched.
func TestGrepMatchesMaskedLines(t *testing.T) {
	patterns := []string{`mask`, `\[masked`, `ked\]`, `k`, `ed\] x`, `: \[`, `x\[`, `\]y`, `token`, `(?i)AKIA|PRIVATE`, `needle`, `needle|x*z`, `^$`, `Q7x`, `END`}
	pieces := []string{"\n", "\n", "\r\n", " ", "x", "y", "[", "]", "needle", "token", ": ", `="Q7xZ2pL9Q7xZ2pL9Q7xZ2pL9"`, "AKIA2345678923456789", "-----BEGIN PRIVATE KEY-----\n", "Q7xZ2pL9Q7xZ2pL9Q7xZ2pL9\n", "-----END PRIVATE KEY-----\n", "mask", "[masked]"}
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 24).Draw(rt, "text"), "")
		name := rapid.SampledFrom([]string{"a.go", "a.yaml", ".env", "id_rsa"}).Draw(rt, "name")
		pattern := rapid.SampledFrom(patterns).Draw(rt, "pattern")
		re, masker, want := regexp.MustCompile(pattern), redact.New(redact.Config{}).NewLineMasker(name), []string{}
		n := 0
		for line := range strings.Lines(text) {
			n++
			line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
			if masked := masker.MaskLine([]byte(line)); re.Match(masked) {
				want = append(want, fmt.Sprintf("%s:%d:%s", name, n, masked))
			}
		}
		if got := builtin.GrepText(name, pattern, text); fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("%s in %q: got %q, want %q", pattern, text, got, want)
		}
	})
}
