package runspec

import (
	"slices"
	"testing"
)

func TestToolPatternsAreExpanded(t *testing.T) {
	t.Parallel()
	tools := []string{"mcp__a__x", "mcp__a__y", "mcp__b__x"}
	for _, c := range []struct{ words, want []string }{
		{nil, nil}, {[]string{}, []string{}}, {[]string{"mcp__a"}, tools[:2]}, {[]string{"read_file", "mcp__b__*", "mcp__b__x"}, []string{"read_file", "mcp__b__x"}},
		{[]string{"mcp__c"}, []string{"mcp__c"}},
	} {
		if got := expandNames(c.words, tools); !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%v: %v", c.words, got)
		}
	}
}
