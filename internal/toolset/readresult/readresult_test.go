package readresult_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/troupe-run/troupe/internal/test/blobs"

	"github.com/troupe-run/troupe/internal/toolset/readresult"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/tool"
)

// newReader calls the tool as an agent of a run does.
func newReader(t *testing.T, blobs mailbox.Blobs) func(run, args string) tool.Result {
	t.Helper()
	read, err := readresult.Reader(blobs)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(read)
	if err != nil {
		t.Fatal(err)
	}
	return func(run, args string) tool.Result {
		return set.Call(t.Context(), readresult.Name, tool.Call{Run: run, Args: []byte(args)})
	}
}

var more = regexp.MustCompile(`\n\[more: offset (\d+)\]$`)

// Whatever the size of the parts, they are whole characters, and put together
// they are the result.
//
//behaviour:shows C7
func TestAKeptResultIsReadBackInParts(t *testing.T) {
	blobs := blobs.New()
	text := strings.Repeat("plain ünïcödé 日本語 🎭\n", 3000)
	ref, err := blobs.Put(t.Context(), "run", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	read := newReader(t, blobs)
	for _, limit := range []int{0, 1, 4097, 1 << 30} {
		got, offset, calls := "", 0, 0
		for {
			r := read("run", fmt.Sprintf(`{"ref":%q,"offset":%d,"limit":%d}`, ref, offset, limit))
			head := fmt.Sprintf("[bytes %d to ", offset)
			if r.Error || !strings.HasPrefix(r.Text, head) || !utf8.ValidString(r.Text) || r.Whole != "" {
				t.Fatalf("limit %d, offset %d: %+v", limit, offset, r)
			}
			_, part, _ := strings.Cut(r.Text, "]\n")
			next := more.FindStringSubmatch(part)
			if next == nil {
				got += part
				break
			}
			got += strings.TrimSuffix(part, next[0])
			if offset, err = strconv.Atoi(next[1]); err != nil || len(got) != offset {
				t.Fatalf("limit %d: %d bytes, then offset %d", limit, len(got), offset)
			}
			if calls++; limit == 1 && calls == 50 {
				got = text // four bytes at a time are enough to see
				break
			}
		}
		if got != text {
			t.Errorf("limit %d: %d bytes of %d", limit, len(got), len(text))
		}
	}
	if r := read("run", fmt.Sprintf(`{"ref":%q,"offset":%d}`, ref, len(text))); r.Error || !strings.HasPrefix(r.Text, fmt.Sprintf("[bytes %d to %d of", len(text), len(text))) {
		t.Errorf("at the end: %+v", r)
	}
	if r := read("run", fmt.Sprintf(`{"ref":%q,"offset":%d,"limit":9}`, ref, strings.Index(text, "日")+1)); r.Error || !strings.Contains(r.Text, "本語") || strings.Contains(r.Text, "日") {
		t.Errorf("in the middle of a character: %+v", r)
	}
}

// What a model makes up is answered with an error that says what is wrong.
func TestUnknownReferenceIsAnError(t *testing.T) {
	blobs := blobs.New()
	ref, err := blobs.Put(t.Context(), "other", []byte("of another run"))
	if err != nil {
		t.Fatal(err)
	}
	read := newReader(t, blobs)
	for args, want := range map[string]string{
		`{}`:         "ref",
		`{"ref":""}`: "64 hex digits", `{"ref":"../../etc/passwd"}`: "64 hex digits", `{"ref":"` + strings.ToUpper(ref) + `"}`: "64 hex digits",
		`{"ref":"` + ref + `"}`:                                               "no result of this run",
		`{"ref":"` + ref + `","offset":-1}`:                                   "must not be negative",
		`{"ref":"` + ref + `","limit":-5}`:                                    "must not be negative",
		`{"ref":"` + ref + `","offset":1e300}`:                                "do",
		`{"ref":"` + ref + `","path":"x"}`:                                    "path",
		`{"ref":["` + ref + `"]}`:                                             "schema",
		`{"ref":"` + ref + "\\u0000" + `"}`:                                   "64 hex digits",
		`{"ref":"` + strings.Repeat("f", 100_000) + `","offset":0,"limit":1}`: "64 hex digits",
	} {
		if r := read("run", args); !r.Error || !strings.Contains(r.Text, want) || len(r.Text) > 1000 {
			t.Errorf("%.100s: %.300s", args, r.Text)
		}
	}
	if r := read("other", `{"ref":"`+ref+`","offset":15}`); !r.Error || !strings.Contains(r.Text, "14 bytes") {
		t.Errorf("beyond the end: %+v", r)
	}
	broken := newReader(t, failingBlobs{blobs})
	if r := broken("other", `{"ref":"`+ref+`"}`); !r.Error || !strings.Contains(r.Text, "cannot be read now") {
		t.Errorf("out of reach: %+v", r)
	}
}

type failingBlobs struct{ mailbox.Blobs }

func (failingBlobs) Get(context.Context, string, string, int64, int64) ([]byte, int64, error) {
	return nil, 0, errors.New("no leader")
}
