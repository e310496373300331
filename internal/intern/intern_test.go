package intern

import (
	"strings"
	"testing"
	"unsafe"
)

func TestEqualLongTextsShareOneCopy(t *testing.T) {
	long := strings.Repeat("x", BytesMin)
	a, b := Text(strings.Clone(long)), Text(strings.Clone(long))
	if a != long || b != long {
		t.Fatalf("the text changed: %q, %q", a, b)
	}
	if unsafe.StringData(a) != unsafe.StringData(b) {
		t.Error("two equal texts have two copies")
	}
}

func TestShortTextsAreReturnedAsTheyAre(t *testing.T) {
	short := strings.Repeat("x", BytesMin-1)
	if got := Text(short); unsafe.StringData(got) != unsafe.StringData(short) {
		t.Error("a short text was copied")
	}
}
