package message

import (
	"strings"
	"testing"
)

func TestCallIDsAreThoseThatAllProvidersTake(t *testing.T) {
	for id, want := range map[string]bool{
		"a": true, "call_1-B": true, "toolu_01A09": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "a b": false, "a.b": false, "a\n": false, "é": false, "a\x00": false,
	} {
		if got := isCallID(id); got != want {
			t.Errorf("%q: %t", id, got)
		}
	}
}
