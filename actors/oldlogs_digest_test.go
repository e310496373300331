package actors_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/supervisor"
)

// effectWord is the word of an effect in recorded decisions, whatever its Go type is called.
func effectWord(fx any) string {
	switch fx.(type) {
	case agent.CallModel:
		return "call_model"
	case agent.AbortModel:
		return "abort_model"
	case agent.Begin:
		return "begin"
	case agent.CallTool:
		return "call_tool"
	case agent.AbortTool:
		return "abort_tool"
	case agent.RunHooks:
		return "run_hooks"
	case agent.AbortHooks:
		return "abort_hooks"
	case agent.AwaitThrottle:
		return "await_gate"
	case agent.LeaveThrottle:
		return "leave_gate"
	case agent.Arm, supervisor.Arm:
		return "arm"
	case supervisor.Disarm:
		return "disarm"
	case supervisor.Publish:
		return "publish"
	}
	panic(fmt.Sprintf("an effect without a word: %T", fx))
}

// wireHash is the hash of a value as observers get it, without the fields that are zero.
func wireHash(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var fields any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(withoutZeros(fields)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%.8x", sha256.Sum256(raw))
}

// withoutZeros is a JSON value without the fields that are zero, so that a new field that an old log
// leaves at zero changes no hash.
func withoutZeros(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, field := range v {
			field = withoutZeros(field)
			if m, isMap := field.(map[string]any); field == nil || field == false || field == 0.0 || field == "" || isMap && len(m) == 0 {
				delete(v, key)
			} else {
				v[key] = field
			}
		}
		return v
	case []any:
		for i := range v {
			v[i] = withoutZeros(v[i])
		}
	}
	return v
}

// digestValue is the hash of a value that has no form of its own outside of this program.
func digestValue(v any) string {
	leaves := leavesOf(nil, reflect.ValueOf(v))
	slices.Sort(leaves)
	return fmt.Sprintf("%.8x", sha256.Sum256([]byte(strings.Join(leaves, " "))))
}

// leavesOf adds the scalars of a value that are not zero and can be seen from
// outside. The fields of a struct have no names and no order, and those of a struct
// inside of it count as its own: so a field may be renamed, moved and grouped with
// others. The order of a list counts.
func leavesOf(leaves []string, v reflect.Value) []string {
	if !v.IsValid() || v.IsZero() {
		return leaves
	}
	switch v.Kind() {
	case reflect.Pointer:
		return leavesOf(append(leaves, "&"), v.Elem())
	case reflect.Interface:
		return leavesOf(leaves, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				leaves = leavesOf(leaves, v.Field(i))
			}
		}
		return leaves
	case reflect.Slice, reflect.Array:
		list := make([]string, v.Len())
		for i := range list {
			list[i] = canonicalText(v.Index(i))
		}
		return append(leaves, fmt.Sprintf("%q", list))
	case reflect.Map:
		var list []string
		for _, k := range v.MapKeys() {
			list = append(list, fmt.Sprintf("%v=%s", k, canonicalText(v.MapIndex(k))))
		}
		slices.Sort(list)
		return append(leaves, fmt.Sprintf("{%q}", list))
	case reflect.String:
		return append(leaves, fmt.Sprintf("%q", v.String()))
	}
	return append(leaves, fmt.Sprint(v.Interface()))
}

func canonicalText(v reflect.Value) string {
	leaves := leavesOf(nil, v)
	slices.Sort(leaves)
	return strings.Join(leaves, " ")
}
