package prompt_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/prompt"
)

func mustCompose(t *testing.T, layers ...prompt.Layer) prompt.Prompt {
	t.Helper()
	p, err := prompt.Compose(layers)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// In whatever order layers are given, stable ones come first and the breakpoint is behind
// them (D2).
//
//behaviour:shows D2
func TestStableLayersPrecedeDynamicOnes(t *testing.T) {
	layers := []prompt.Layer{
		{Name: "date", Content: "Today is Monday.", Priority: prompt.EnvironmentPriority + 1},
		{Name: "place", Content: "You are in /srv.", Priority: prompt.EnvironmentPriority},
		{Name: "first", Content: "It is early.", Priority: prompt.DynamicPriority},
		{Name: "rules", Content: "Spend nothing.", Priority: prompt.RulesPriority},
		{Name: "last", Content: "Be kind.", Priority: prompt.DynamicPriority - 1},
		{Name: "role", Content: "You are careful.", Priority: prompt.RolePriority},
		{Name: "empty", Content: " \n", Priority: prompt.RolePriority},
	}
	want := prompt.Prompt{Stable: "You are careful.\n\nSpend nothing.\n\nBe kind.", Dynamic: "It is early.\n\nYou are in /srv.\n\nToday is Monday."}
	for range 20 {
		rand.Shuffle(len(layers), func(i, j int) { layers[i], layers[j] = layers[j], layers[i] })
		if got := mustCompose(t, layers...); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}

// An ambiguous set of layers is refused.
func TestInvalidLayersAreRefusedByName(t *testing.T) {
	for name, c := range map[string]struct {
		layers []prompt.Layer
		want   error
		says   string
	}{
		"one name twice": {[]prompt.Layer{{Name: "a"}, {Name: "a"}}, prompt.ErrLayerName, `"a"`},
		"no name":        {[]prompt.Layer{{Content: "x"}}, prompt.ErrLayerName, `""`},
	} {
		_, err := prompt.Compose(c.layers)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
