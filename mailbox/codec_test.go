package mailbox_test

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/troupe-run/troupe/mailbox"
)

// factBody is a fact of the usual sort.
type factBody struct {
	Call   string            `msgpack:"c"`
	Turn   int               `msgpack:"t,omitempty"`
	Text   string            `msgpack:"x,omitempty"`
	Parts  []bodyPart        `msgpack:"p,omitempty"`
	Labels map[string]string `msgpack:"l,omitempty"`
	Counts map[string]int    `msgpack:"n,omitempty"`
}

type bodyPart struct {
	Kind string `msgpack:"k"`
	Text string `msgpack:"x,omitempty"`
	Data []byte `msgpack:"d,omitempty"`
}

func typicalEntry(t testing.TB) mailbox.Entry {
	t.Helper()
	raw, err := mailbox.Marshal(factBody{
		Call: "root-3-1", Turn: 3, Text: strings.Repeat("words ", 20),
		Parts:  []bodyPart{{Kind: "text", Text: "one"}, {Kind: "text", Text: "two"}},
		Labels: map[string]string{"path": "a/b.go", "line": "12"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return mailbox.Entry{
		Form: mailbox.Form, From: mailbox.At("01k9z0000000000000000000aa", "root"),
		Epoch: mailbox.Epoch{Lease: 912, Start: 2}, Start: "n4zq7c1d", Floor: 41,
		Hash:  bytes.Repeat([]byte{7}, 16),
		Items: []mailbox.Item{{ID: "01k9z!returned.root-3-1.912.2", Kind: "returned", Body: raw}},
	}
}

func TestEncodeDecode(t *testing.T) {
	for name, e := range map[string]mailbox.Entry{
		"typical": typicalEntry(t),
		"empty":   {Form: 1},
		"letters": {Form: 1, From: "r.a", Items: []mailbox.Item{
			{N: 1, Kind: "a", Body: []byte{0x80}}, {N: math.MaxUint64, I: math.MinInt32, Kind: "b"}, {N: 300, I: -1, Kind: ""}}},
		"long": {Form: 1, Start: strings.Repeat("s", 40), Hash: bytes.Repeat([]byte{1}, 70_000),
			Items: []mailbox.Item{{ID: strings.Repeat("d", 300), Kind: strings.Repeat("k", 66_000), Body: []byte{0xc3}}}},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := mailbox.Encode(e)
			if err != nil {
				t.Fatal(err)
			}
			got, err := mailbox.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(e, got); d != "" {
				t.Error(d)
			}
			// The struct tags and the code by hand say the same.
			var lib mailbox.Entry
			if err := msgpack.Unmarshal(data, &lib); err != nil {
				t.Fatal(err)
			}
			for i := range lib.Items {
				if bytes.Equal(lib.Items[i].Body, []byte{0xc0}) {
					lib.Items[i].Body = nil
				}
			}
			if len(lib.Items) == 0 {
				lib.Items = nil
			}
			if d := cmp.Diff(e, lib); d != "" {
				t.Errorf("the library reads something else: %s", d)
			}
		})
	}
}

func TestDecodeReadsTheLibrarysEncoding(t *testing.T) {
	e := typicalEntry(t)
	data, err := msgpack.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	got, err := mailbox.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(e, got); d != "" {
		t.Error(d)
	}
}

// TestCodecWritesEveryFieldOfAnEntry fails when somebody adds a field that the code by hand does not know.
func TestCodecWritesEveryFieldOfAnEntry(t *testing.T) {
	for typ, n := range map[reflect.Type]int{
		reflect.TypeFor[mailbox.Entry](): 7, reflect.TypeFor[mailbox.Item](): 5, reflect.TypeFor[mailbox.Epoch](): 2,
	} {
		if typ.NumField() != n {
			t.Errorf("%s has %d fields; codec.go writes and reads %d", typ, typ.NumField(), n)
		}
	}
}

// hostile are inputs that end the process inside the library, or that it accepts.
var hostile = map[string]struct {
	data string
	err  error
}{
	"array32":        {"\xdd\xff\xff\xff\xff", mailbox.ErrLength},
	"map32":          {"\xdf\xff\xff\xff\xff", mailbox.ErrLength},
	"bin32":          {"\xc6\xff\xff\xff\xff", mailbox.ErrLength},
	"str32":          {"\xdb\xff\xff\xff\xff", mailbox.ErrLength},
	"array16":        {"\xdc\xff\xff", mailbox.ErrLength},
	"deep":           {strings.Repeat("\x91", 100_000) + "\xc0", mailbox.ErrDepth},
	"deep maps":      {strings.Repeat("\x81\xa0", 33) + "\xc0", mailbox.ErrDepth},
	"many":           {"\xdd\x00\x00\xff\xff" + strings.Repeat("\x01", 0xffff), mailbox.ErrElements},
	"trailing":       {"\x80\xc0", mailbox.ErrTrailing},
	"two keys":       {"\x82\xa1a\x01\xa1a\x02", mailbox.ErrDuplicate},
	"key of an int":  {"\x81\x01\x02", mailbox.ErrMalformed},
	"key not utf-8":  {"\x81\xa1\xff\x02", mailbox.ErrMalformed},
	"time":           {"\xd6\xff\x00\x00\x00\x00", mailbox.ErrMalformed},
	"ext32":          {"\xc9\xff\xff\xff\xff\x01", mailbox.ErrMalformed},
	"never used":     {"\xc1", mailbox.ErrMalformed},
	"nothing":        {"", mailbox.ErrMalformed},
	"cut off":        {"\x81\xa1", mailbox.ErrLength},
	"cut off number": {"\xcf\x00", mailbox.ErrLength},
}

func TestHostileBytesAreRejected(t *testing.T) {
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			data := []byte(c.data)
			if err := mailbox.Check(data); !errors.Is(err, c.err) || !errors.Is(err, mailbox.ErrMalformed) {
				t.Errorf("Check: %v, want %v", err, c.err)
			}
			if _, err := mailbox.Decode(data); !errors.Is(err, mailbox.ErrMalformed) {
				t.Errorf("Decode: %v", err)
			}
			var v any
			if err := mailbox.Unmarshal(data, &v); len(data) > 0 && !errors.Is(err, mailbox.ErrMalformed) {
				t.Errorf("Unmarshal: %v", err)
			}
			e := mailbox.Entry{Form: 1, Items: []mailbox.Item{{Kind: "k", Body: data}}}
			if _, err := mailbox.Encode(e); len(data) > 0 && !errors.Is(err, mailbox.ErrMalformed) {
				t.Errorf("Encode: %v", err)
			}
		})
	}
}

func TestDuplicateAmongMany(t *testing.T) {
	data := []byte{0xde, 0, 40}
	for i := range 40 {
		data = append(data, 0xa1, byte('0'+i), 0x01)
	}
	if err := mailbox.Check(data); err != nil {
		t.Fatal(err)
	}
	data[3+39*3+1] = '7'
	if err := mailbox.Check(data); !errors.Is(err, mailbox.ErrDuplicate) {
		t.Fatal(err)
	}
}

func TestEntriesOfOtherShapesAreRejected(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		err  error
	}{
		"newer form":         {"\x83\xa1v\x02\xa1z\xc0\xa1m\x90", mailbox.ErrForm},
		"newer form, last":   {"\x82\xa1z\x81\xa1a\x92\x01\x02\xa1v\x02", mailbox.ErrForm},
		"form 0":             {"\x82\xa1v\x00\xa1m\x90", mailbox.ErrMalformed},
		"negative form":      {"\x82\xa1v\xff\xa1m\x90", mailbox.ErrMalformed},
		"no form":            {"\x81\xa1m\x90", mailbox.ErrMalformed},
		"no items":           {"\x81\xa1v\x01", mailbox.ErrMalformed},
		"unknown key":        {"\x83\xa1v\x01\xa1z\x01\xa1m\x90", mailbox.ErrMalformed},
		"negative floor":     {"\x83\xa1v\x01\xa1l\xff\xa1m\x90", mailbox.ErrMalformed},
		"items of ints":      {"\x82\xa1v\x01\xa1m\x91\x01", mailbox.ErrMalformed},
		"item without body":  {"\x82\xa1v\x01\xa1m\x91\x81\xa1k\xa0", mailbox.ErrMalformed},
		"unknown epoch key":  {"\x83\xa1v\x01\xa1e\x81\xa1q\x01\xa1m\x90", mailbox.ErrMalformed},
		"unknown item key":   {"\x82\xa1v\x01\xa1m\x91\x83\xa1k\xa0\xa1b\xc0\xa1q\x01", mailbox.ErrMalformed},
		"an array":           {"\x90", mailbox.ErrMalformed},
		"ordinary, reversed": {"\x82\xa1m\x91\x82\xa1b\xc0\xa1k\xa1x\xa1v\xd3\x00\x00\x00\x00\x00\x00\x00\x01", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := mailbox.Decode([]byte(c.data)); !errors.Is(err, c.err) {
				t.Errorf("got %v, want %v", err, c.err)
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	e := mailbox.Entry{Form: 1, Hash: make([]byte, mailbox.EntryBytesMax)}
	if _, err := mailbox.Encode(e); !errors.Is(err, mailbox.ErrTooLarge) {
		t.Error(err)
	}
	e.Hash = make([]byte, 3*mailbox.EntryBytesMax)
	if _, err := mailbox.Encode(e); !errors.Is(err, mailbox.ErrTooLarge) {
		t.Error(err)
	}
	if _, err := mailbox.Decode(make([]byte, mailbox.EntryBytesMax+1)); !errors.Is(err, mailbox.ErrTooLarge) {
		t.Error(err)
	}
	if _, err := mailbox.Marshal(strings.Repeat("x", mailbox.EntryBytesMax)); !errors.Is(err, mailbox.ErrTooLarge) {
		t.Error(err)
	}
}

func TestMarshal(t *testing.T) {
	v := factBody{Call: "c", Counts: map[string]int{}, Labels: map[string]string{}}
	for i := range 30 {
		v.Counts[string(rune('a'+i))] = i * 1000
	}
	first, err := mailbox.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		again, err := mailbox.Marshal(v)
		if err != nil || !bytes.Equal(first, again) {
			t.Fatalf("maps in random order, or %v", err)
		}
	}
	var got factBody
	if err := mailbox.Unmarshal(first, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(v.Counts, got.Counts); d != "" {
		t.Error(d)
	}
	for name, v := range map[string]any{
		"time": time.Unix(0, 0), "int keys": map[int]string{1: "x"}, "deep": nestedValue(40),
	} {
		if _, err := mailbox.Marshal(v); !errors.Is(err, mailbox.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := mailbox.Unmarshal(nil, &got); err != nil {
		t.Errorf("no body: %v", err)
	}
	if err := mailbox.Unmarshal([]byte{0x01}, &got); !errors.Is(err, mailbox.ErrMalformed) {
		t.Errorf("a number for a struct: %v", err)
	}
}

func nestedValue(depth int) any {
	var v any = 1
	for range depth {
		v = []any{v}
	}
	return v
}

// bytesAllocated is what f allocates, in bytes.
func bytesAllocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

func allocationBound(input int) int { return mailbox.AllocFactor*input + mailbox.AllocBase }

// TestUnmarshalAllocates gives the dearest inputs that Check lets through to
// the targets that cost most.
func TestUnmarshalAllocates(t *testing.T) {
	array := func(n int, elem string) []byte {
		return append([]byte{0xdc, byte(n >> 8), byte(n)}, strings.Repeat(elem, n)...)
	}
	keys := func(n int, value string) []byte {
		b := []byte{0xde, byte(n >> 8), byte(n)}
		for i := range n {
			b = append(append(b, 0xa2, byte('0'+i/64), byte('0'+i%64)), value...)
		}
		return b
	}
	targets := map[string]func() any{
		"structs": func() any { return new([]factBody) },
		"any":     func() any { return new(any) },
		"map":     func() any { return new(map[string]any) },
		"strings": func() any { return new([]string) },
	}
	inputs := map[string]func(n int) []byte{
		"nils":    func(n int) []byte { return array(n, "\xc0") },
		"maps":    func(n int) []byte { return array(n, "\x80") },
		"strings": func(n int) []byte { return array(n, "\xa1x") },
		"small":   func(n int) []byte { return array(n, "\x81\xa1c\xa0") },
		"keys":    func(n int) []byte { return keys(min(n, 4000), "\xc0") },
		"nested":  func(n int) []byte { return keys(min(n, 4000), "\x81\xa1a\xa1b") },
		"text":    func(n int) []byte { return array(n/100+1, "\xda\x01\x00"+strings.Repeat("x", 256)) },
	}
	for name, input := range inputs {
		accepted := 0
		for n := 1; n < 16_000; n = n*5/4 + 1 {
			data := input(n)
			if mailbox.Check(data) != nil {
				continue
			}
			accepted++
			for target, fresh := range targets {
				v, most := fresh(), allocationBound(len(data))
				if name == "strings" && target == "structs" {
					// The library makes the slice, twice, before it finds that a
					// string is no struct; only ElementsMax stands against that.
					most += 2 * n * int(unsafe.Sizeof(factBody{}))
				}
				if got := bytesAllocated(func() { _ = mailbox.Unmarshal(data, v) }); got > most {
					t.Errorf("%s × %d (%d bytes) into %s: %d bytes allocated, bound %d", name, n, len(data), target, got, most)
				}
			}
		}
		if accepted == 0 {
			t.Errorf("%s: nothing was accepted", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range hostile {
		f.Add([]byte(c.data))
	}
	if data, err := mailbox.Encode(typicalEntry(f)); err == nil {
		f.Add(data)
	}
	f.Add([]byte("\x82\xa1m\x91\x82\xa1b\xc0\xa1k\xa1x\xa1v\x01"))
	f.Add([]byte("\x83\xa1v\x02\xa1z\xc0\xa1m\x90"))
	f.Add(append([]byte("\x82\xa1v\x01\xa1m\xdc\x03\x00"), strings.Repeat("\x82\xa1k\xa0\xa1b\xc0", 0x300)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var e mailbox.Entry
		var err error
		if got := bytesAllocated(func() { e, err = mailbox.Decode(data) }); got > allocationBound(len(data)) {
			t.Errorf("%d bytes in, %d allocated", len(data), got)
		}
		var v any
		_ = mailbox.Unmarshal(data, &v)
		if err != nil {
			return
		}
		again, err := mailbox.Encode(e)
		if err != nil {
			t.Fatalf("accepted, but cannot be written: %v", err)
		}
		back, err := mailbox.Decode(again)
		if err != nil {
			t.Fatalf("written, but cannot be read: %v", err)
		}
		if d := cmp.Diff(e, back); d != "" {
			t.Fatal(d)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	e := typicalEntry(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := mailbox.Encode(e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	data, err := mailbox.Encode(typicalEntry(b))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := mailbox.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWhole is what an entry of about 300 bytes costs with its body, both ways.
func BenchmarkWhole(b *testing.B) {
	e := typicalEntry(b)
	var v factBody
	if err := mailbox.Unmarshal(e.Items[0].Body, &v); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		e.Items[0].Body, _ = mailbox.Marshal(&v)
		data, err := mailbox.Encode(e)
		if err != nil {
			b.Fatal(err)
		}
		back, err := mailbox.Decode(data)
		if err != nil {
			b.Fatal(err)
		}
		var got factBody
		if err := mailbox.Unmarshal(back.Items[0].Body, &got); err != nil {
			b.Fatal(err)
		}
	}
}
