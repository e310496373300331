package httpapi

import (
	"encoding/base64"
	"math"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
)

// An entry is shown with its bytes whatever they are: those that are no entry, and bodies that are no JSON, have a reason.
func TestEntriesOfAnyBytesAreDescribed(t *testing.T) {
	t.Parallel()
	encode := func(body any) []byte {
		raw, err := msgpack.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, From: "r.root", Epoch: mailbox.Epoch{Lease: 7, Start: 2}, Items: []mailbox.Item{{N: 3, Kind: "x", Body: raw}}})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	deep := any("end")
	for range mailbox.DepthMax - 4 {
		deep = []any{deep}
	}
	for _, c := range []struct {
		name                string
		data                []byte
		text, problem, fact string // parts of what is described
	}{
		{"a body with a large integer and markup", encode(map[string]any{"n": uint64(math.MaxUint64), "s": "<b>"}), `"n": 18446744073709551615`, "", ""},
		{"markup as it is", encode("<script>"), `"<script>"`, "", ""},
		{"a number that JSON lacks", encode(math.NaN()), "", "", "NaN"},
		{"a deep body", encode(deep), `"end"`, "", ""},
		{"no entry", []byte("\x00\xff<script>"), "", "malformed", ""},
		{"nothing", nil, "", "malformed", ""},
	} {
		got := describeEntry(client.LogEntry{Place: 9, At: 1767323045678, Data: c.data}, true)
		if got.Place != 9 || got.TS != "2026-01-02T03:04:05.678Z" || got.Bytes != len(c.data) || got.Data != base64.StdEncoding.EncodeToString(c.data) || !strings.Contains(got.Problem, c.problem) {
			t.Errorf("%s: %+v", c.name, got)
		}
		if c.problem != "" {
			continue
		}
		if len(got.Facts) != 1 || got.From != "r.root" || got.Epoch != "7.2" {
			t.Errorf("%s: %+v", c.name, got)
			continue
		}
		if f := got.Facts[0]; f.Kind != "x" || f.Cause != 3 || !strings.Contains(f.Text, c.text) || !strings.Contains(f.Problem, c.fact) || (f.Problem == "") == (f.Text == "") {
			t.Errorf("%s: %+v", c.name, f)
		}
		if brief := describeEntry(client.LogEntry{Data: c.data}, false); brief.Data != "" || brief.Facts[0].Text != "" || brief.Facts[0].Problem != "" {
			t.Errorf("%s: without data: %+v", c.name, brief)
		}
	}
}
