package schema

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// unionSchema is a schema of ten kinds, each within itself, and told apart by tag.
func unionSchema(of, tag string) string {
	var kinds []string
	for i := range 10 {
		kinds = append(kinds, fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["kind","name"],"properties":{"kind":{"%s"},"name":{"type":"string"},
			"after":{"type":"array","items":{"$ref":"#/$defs/n"}},"before":{"type":"array","items":{"$ref":"#/$defs/n"}},"else":{"$ref":"#/$defs/n"}}}`, fmt.Sprintf(tag, i)))
	}
	return fmt.Sprintf(`{"type":"object","properties":{"plan":{"$ref":"#/$defs/n"}},"$defs":{"n":{"%s":[%s]}}}`, of, strings.Join(kinds, ","))
}

// planTree is a tree of steps of a given number, three below each.
func planTree(at, n int) map[string]any {
	step := map[string]any{"kind": fmt.Sprintf("k%d", at%10), "name": fmt.Sprintf("step %d", at)}
	var below []any
	for i := 3*at + 1; i <= 3*at+3 && i < n; i++ {
		below = append(below, planTree(i, n))
	}
	if len(below) > 0 {
		step["else"] = below[0]
		step["after"], step["before"] = below[1:], []any{}
	}
	return step
}

// A union of kinds within itself is how plans, queries and documents are written.
func TestAUnionOfManyKindsWithinItselfPasses(t *testing.T) {
	for _, of := range []string{"oneOf", "anyOf"} {
		for _, tag := range []string{`const":"k%d`, `enum":["k%d"],"title":"`, `pattern":"^k%d$`} {
			s, err := Compile(unionSchema(of, tag))
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{1, 200, 2000} {
				value := map[string]any{"plan": planTree(0, n)}
				began := time.Now()
				steps, err := s.countSteps(value)
				if err != nil || steps > 100*n+100 {
					t.Errorf("%s %s, a plan of %d: %d steps, %.300v", of, tag, n, steps, err)
				}
				t.Logf("%s %s, a plan of %d: %d steps in %s", of, tag, n, steps, time.Since(began))
			}
		}
	}
}

// Each of these schemas is a published one, and its values are ordinary.
func TestSchemasThatPeopleWriteAreUsable(t *testing.T) {
	const meta = `{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"list":{"type":"array","minItems":1,"items":{"$ref":"#"}},"map":{"type":"object","additionalProperties":{"$ref":"#"},"default":{}},
		"count":{"type":"integer","minimum":0},"names":{"type":"array","items":{"type":"string"},"uniqueItems":true,"default":[]},"simple":{"enum":["array","boolean","integer","null","number","object","string"]}},
		"type":["object","boolean"],"properties":{"$id":{"type":"string"},"$schema":{"type":"string"},"$ref":{"type":"string"},"$defs":{"$ref":"#/$defs/map"},"title":{"type":"string"},"description":{"type":"string"},"default":true,
		"type":{"anyOf":[{"$ref":"#/$defs/simple"},{"type":"array","items":{"$ref":"#/$defs/simple"},"minItems":1,"uniqueItems":true}]},"const":true,"enum":{"type":"array","items":true},
		"properties":{"$ref":"#/$defs/map"},"patternProperties":{"$ref":"#/$defs/map","propertyNames":{"format":"regex"}},"additionalProperties":{"$ref":"#"},"unevaluatedProperties":{"$ref":"#"},
		"dependentSchemas":{"$ref":"#/$defs/map"},"propertyNames":{"$ref":"#"},"items":{"$ref":"#"},"prefixItems":{"$ref":"#/$defs/list"},"contains":{"$ref":"#"},
		"allOf":{"$ref":"#/$defs/list"},"anyOf":{"$ref":"#/$defs/list"},"oneOf":{"$ref":"#/$defs/list"},"not":{"$ref":"#"},"if":{"$ref":"#"},"then":{"$ref":"#"},"else":{"$ref":"#"},
		"minimum":{"type":"number"},"maxLength":{"$ref":"#/$defs/count"},"minItems":{"$ref":"#/$defs/count"},"pattern":{"type":"string","format":"regex"},"uniqueItems":{"type":"boolean"},"required":{"$ref":"#/$defs/names"}}}`
	const tree = `{"type":"object","properties":{"components":{"type":"object","patternProperties":{"^[A-Za-z0-9._-]+$":{"$ref":"#/$defs/schema"}},"additionalProperties":false}},
		"$defs":{"reference":{"type":"object","required":["ref"],"properties":{"ref":{"type":"string"}}},"schema":{"oneOf":[{"$ref":"#/$defs/reference"},{"type":"object","not":{"required":["ref"]},"unevaluatedProperties":false,
		"properties":{"type":{"enum":["object","array","string","integer","number","boolean"]},"items":{"$ref":"#/$defs/schema"},"nullable":{"type":"boolean"},
		"properties":{"type":"object","additionalProperties":{"$ref":"#/$defs/schema"}},"allOf":{"type":"array","items":{"$ref":"#/$defs/schema"}},"discriminator":{"type":"object"}},"patternProperties":{"^x-":true}}]}}}`
	node := `{"type":"string"}`
	for i := range 60 {
		node = fmt.Sprintf(`{"type":"object","x-depth":%d,"properties":{"left":%s,"right":{"ref":"#/components/N"}},"allOf":[{"ref":"#/components/M"}]}`, i, node)
	}
	for text, values := range map[string][]string{
		meta: {meta, unionSchema("oneOf", `const":"k%d`), tree, `true`},
		tree: {`{"components":{"A":` + node + `,"B":` + node + `}}`},
	} {
		s, err := Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range values {
			steps, err := s.countSteps(decodeJSON(t, raw))
			if err != nil {
				t.Errorf("%.300v", err)
			}
			t.Logf("%.60s of %d bytes: %d steps", raw, len(raw), steps)
		}
	}
	s, err := Compile(meta)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{`7`, `{"type":"text"}`, `{"items":{"allOf":[]}}`, `{"$defs":{"a":{"required":["x","x"]}}}`} {
		if s.Validate(decodeJSON(t, raw)) == nil {
			t.Errorf("%s fits", raw)
		}
	}
}

var schemaText = regexp.MustCompile("(?s)`(\\{\\s*\"(?:type|\\$schema|properties|anyOf|oneOf)\".*?)`")

// Every schema in this repository compiles, and an empty value of its type is not too much
// work.
func TestTheSchemasOfThisRepositoryAreUsable(t *testing.T) {
	found := 0
	for _, dir := range []string{"../../examples", "../../test/evals", "../../docs", "../../tool", "../../agent", "../../internal/control", "../../internal/config/agentfile"} {
		err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, text := range schemasIn(path, string(raw)) {
				found++
				s, err := Compile(text)
				if err != nil {
					t.Errorf("%s: %.200s: %v", path, text, err)
					continue
				}
				if steps, _ := s.countSteps(map[string]any{}); steps > 1000 {
					t.Errorf("%s: %d steps for an empty object", path, steps)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 10 {
		t.Errorf("only %d schemas were found", found)
	}
	t.Logf("%d schemas", found)
}

// schemasIn are the schemas that a file holds: itself, or texts in it.
func schemasIn(path, raw string) (list []string) {
	if strings.HasSuffix(path, ".json") {
		var m map[string]any
		if json.Unmarshal([]byte(raw), &m) == nil && m["$schema"] != nil && m["properties"] != nil {
			list = append(list, raw)
		}
	}
	if strings.HasSuffix(path, ".go") {
		for _, found := range schemaText.FindAllStringSubmatch(raw, -1) {
			if json.Valid([]byte(found[1])) {
				list = append(list, found[1])
			}
		}
	}
	for line := range strings.SplitSeq(raw, "\n") {
		if _, text, ok := strings.Cut(line, "schema: "); ok && !strings.HasSuffix(path, ".go") {
			if text = strings.Trim(strings.TrimSpace(text), "'"); strings.HasPrefix(text, "{\"") && json.Valid([]byte(text)) {
				list = append(list, text)
			}
		}
	}
	return list
}
