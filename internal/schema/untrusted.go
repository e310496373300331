package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a JSON Schema that values are checked with.
const (
	BytesMax      = 32 << 10
	schemaWaysMax = 10_000 // in which one value may be checked
)

// ErrSchema means that a JSON Schema cannot be used to check a value.
var ErrSchema = errors.New("model: bad JSON Schema")

// Check reports why a JSON Schema must not be used: it is not a JSON object,
// or checking a value with it would not terminate. A schema may come from an
// untrusted file, and a library that follows a circular reference
// ends the whole process. References may only point to places of the same document
// ("#/…").
func Check(text string) error {
	if len(text) > BytesMax {
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrSchema, len(text), BytesMax)
	}
	var root map[string]any
	if err := json.Unmarshal([]byte(text), &root); err != nil || root == nil {
		return fmt.Errorf("%w: it is not a JSON object: %w", ErrSchema, err)
	}
	c := &schemaRefs{root: root, ways: map[string]int{}}
	return c.checkAll("", root)
}

// schemaRefs follows the schemas that apply to the same value.
type schemaRefs struct {
	root map[string]any
	// ways is how many schemas a place applies to a value, itself included; -1
	// while it is being counted.
	ways map[string]int
}

// checkAll checks every object of the document: whatever may be taken as a schema.
func (c *schemaRefs) checkAll(at string, v any) error {
	switch v := v.(type) {
	case map[string]any:
		if _, err := c.countSchemas(at); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == "const" || key == "enum" || key == "default" || key == "examples" {
				continue // values, not schemas
			}
			if err := c.checkAll(at+"/"+escape.Replace(key), v[key]); err != nil {
				return err
			}
		}
	case []any:
		for i, inner := range v {
			if err := c.checkAll(at+"/"+strconv.Itoa(i), inner); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// countSchemas returns how many schemas the one at a place applies to a value.
func (c *schemaRefs) countSchemas(at string) (int, error) {
	switch n := c.ways[at]; {
	case n < 0:
		return 0, fmt.Errorf("%w: the reference at #%s leads back to itself", ErrSchema, at)
	case n > 0:
		return n, nil
	}
	node, ok := c.findValue(at).(map[string]any)
	if !ok {
		return 1, nil // true, false, or missing: the library reports the error
	}
	c.ways[at] = -1
	next, err := appliedPlaces(at, node)
	if err != nil {
		return 0, err
	}
	total := 1
	for _, place := range next {
		n, err := c.countSchemas(place)
		if err != nil {
			return 0, err
		}
		if total += n; total > schemaWaysMax {
			return 0, fmt.Errorf("%w: #%s applies more than %d schemas to one value", ErrSchema, at, schemaWaysMax)
		}
	}
	c.ways[at] = total
	return total, nil
}

// findValue returns the value at a place.
func (c *schemaRefs) findValue(at string) any {
	var v any = c.root
	if at == "" {
		return v
	}
	for key := range strings.SplitSeq(at[1:], "/") {
		switch inner := v.(type) {
		case map[string]any:
			v = inner[unescape.Replace(key)]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(inner) {
				return nil
			}
			v = inner[i]
		default:
			return nil
		}
	}
	return v
}

// appliedPlaces are the places whose schemas are applied to the same value.
func appliedPlaces(at string, node map[string]any) ([]string, error) {
	var next []string
	for _, key := range slices.Sorted(maps.Keys(node)) {
		place := at + "/" + escape.Replace(key)
		switch v := node[key].(type) {
		case string:
			if isKey(key, "$dynamicRef", "$recursiveRef") {
				return nil, fmt.Errorf("%w: %s at #%s is not allowed", ErrSchema, key, at)
			}
			if isKey(key, "$id") && at != "" {
				return nil, fmt.Errorf("%w: $id at #%s is not allowed: references are to places of the document", ErrSchema, at)
			}
			if !isKey(key, "$ref") {
				continue
			}
			if v != "#" && !strings.HasPrefix(v, "#/") || strings.Contains(v, "%") {
				return nil, fmt.Errorf("%w: the reference %.80q at #%s is not to a place of the document, such as #/$defs/name", ErrSchema, v, at)
			}
			next = append(next, v[1:])
		case []any:
			for i := range v {
				if isKey(key, "allOf", "anyOf", "oneOf") {
					next = append(next, place+"/"+strconv.Itoa(i))
				}
			}
		case map[string]any:
			if isKey(key, "not", "if", "then", "else") {
				next = append(next, place)
			}
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if isKey(key, "dependentSchemas", "dependencies") {
					next = append(next, place+"/"+escape.Replace(name))
				}
			}
		}
	}
	return next, nil
}

// isKey compares keys as the library that reads the schema does: without regard to case.
func isKey(key string, keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(key, k) })
}
