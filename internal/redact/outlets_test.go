package redact

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-run/troupe/mailbox"
)

// TestOnlyTheTextsOfAnEntryAreMasked: texts and bytes at any depth,
// of any length; the same bytes always become the same.
func TestOnlyTheTextsOfAnEntryAreMasked(t *testing.T) {
	t.Parallel()
	const secret = "q8Zt3Lw0Xv7R"
	type body struct {
		Text  string            `msgpack:"t,omitempty"`
		Bytes []byte            `msgpack:"b,omitempty"`
		List  []any             `msgpack:"l,omitempty"`
		Map   map[string]string `msgpack:"m,omitempty"`
		N     int64             `msgpack:"n"`
		U     uint64            `msgpack:"u"`
		F     float64           `msgpack:"f"`
		Yes   bool              `msgpack:"y"`
		None  *int              `msgpack:"z"`
	}
	swap := func(from, to string) func(string) string {
		return func(s string) string { return strings.ReplaceAll(s, from, to) }
	}
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string {
			s := rapid.SampledFrom([]string{"", "a", "äö", strings.Repeat("x", 31), strings.Repeat("y", 255), strings.Repeat("z", 20_000)}).Draw(t, name)
			if rapid.Bool().Draw(t, name+" holds it") {
				s += secret + "after"
			}
			return s
		}
		in := body{Text: text("text"), Bytes: []byte(text("bytes")), List: []any{text("element"), int64(-3), nil, map[string]any{"k": text("deep")}},
			Map: map[string]string{"a": text("a"), "b": text("b")}, N: rapid.Int64().Draw(t, "n"), U: rapid.Uint64().Draw(t, "u"), F: 1.5, Yes: true}
		raw, err := mailbox.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, From: "run.root", Start: "s", Floor: 7, Hash: []byte{1, 2},
			Items: []mailbox.Item{{N: 3, I: 1, Kind: "k", Body: raw}, {ID: "x", Kind: "empty"}}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := rewriteEntry(data, swap(secret, "[masked]"))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(got, []byte(secret)) {
			t.Fatal("it is left")
		}
		again, err := rewriteEntry(data, swap(secret, "[masked]"))
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("the same became something else: %v", err)
		}
		e, err := mailbox.Decode(got)
		if err != nil || e.From != "run.root" || e.Start != "s" || e.Floor != 7 || len(e.Items) != 2 || e.Items[0].N != 3 || e.Items[1].ID != "x" {
			t.Fatalf("%+v, %v", e, err)
		}
		back, err := rewriteEntry(got, swap("[masked]", secret))
		if err != nil {
			t.Fatal(err)
		}
		if e, err = mailbox.Decode(back); err != nil {
			t.Fatal(err)
		}
		var same body
		if err := mailbox.Unmarshal(e.Items[0].Body, &same); err != nil {
			t.Fatal(err)
		}
		if have, err := mailbox.Marshal(same); err != nil || !bytes.Equal(have, raw) {
			t.Fatalf("there and back is not the same: %v", err)
		}
	})
}

func TestUndecodableEntryIsNotRewritten(t *testing.T) {
	t.Parallel()
	if _, err := rewriteEntry([]byte{0xdd, 0xff, 0xff, 0xff, 0xff}, strings.ToUpper); err == nil {
		t.Error("it was taken")
	}
}
