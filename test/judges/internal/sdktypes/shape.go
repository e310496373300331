// Package sdktypes checks a JSON document against the Go types that an official SDK
// declares for it: the type has every field of the document, every value is of its
// kind, each field that the SDK marks as required is present, and constants are
// correct. The SDKs' own decoders ignore unknown fields.
package sdktypes

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// ErrShape means that the document does not match the type.
var ErrShape = errors.New("sdktypes: not the shape of the SDK's type")

// CheckShape checks a JSON document against a type. Fields named in extra are also allowed at its root.
func CheckShape(data []byte, t reflect.Type, extra ...string) error {
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("%w: %w", ErrShape, err)
	}
	if root, ok := v.(map[string]any); ok {
		for _, b := range extra {
			delete(root, b)
		}
	}
	return checkValue("body", v, t)
}

func shapeError(where, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrShape, where, fmt.Sprintf(format, args...))
}

func checkValue(where string, v any, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if strings.HasPrefix(t.Name(), "Opt[") { // an optional value of the SDKs
		if f, ok := t.FieldByName("Value"); ok {
			return checkValue(where, v, f.Type)
		}
	}
	switch t.Kind() {
	case reflect.Interface:
		return nil
	case reflect.Struct:
		if variants := variantsOf(t); len(variants) > 0 {
			return checkUnion(where, v, variants)
		}
		return checkObject(where, v, t)
	case reflect.Map:
		return checkMap(where, v, t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return checkBase64(where, v)
		}
		return checkList(where, v, t)
	}
	return checkScalar(where, v, t)
}

// variantsOf returns the types of a union, one of whose fields is inlined.
func variantsOf(t reflect.Type) []reflect.Type {
	var out []reflect.Type
	for i := range t.NumField() {
		if _, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); slices.Contains(strings.Split(options, ","), "inline") {
			out = append(out, t.Field(i).Type)
		}
	}
	return out
}

func checkUnion(where string, v any, variants []reflect.Type) error {
	var errs []error
	for _, t := range variants {
		err := checkValue(where, v, t)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("as %s: %w", t, err))
	}
	return shapeError(where, "it is none of %d variants: %v", len(variants), errors.Join(errs...))
}

// checkObject judges an object by the fields of a struct.
func checkObject(where string, v any, t reflect.Type) error {
	o, ok := v.(map[string]any)
	if !ok {
		return shapeError(where, "%v is not a %s", v, t)
	}
	known := map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" || key == "-" {
			continue
		}
		known[key] = true
		value, there := o[key]
		switch constant := f.Tag.Get("default"); {
		case !there && (f.Tag.Get("api") == "required" || constant != ""):
			return shapeError(where, "%q of %s is missing", key, t)
		case !there:
			continue
		case constant != "" && value != constant:
			return shapeError(where, "%q is %v instead of %q", key, value, constant)
		}
		if err := checkValue(where+"."+key, value, f.Type); err != nil {
			return err
		}
	}
	for key := range o {
		if !known[key] {
			return shapeError(where, "%s has no field %q", t, key)
		}
	}
	return nil
}

func checkMap(where string, v any, t reflect.Type) error {
	o, ok := v.(map[string]any)
	if !ok {
		return shapeError(where, "%v is not a %s", v, t)
	}
	for key, value := range o {
		if err := checkValue(where+"."+key, value, t.Elem()); err != nil {
			return err
		}
	}
	return nil
}

func checkList(where string, v any, t reflect.Type) error {
	l, ok := v.([]any)
	if !ok {
		return shapeError(where, "%v is not a %s", v, t)
	}
	for i, value := range l {
		if err := checkValue(fmt.Sprintf("%s[%d]", where, i), value, t.Elem()); err != nil {
			return err
		}
	}
	return nil
}

// checkBase64 judges bytes, which JSON holds in one of the two alphabets of base64.
func checkBase64(where string, v any) error {
	s, ok := v.(string)
	_, err := base64.StdEncoding.DecodeString(s)
	if _, err2 := base64.URLEncoding.DecodeString(s); !ok || err != nil && err2 != nil {
		return shapeError(where, "%v is not base64", v)
	}
	return nil
}

func checkScalar(where string, v any, t reflect.Type) error {
	ok := false
	switch n, number := v.(json.Number); t.Kind() {
	case reflect.String:
		_, ok = v.(string)
	case reflect.Bool:
		_, ok = v.(bool)
	case reflect.Float32, reflect.Float64:
		ok = number
	case reflect.Int, reflect.Int32, reflect.Int64:
		_, err := n.Int64()
		ok = number && err == nil
	}
	if !ok {
		return shapeError(where, "%v is not a %s", v, t)
	}
	return nil
}
