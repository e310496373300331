package runevent

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
)

// namesInEvents are the fields of events without texts: names, ids, reasons and sums, and with their kinds those whose
// names could mean a text, too. A new field of an event is either one of them or left out by event.WithoutContent.
var namesInEvents = strings.Fields(`
	activation after agent always approved_by budget.changed:rule budget.changed:why budget.denied:rule
	budget.denied:why budget.exhausted:rule budget.exhausted:why budget.overrun:rule budget.overrun:why
	budget.reserved:rule budget.reserved:why budget.settled:rule budget.settled:why by call child children class code
	conversation_id decision differs due ended error.raised:error gate.paused:why guardrail.escalated:tool
	guardrail.triggered:tool guardrails hook hook.fired:tool hooks how id level limit.near:what limit.soft:what
	logs.available:remedy logs.available:why logs.low:remedy logs.low:why logs.unavailable:remedy logs.unavailable:why
	mode
	message.agent:from model model.fallback:from model.finished:error model.retry:error name node of other owner
	parent path phase point pool posted_by purpose query reason ref root run run.finished:text run.reconciled:why
	run.removed:why run_id schedule.missed:why schedule_id sections severity shard.readable:why shard.released:why
	shard.taken:why shard.unreadable:why skill source stage state stop stop.allowed:rule stop.proposed:rule stop.vetoed:rule
	stop_reason subtree subtype task tier to tool.approved:from tool.approved:tool tool.denied:from tool.denied:tool
	tool.progress:tool tool.retry:tool tools_added tools_removed trace transition turn.finished:rule turn.started:rule
	type warning.raised:what whose
`)

// ambiguousNames are the names of fields that have a text in other kinds.
var ambiguousNames = []string{"text", "why", "error", "what", "rule", "remedy", "from", "tool"}

const written = "what was said"

// fillTexts sets every text in a value, in the values that it holds, too.
func fillTexts(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(written)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillTexts(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillTexts(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillTexts(key)
		fillTexts(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillTexts(v.Field(i))
			}
		}
	}
}

// textFields returns the names of the fields of a document that have the text.
func textFields(name string, document any) (names []string) {
	switch d := document.(type) {
	case string:
		if strings.Contains(d, written) {
			return []string{name}
		}
	case []any:
		for _, v := range d {
			names = append(names, textFields(name, v)...)
		}
	case map[string]any:
		for key, v := range d {
			if key == written {
				key = name + "/*"
			}
			names = append(names, textFields(key, v)...)
		}
	}
	return names
}

// Where observers are to read no texts, no text of a person, a model or a tool is in an event of any kind.
func TestEventsWithoutTextsHaveOnlyNames(t *testing.T) {
	found := map[string]bool{}
	for kind, zero := range everyKind() {
		data := reflect.New(reflect.TypeOf(zero)).Elem()
		fillTexts(data)
		before, err := json.Marshal(data.Interface())
		if err != nil {
			t.Fatal(err)
		}
		raw, err := EncodeWithoutTexts(event.Published{Kind: kind, Data: data.Interface()})
		if err != nil {
			t.Fatal(err)
		}
		var e struct {
			Content string
			Data    any
		}
		if err := json.Unmarshal(raw, &e); err != nil || e.Content != event.WithoutTexts {
			t.Errorf("%s: %s: %v", kind, raw, err)
		}
		for _, name := range textFields("", e.Data) {
			if slices.Contains(ambiguousNames, name) {
				name = kind + ":" + name
			}
			if found[name] = true; !slices.Contains(namesInEvents, name) {
				t.Errorf("%s has the text %s", kind, name)
			}
		}
		if after, err := json.Marshal(data.Interface()); err != nil || string(after) != string(before) {
			t.Errorf("%s: the caller's own data was changed: %v", kind, err)
		}
	}
	for _, name := range namesInEvents {
		if !found[name] {
			t.Errorf("no event has %s", name)
		}
	}
}

// everyKind are all kinds of events, each with the zero value of its data.
func everyKind() map[string]any {
	all := event.RunKinds()
	maps.Copy(all, event.NodeKinds())
	return all
}
