package runfile_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
)

// sample is a file of two logs and two blobs, one of several parts.
func sample() runfile.File {
	large := bytes.Repeat([]byte("0123456789abcdef"), 40_000)
	return runfile.File{
		Header: runfile.Header{Troupe: runfile.Kind, Version: 1, Run: "r1", WrittenBy: "0.1.0", State: "finished", Logs: 2, Entries: 3, Result: []byte(`{"type":"result"}`)},
		Entries: []mailbox.Message{
			{To: "r1.super", Place: 1, At: 1000, Data: []byte("one")}, {To: "r1.super", Place: 4, At: 1002, Nanos: 5, Data: []byte("two")},
			{To: "r1.root@gpu", Place: 2, At: 1001, Data: []byte("three")},
		},
		Blobs: map[string][]byte{mailbox.BlobRef([]byte("small")): []byte("small"), mailbox.BlobRef(large): large},
	}
}

func write(t testing.TB, f runfile.File) string {
	t.Helper()
	var b bytes.Buffer
	if err := runfile.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestWhatIsWrittenIsRead: a file is read as it was written.
func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	want := sample()
	got, err := runfile.Read(strings.NewReader(write(t, want)))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v\n%+v", err, got.Header, want.Header)
	}
}

// sealed replaces the last line by one that fits the lines before it.
func sealed(text string) string {
	lines := strings.SplitAfter(text, "\n")
	body := strings.Join(lines[:len(lines)-2], "")
	sum := sha256.Sum256([]byte(body))
	return body + fmt.Sprintf("{\"end\":true,\"lines\":%d,\"sha256\":%q}\n", len(lines)-2, hex.EncodeToString(sum[:]))
}

// TestHostileFiles: what is wrong with a file is said with its line.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	good := write(t, sample())
	replace := func(old, new string) string { return sealed(strings.Replace(good, old, new, 1)) }
	lines := strings.SplitAfter(good, "\n")
	for _, c := range []struct{ name, text, told string }{
		{"nothing", "", "line 0: not a run file: the file is empty"},
		{"no JSON", "hello\n", "line 1: not a run file: the file does not begin with"},
		{"another document", `{"form":1}` + "\n", "line 1: not a run file: the file does not begin with"},
		{"a newer version", replace(`"version":1`, `"version":2`), "line 1: a run file of a newer version: version 2"},
		{"an unknown key", replace(`"state"`, `"stat"`), `line 1: not a run file: json: unknown field "stat"`},
		{"a run with a dot", replace(`"run":"r1"`, `"run":"r1.x"`), `run is "r1.x"`},
		{"a run with a wildcard", replace(`"run":"r1"`, `"run":"*"`), `run is "*"`},
		{"a log of another run", replace(`"log":"r1.root@gpu"`, `"log":"r2.root"`), `line 4: not a run file: log "r2.root" is not one of run r1`},
		{"a log with a wildcard", replace(`"log":"r1.root@gpu"`, `"log":"r1.>"`), `line 4: not a run file: log is "r1.>"`},
		{"a log with two pools", replace(`"log":"r1.root@gpu"`, `"log":"r1.root@a@b"`), `line 4: not a run file: log is`},
		{"places that go back", replace(`"place":4`, `"place":1`), "line 3: not a run file: place 1 of r1.super follows place 1"},
		{"an empty entry", replace(`"data":"b25l"`, `"data":""`), "line 2: not a run file: an entry of 0 bytes"},
		{"a negative stamp", replace(`"at":1000`, `"at":-1`), "the stamp is negative"},
		{"more entries than said", replace(`"entries":3`, `"entries":2`), "line 4: not a run file: more entries than the header says"},
		{"fewer entries than said", replace(`"entries":3`, `"entries":4`), "3 entries of 2 logs, the header says 4 of 2"},
		{"too many entries", replace(`"entries":3`, `"entries":3000000`), "3000000 entries, at most"},
		{"more logs than said", replace(`"logs":2`, `"logs":1`), "more logs than the header says"},
		{"another blob", replace(`"data":"c21hbGw="`, `"data":"c21hbEw="`), "is not what its name says"},
		{"a part that is missing", sealed(strings.Join(append(append([]string{}, lines[:5]...), lines[6:]...), "")), "does not follow the one before"},
		{"no end", strings.Join(lines[:len(lines)-2], ""), "the file was cut"},
		{"half a line", good[:len(good)/2], "line"},
		{"a line after the end", good + lines[1], "there is a line after the end"},
		{"a changed byte", strings.Replace(good, `"place":4`, `"place":5`, 1), "the file was changed"},
		{"a line of another sort", sealed(lines[0] + "{\"x\":1}\n" + lines[len(lines)-2]), "line 2: not a run file: it is neither an entry nor a blob nor the end"},
		{"a line without an end", lines[0] + strings.Repeat("x", runfile.LineBytesMax+1), "line 2: not a run file: the line has more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := runfile.Read(strings.NewReader(c.text))
			if err == nil || !strings.Contains(err.Error(), c.told) || !errors.Is(err, runfile.ErrFile) && !errors.Is(err, runfile.ErrNewer) {
				t.Errorf("%v, expected %q", err, c.told)
			}
		})
	}
}

// FuzzRead: no input ends the reader otherwise than with a file or an error; a file that is read is written
// and read again as the same.
func FuzzRead(f *testing.F) {
	good := write(f, runfile.File{Header: runfile.Header{Run: "r1", State: "parked"}, Entries: sample().Entries, Blobs: map[string][]byte{mailbox.BlobRef([]byte("x")): []byte("x")}})
	f.Add([]byte(good))
	f.Add([]byte(good[:len(good)/2]))
	recorded, err := os.ReadFile("../replay/testdata/runs/0.1.0/parked_for_a_person.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(recorded)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, []byte(resealed(string(data)))} {
			got, err := runfile.Read(bytes.NewReader(data))
			if err != nil {
				if !errors.Is(err, runfile.ErrFile) && !errors.Is(err, runfile.ErrNewer) {
					t.Fatalf("an error of no kind: %v", err)
				}
				continue
			}
			if kept := runfile.Cut(got.Entries, got.Entries); len(kept) > len(got.Entries) {
				t.Fatalf("the cut has %d of %d entries", len(kept), len(got.Entries))
			}
			if redacted, err := runfile.Redact(got); err != nil || len(redacted.Entries) != len(got.Entries) {
				t.Fatalf("redacted: %v", err)
			}
			again, err := runfile.Read(strings.NewReader(write(t, got)))
			if err != nil || !reflect.DeepEqual(got.Entries, again.Entries) || len(got.Blobs) != len(again.Blobs) {
				t.Fatalf("%v", err)
			}
		}
	})
}

// resealed gives a changed file a hash that fits, so that the reader sees what is behind the hash.
func resealed(text string) string {
	if strings.Count(text, "\n") < 2 {
		return text
	}
	return sealed(text)
}
