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

func TestChildLayerReplacesItsParent(t *testing.T) {
	base := prompt.Layer{Name: "base", Content: "Be brief.", Priority: prompt.RolePriority}
	house := prompt.Layer{Name: "house", Content: "Speak German.", Parent: "base", Priority: prompt.RolePriority}
	if got := mustCompose(t, base, house); got.Stable != "Speak German." {
		t.Errorf("replaced: %q", got.Stable)
	}
	house.Merge = true
	team := prompt.Layer{Name: "team", Content: "Say you.", Parent: "house", Merge: true, Priority: prompt.RolePriority}
	if got := mustCompose(t, team, base, house); got.Stable != "Be brief.\n\nSpeak German.\n\nSay you." {
		t.Errorf("merged: %q", got.Stable)
	}
	house.Merge, team.Merge = true, false
	if got := mustCompose(t, team, base, house); got.Stable != "Say you." {
		t.Errorf("replaced with all that the parent keeps: %q", got.Stable)
	}
	house.Merge, team.Merge = false, true
	if got := mustCompose(t, team, base, house); got.Stable != "Speak German.\n\nSay you." {
		t.Errorf("merged with one that replaces: %q", got.Stable)
	}
}

func TestLayersAreChosenByTheirTags(t *testing.T) {
	p, err := prompt.Compose([]prompt.Layer{{Name: "a", Content: "A", Tags: []string{"system", "en"}}, {Name: "b", Content: "B", Tags: []string{"system"}}}, "system", "en")
	if err != nil || p.Stable != "A" {
		t.Errorf("%+v, %v", p, err)
	}
}

// A cycle of parents is refused with the names in it, and so is an ambiguous set of layers.
func TestInvalidLayersAreRefusedByName(t *testing.T) {
	for name, c := range map[string]struct {
		layers []prompt.Layer
		want   error
		says   string
	}{
		"a circle":          {[]prompt.Layer{{Name: "a", Parent: "b"}, {Name: "b", Parent: "c"}, {Name: "c", Parent: "a"}}, prompt.ErrCycle, "a → b → c → a"},
		"its own parent":    {[]prompt.Layer{{Name: "a", Parent: "a"}}, prompt.ErrCycle, "a → a"},
		"an unknown parent": {[]prompt.Layer{{Name: "a", Parent: "z"}}, prompt.ErrParent, `"z"`},
		"two children":      {[]prompt.Layer{{Name: "a"}, {Name: "b", Parent: "a"}, {Name: "c", Parent: "a"}}, prompt.ErrSameParent, `"b" and "c"`},
		"one name twice":    {[]prompt.Layer{{Name: "a"}, {Name: "a"}}, prompt.ErrLayerName, `"a"`},
		"no name":           {[]prompt.Layer{{Content: "x"}}, prompt.ErrLayerName, `""`},
	} {
		_, err := prompt.Compose(c.layers)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
