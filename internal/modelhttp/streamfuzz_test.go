package modelhttp_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmaxmax/go-sse"
)

// FuzzStreamBody: whatever bytes a server sends, in pieces of any length, the events are those
// that the parser reads of the whole stream.
func FuzzStreamBody(f *testing.F) {
	for _, stream := range []string{
		"event: a\ndata: 1\n\ndata: [DONE]\n\n", "data: 1\r\n\r\ndata: 2\r\r\n\n", " \n\ndata: 1\n\n \r\n ", "\ufeffdata: 1\n\n\x00\n\n",
		":\n\n\n\r\n\r\r\n\ndata\n\ndata:\n\nid: 1\nretry: x\n\n",
	} {
		for _, size := range []uint8{1, 3, 255} {
			f.Add([]byte(stream), size)
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		var want, pieces []string
		for e, err := range sse.Read(strings.NewReader(string(stream)), nil) {
			if err != nil {
				return // an event is longer than the limit that the parser has by default
			}
			if e.Data != "" {
				want = append(want, e.Type+"|"+e.Data)
			}
		}
		for rest, n := string(stream), max(int(size), 1); rest != ""; rest = rest[min(n, len(rest)):] {
			pieces = append(pieces, rest[:min(n, len(rest))])
		}
		got, err := streamEvents(t, pieces...)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
	})
}
