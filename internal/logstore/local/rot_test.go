package local

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/mailbox"
)

const rotLogs, rotEntries = 8, 20

func rotText(log, n int) string {
	return fmt.Sprintf("entry %02d of log %d, which is long enough to be found", n, log)
}

func rotLog(log int) mailbox.Address { return mailbox.At("run", fmt.Sprint(log)) }

// fillLogs appends to some logs in turn.
func fillLogs(t *testing.T, s *Store) {
	t.Helper()
	for n := range rotEntries {
		for log := range rotLogs {
			if _, err := mailbox.Put(t.Context(), s, rotLog(log), []byte(rotText(log, n))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func openRotten(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Dir: dir, segmentBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// readRotten reads a log; entries that were lost are "".
func readRotten(s *Store, t *testing.T, log int) (texts []string, err error) {
	err = s.Read(t.Context(), rotLog(log), 0, 0, func(m mailbox.Message) error {
		texts = append(texts, string(m.Data))
		return nil
	})
	return texts, err
}

// flipBits turns over a bit in every copy of a text in the files of a directory.
func flipBits(t *testing.T, dir, text string, offset int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	found := false
	for _, path := range files {
		var data []byte
		if data, err = os.ReadFile(path); err != nil {
			break
		}
		for at := 0; ; at++ {
			i := bytes.Index(data[at:], []byte(text))
			if i < 0 {
				break
			}
			at += i
			data[at+offset] ^= 4
			found = true
		}
		if err = os.WriteFile(path, data, fileMode); err != nil {
			break
		}
	}
	if err != nil || !found {
		t.Fatalf("%q was not found: %v", text, err)
	}
}

// TestDamagedBytesAffectOneEntryOnly: a bit of an entry turns over, in its data or before it, in the table or in the write-ahead log.
// The entry is read without data, or as a gap without data, the other entries of its log and all
// other logs as they were written, and the logs go on.
func TestDamagedBytesAffectOneEntryOnly(t *testing.T) {
	t.Parallel()
	for _, folded := range []bool{true, false} {
		for _, offset := range []int{3, -2} { // -2: in the place of the entry before it
			for _, n := range []int{0, rotEntries / 2, rotEntries - 1} {
				t.Run(fmt.Sprintf("folded %v, offset %d, entry %d", folded, offset, n), func(t *testing.T) {
					dir := t.TempDir()
					s := openRotten(t, dir)
					fillLogs(t, s)
					if folded {
						if err := s.Close(); err != nil {
							t.Fatal(err)
						}
					} else {
						s.abandon(t)
					}
					const rotten = 3
					flipBits(t, dir, rotText(rotten, n), offset)
					s = openRotten(t, dir)
					for log := range rotLogs {
						var want []string
						for i := range rotEntries {
							want = append(want, rotText(log, i))
						}
						if log == rotten {
							want[n] = ""
						}
						if got, err := readRotten(s, t, log); err != nil || !slices.Equal(got, want) {
							t.Errorf("log %d: %q, %v", log, got, err)
						}
					}
					heads := map[mailbox.Address]uint64{}
					if err := s.Heads(t.Context(), func(h mailbox.Head) error { heads[h.To] = h.Entries; return nil }); err != nil || len(heads) != rotLogs {
						t.Errorf("%v, %v", heads, err)
					}
					if _, err := mailbox.Put(t.Context(), s, rotLog(rotten), []byte("after it")); err != nil {
						t.Error(err)
					}
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// tableFlips is how many single bits TestRottenTable turns over with -local.all: half of them in
// the few pages in use, half anywhere in the file, which is mostly empty.
const tableFlips = 400

// TestRottenTable turns over single bits in the table. Whatever is read is what was
// written in its place; the process survives, and so do Append and Close.
func TestRottenTable(t *testing.T) {
	t.Parallel() // it waits for the disk
	whole := t.TempDir()
	s := openRotten(t, whole)
	fillLogs(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(filepath.Join(whole, tableName))
	if err != nil {
		t.Fatal(err)
	}
	used := usedPages(table)
	random, outcomes := rand.New(rand.NewPCG(3, 3)), map[string]int{}
	for i := range sampled(tableFlips) {
		at := random.IntN(len(table))
		if i%2 == 0 {
			at = used[random.IntN(len(used))] + random.IntN(pageBytes)
		}
		dir := t.TempDir()
		writeRotten(t, filepath.Join(dir, tableName), table, used, at, random.IntN(8))
		outcomes[useRotten(t, dir)]++
	}
	for _, o := range slices.Sorted(maps.Keys(outcomes)) {
		t.Logf("%d times: %s", outcomes[o], o)
	}
}

const pageBytes = 4096

// usedPages are the offsets of the pages that are not empty.
func usedPages(table []byte) []int {
	var used []int
	empty := make([]byte, pageBytes)
	for at := 0; at+pageBytes <= len(table); at += pageBytes {
		if !bytes.Equal(table[at:at+pageBytes], empty) {
			used = append(used, at)
		}
	}
	return used
}

// writeRotten writes a copy of the table with one bit turned over, and leaves holes for its
// empty pages: written in full, a table is megabytes of zeros.
func writeRotten(t *testing.T, path string, table []byte, used []int, at, bit int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, fileMode)
	if err == nil {
		err = f.Truncate(int64(len(table)))
	}
	for _, page := range used {
		if err == nil {
			_, err = f.WriteAt(table[page:page+pageBytes], int64(page))
		}
	}
	if err == nil {
		_, err = f.WriteAt([]byte{table[at] ^ 1<<bit}, int64(at))
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// useRotten reads and appends in a directory whose table may have rotted.
func useRotten(t *testing.T, dir string) (outcome string) {
	s, err := Open(t.Context(), Config{Dir: dir, segmentBytes: 1 << 20})
	if err != nil {
		return "refused at the start"
	}
	outcome = "not noticed, nor harmful"
	for log := range rotLogs {
		got, err := readRotten(s, t, log)
		if err != nil {
			outcome = "a read fails"
			continue
		}
		if len(got) != rotEntries || slices.Contains(got, "") {
			outcome = "entries are missing"
		}
		last := -1
		for _, text := range got {
			n, of := 0, 0
			if _, err := fmt.Sscanf(text, "entry %d of log %d", &n, &of); text != "" && (err != nil || of != log || n <= last || text != rotText(log, n)) {
				t.Errorf("log %d: %q after entry %d", log, text, last)
			}
			last = max(last, n)
		}
	}
	if _, err := mailbox.Put(t.Context(), s, "other.log", []byte(strings.Repeat("x", 1000))); err != nil {
		t.Errorf("%s, and an append fails: %v", outcome, err)
	}
	if err := s.Close(); err != nil {
		return outcome + ", and Close says so"
	}
	return outcome
}
