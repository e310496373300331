package golden

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// ToTree makes a value of maps, lists and scalars that JSON writes in full. Fields
// have the names of their json tags and are left out where they are zero. A list
// that is empty and not nil stays: in definitions it means none, and nil means all.
// replace is applied to each text.
func ToTree(v any, replace func(string) string) any {
	return valueTree(reflect.ValueOf(v), replace)
}

func valueTree(v reflect.Value, replace func(string) string) any {
	switch v.Kind() {
	case reflect.Invalid:
		return nil
	case reflect.Pointer, reflect.Interface:
		return valueTree(v.Elem(), replace)
	case reflect.Struct:
		return structTree(v, replace)
	case reflect.Map:
		m := map[string]any{}
		for _, key := range v.MapKeys() {
			m[replace(fmt.Sprint(key))] = valueTree(v.MapIndex(key), replace)
		}
		return m
	case reflect.Slice, reflect.Array:
		if raw, ok := v.Interface().(json.RawMessage); ok {
			return replace(string(raw))
		}
		if raw, ok := v.Interface().([]byte); ok {
			return fmt.Sprintf("%x", raw)
		}
		list := []any{}
		for i := range v.Len() {
			list = append(list, valueTree(v.Index(i), replace))
		}
		return list
	case reflect.String:
		return replace(v.String())
	}
	if d, ok := v.Interface().(time.Duration); ok {
		return d.String()
	}
	return v.Interface()
}

func structTree(v reflect.Value, replace func(string) string) any {
	m := map[string]any{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || v.Field(i).IsZero() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			name = f.Name
		}
		if inner, ok := valueTree(v.Field(i), replace).(map[string]any); ok && f.Anonymous {
			for key, value := range inner {
				m[key] = value
			}
			continue
		}
		m[name] = valueTree(v.Field(i), replace)
	}
	return m
}
