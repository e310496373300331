package agent

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// delegate has one definition: what a model is told of its arguments is what the loop reads.
func TestDelegateIsDescribedWithTheArgumentsThatTheLoopReads(t *testing.T) {
	var want []string
	for field := range reflect.TypeFor[delegateArgs]().Fields() {
		want = append(want, strings.ToLower(field.Name))
	}
	slices.Sort(want)
	for _, peers := range []bool{false, true} {
		var schema struct{ Properties map[string]any }
		if err := json.Unmarshal([]byte(DelegateSpec("", peers).Schema), &schema); err != nil {
			t.Fatal(err)
		}
		read := want
		if !peers {
			read = slices.DeleteFunc(slices.Clone(want), func(name string) bool { return name == "background" || name == "schema" })
		}
		if got := slices.Sorted(maps.Keys(schema.Properties)); !slices.Equal(got, read) {
			t.Errorf("with peers %t the schema has %v, and the loop reads %v", peers, got, read)
		}
	}
}
