package intern

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

func TestEqualLongTextsShareOneCopy(t *testing.T) {
	long := strings.Repeat("x", BytesMin)
	var first, second Texts
	a := first.Share(strings.Clone(long))
	for range 3 {
		runtime.GC() // a text that is held is shared with those who come later
	}
	b := second.Share(strings.Clone(long))
	if a != long || b != long {
		t.Fatalf("the text changed: %q, %q", a, b)
	}
	if unsafe.StringData(a) != unsafe.StringData(b) {
		t.Error("two equal texts have two copies")
	}
	runtime.KeepAlive(first)
}

func TestShortTextsAreReturnedAsTheyAre(t *testing.T) {
	short := strings.Repeat("x", BytesMin-1)
	var texts Texts
	if got := texts.Share(short); unsafe.StringData(got) != unsafe.StringData(short) || len(texts) != 0 {
		t.Error("a short text was copied")
	}
}
