package runfile_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/troupe-run/troupe/internal/runfile"
)

var (
	namedLine  = regexp.MustCompile(`^runfile: line (\d+): `)
	namedLines = regexp.MustCompile(`\(lines (\d+) to (\d+)\), or in entry \d+ \(line (\d+)\)`)
	unknown    = []byte("do not tell where")
	// contradicts are errors about two lines, of which the later one is named.
	contradicts = regexp.MustCompile(`follows place|more logs than the header says|is not one of run|the header says`)
)

// TestAChangedByteIsLocated: the error about a changed byte of a run file names the line, or the lines of which one was
// changed, or says that this cannot be known. It names another line only where two lines contradict each other.
func TestAChangedByteIsLocated(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../replay/testdata/runs/*/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatal(len(paths), err)
	}
	random := rand.New(rand.NewPCG(18, 7))
	exact, among, untold, later := 0, 0, 0, 0
	for range 3000 {
		good, err := os.ReadFile(paths[random.IntN(len(paths))])
		if err != nil {
			t.Fatal(err)
		}
		at := random.IntN(len(good))
		if good[at] == '\n' {
			continue
		}
		changed := 1 + bytes.Count(good[:at], []byte("\n"))
		bad := bytes.Clone(good)
		bad[at] ^= 1 << random.IntN(7)
		_, err = runfile.Read(bytes.NewReader(bad))
		if err == nil {
			t.Fatalf("byte %d was changed, and the file is read", at)
		}
		text := err.Error()
		line := 0
		if m := namedLine.FindStringSubmatch(text); m != nil {
			line, _ = strconv.Atoi(m[1])
		}
		switch m := namedLines.FindStringSubmatch(text); {
		case bytes.Contains([]byte(text), unknown):
			untold++
		case m != nil:
			from, _ := strconv.Atoi(m[1])
			to, _ := strconv.Atoi(m[2])
			carrier, _ := strconv.Atoi(m[3])
			if (changed < from || changed > to) && changed != carrier {
				t.Errorf("line %d was changed: %s", changed, text)
			}
			among++
		case line == changed || bad[at] == '\n' && line == changed+1:
			exact++
		case line > changed && contradicts.MatchString(text):
			later++
		default:
			t.Errorf("line %d was changed (%q became %q): %s", changed, good[at], bad[at], text)
		}
	}
	t.Logf("%d changes were named by their line, %d by lines of which one was changed, %d by a later line that contradicts it, of %d the message says that it cannot be known", exact, among, later, untold)
	if exact == 0 || among == 0 || untold > (exact+among)/4 {
		t.Errorf("%d, %d, %d", exact, among, untold)
	}
}
