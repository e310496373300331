package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// measuredValue is a JSON value with its size.
type measuredValue struct {
	raw   any
	kind  string // as the keyword type names it; "" if the value is not JSON
	whole bool   // a number without a fraction
	size  int    // bytes, including those of the values within
	items []*measuredValue
	props map[string]*measuredValue
	names []string // of props, sorted
	texts map[string]*measuredValue
}

const valueBytes = 8 // of a value without its text

// measureValue measures a value and everything within it.
func measureValue(v any) *measuredValue {
	w := &measuredValue{raw: v, size: valueBytes}
	switch v := v.(type) {
	case nil:
		w.kind = "null"
	case bool:
		w.kind = "boolean"
	case float64:
		w.kind, w.whole = "number", v == float64(int64(v)) || v > 1<<53 || v < -1<<53
	case string:
		w.kind, w.size = "string", w.size+len(v)
	case []any:
		w.kind = "array"
		for _, one := range v {
			in := measureValue(one)
			w.items, w.size = append(w.items, in), w.size+in.size
		}
	case map[string]any:
		w.kind, w.props = "object", make(map[string]*measuredValue, len(v))
		w.names = slices.Sorted(maps.Keys(v))
		for name, one := range v {
			in := measureValue(one)
			w.props[name], w.size = in, w.size+in.size+len(name)
		}
	}
	return w
}

// isOf reports whether a value is of one of the types; every value is of an empty list.
func (w *measuredValue) isOf(types []string) bool {
	for _, t := range types {
		if t == w.kind || t == "integer" && w.whole {
			return true
		}
	}
	return len(types) == 0
}

// nameValue returns the name of a property as a value.
func (w *measuredValue) nameValue(name string) *measuredValue {
	if w.texts == nil {
		w.texts = map[string]*measuredValue{}
	}
	if w.texts[name] == nil {
		w.texts[name] = measureValue(name)
	}
	return w.texts[name]
}

// identity returns a text that equal values share, and no others.
func (w *measuredValue) identity() string { return string(w.appendIdentity(nil)) }

func (w *measuredValue) appendIdentity(b []byte) []byte {
	switch v := w.raw.(type) {
	case nil:
		return append(b, 'n')
	case bool:
		return strconv.AppendBool(b, v)
	case float64:
		return append(strconv.AppendFloat(append(b, '#'), v+0, 'g', -1, 64), ';') // -0 + 0 is 0
	case string:
		return appendText(b, v)
	case []any:
		b = append(b, '[')
		for _, in := range w.items {
			b = in.appendIdentity(b)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for _, name := range w.names {
			b = w.props[name].appendIdentity(appendText(b, name))
		}
		return append(b, '}')
	}
	text, _ := json.Marshal(w.raw) // not JSON: equal to nothing that is
	return append(append(b, '?'), text...)
}

func appendText(b []byte, text string) []byte {
	return append(append(strconv.AppendInt(append(b, '"'), int64(len(text)), 10), ':'), text...)
}
