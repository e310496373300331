package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/test/cputime"
)

func repeatItem(n int, one string) string { return "[" + strings.Repeat(one+",", n-1) + one + "]" }

// costlyFamilies are families of schemas and values whose check grows fast with n.
var costlyFamilies = map[string]func(n int) (text, value string){
	"alternatives within alternatives": func(n int) (string, string) {
		return fmt.Sprintf(`{"type":"object","$defs":{"n":{"anyOf":%s}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, repeatItem(4, `{"type":"object","required":["x"],"properties":{"a":{"$ref":"#/$defs/n"}}}`)),
			strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n)
	},
	"all of it twice, and of that": func(n int) (string, string) {
		return `{"$defs":{"n":{"allOf":[{"items":{"$ref":"#/$defs/n"}},{"items":{"$ref":"#/$defs/n"}}]}},"$ref":"#/$defs/n"}`, strings.Repeat("[", n) + strings.Repeat("]", n)
	},
	"one of it, and not": func(n int) (string, string) {
		return `{"$defs":{"n":{"oneOf":[{"items":{"not":{"$ref":"#/$defs/n"}}},{"contains":{"$ref":"#/$defs/n"}}]}},"$ref":"#/$defs/n"}`, strings.Repeat("[", n) + "1" + strings.Repeat("]", n)
	},
	"if, then and else": func(n int) (string, string) {
		return `{"$defs":{"n":{"if":{"properties":{"a":{"$ref":"#/$defs/n"}}},"then":{"properties":{"a":{"$ref":"#/$defs/n"}}},"else":{"properties":{"a":{"$ref":"#/$defs/n"}}}}},"$ref":"#/$defs/n"}`,
			strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n)
	},
	"deep": func(n int) (string, string) {
		return `{"$defs":{"n":{"type":"array","items":{"$ref":"#/$defs/n"}}},"$ref":"#/$defs/n"}`, strings.Repeat("[", n) + "1" + strings.Repeat("]", n)
	},
	"wide, with many ways": func(n int) (string, string) {
		return `{"contains":{"anyOf":` + repeatItem(200, `{"type":"string"}`) + `}}`, repeatItem(n, `{"a":1}`)
	},
	"unique items that a careless hash takes for one": func(n int) (string, string) {
		text, items := strings.Repeat("x", 400), []string{}
		for i := 0; len(items) < n && i < 400; i++ {
			for j := i; len(items) < n && j < 400; j++ {
				items = append(items, fmt.Sprintf(`[%q,%q,%q]`, text[:i], text[i:j], text[j:]))
			}
		}
		return `{"uniqueItems":true}`, "[" + strings.Join(items, ",") + "]"
	},
	"numbers that are far apart": func(n int) (string, string) {
		return `{"contains":{"enum":` + repeatItem(4000, "1e308") + `}}`, repeatItem(n, "5e-324")
	},
	"a number with bounds": func(n int) (string, string) {
		return `{"items":{"multipleOf":5e-324,"minimum":5e-324,"maximum":1e308}}`, repeatItem(n, "1e308")
	},
	"names with a pattern": func(n int) (string, string) {
		return `{"propertyNames":{"pattern":"(x+x+)+y"}}`, `{"` + strings.Repeat("x", n) + `":1}`
	},
	"required and bounds at every way": func(n int) (string, string) {
		return `{"items":{"allOf":` + repeatItem(400, `{"required":["a","b","c"],"minProperties":3}`) + `}}`, repeatItem(n, `{"a":1,"b":2,"c":3}`)
	},
	"many names that are missing": func(n int) (string, string) {
		return `{"contains":{"required":` + repeatItem(6000, `"a"`) + `}}`, repeatItem(n, `{}`)
	},
	"many properties of none": func(n int) (string, string) {
		var names []string
		for i := range 2500 {
			names = append(names, fmt.Sprintf(`"%d":true`, i))
		}
		return `{"items":{"properties":{` + strings.Join(names, ",") + `}}}`, repeatItem(n, `{}`)
	},
	"alternatives of many numbers": func(n int) (string, string) {
		return `{"contains":{"anyOf":` + repeatItem(700, `{"multipleOf":5e-324,"minimum":1}`) + `}}`, repeatItem(n, "1e-308")
	},
	"missing at every way": func(n int) (string, string) {
		return `{"contains":{"anyOf":` + repeatItem(20, `{"required":`+repeatItem(300, `"a"`)+`}`) + `}}`, repeatItem(n, `{"b":1}`)
	},
	"large values, printed": func(n int) (string, string) {
		return `{"anyOf":` + repeatItem(400, `{"type":"string"}`) + `}`, repeatItem(n, `"`+strings.Repeat("x", 50)+`"`)
	},
	"many patterns of many names": func(n int) (string, string) {
		var patterns, names []string
		for i := range 100 {
			patterns = append(patterns, fmt.Sprintf(`"%d.*[a-z]{100}$":{}`, i))
		}
		for i := range n {
			names = append(names, fmt.Sprintf(`"%d%s":1`, i, strings.Repeat("a", 40)))
		}
		return `{"patternProperties":{` + strings.Join(patterns, ",") + `}}`, "{" + strings.Join(names, ",") + "}"
	},
	"a large pattern": func(n int) (string, string) {
		return `{"pattern":"(x?){1000}y"}`, `"` + strings.Repeat("x", n) + `"`
	},
	"a large enum": func(n int) (string, string) {
		return `{"contains":{"enum":` + repeatItem(1000, `"xxxxxxxxxxxxxxxxxxxx"`) + `}}`, repeatItem(n, `"xxxxxxxxxxxxxxxxxxxy"`)
	},
	"unique items, again and again": func(n int) (string, string) {
		return `{"allOf":` + repeatItem(500, `{"uniqueItems":true}`) + `}`, "[" + numberList(n) + "]"
	},
	"properties that nobody evaluated": func(n int) (string, string) {
		return `{"$defs":{"n":{"anyOf":` + repeatItem(5, `{"properties":{"a":true}}`) + `,"unevaluatedProperties":{"$ref":"#/$defs/n"},"additionalProperties":{"$ref":"#/$defs/n"}}},"$ref":"#/$defs/n"}`,
			strings.Repeat(`{"b":`, n) + "1" + strings.Repeat("}", n)
	},
}

func numberList(n int) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprint(i)
	}
	return strings.Join(texts, ",")
}

// slow is far above the second or so of a processor that StepsMax steps take.
const slow = 10 * time.Second

// A schema and a value that are too much work together get that verdict; a check within the
// bound ends in time.
//
//behaviour:shows C1
func TestAttackAHostileSchemaTakesBoundedTime(t *testing.T) {
	for name, family := range costlyFamilies {
		var within, beyond time.Duration
		refused, size := false, 0
		for n := 1; n <= 1<<12 && !refused; n += n + 1 {
			text, raw := family(n)
			s, err := Compile(text)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var v any
			if err := json.Unmarshal([]byte(raw), &v); err != nil {
				break // deeper than JSON is read
			}
			began := cputime.Used(t)
			err = s.Validate(v)
			took := cputime.Used(t) - began
			if refused = errors.Is(err, ErrCost); refused {
				beyond = took
				if again := s.Validate(v); again == nil || again.Error() != err.Error() {
					t.Errorf("%s: %v, and again %v", name, err, again)
				}
			} else {
				within, size = max(within, took), len(raw)
			}
		}
		if within > slow || beyond > slow {
			t.Errorf("%s: refused %v; checked in %s, refused in %s", name, refused, within, beyond)
		}
		t.Logf("%-36s up to %7d bytes in %8s, refused in %8s", name, size, within.Round(time.Millisecond), beyond.Round(time.Millisecond))
	}
}

// A schema that is too much work for any value is refused when it is compiled, and the
// error names a remedy.
func TestExpensiveSchemaIsRefused(t *testing.T) {
	ways := `{"$defs":{`
	for i := range 13 {
		ways += fmt.Sprintf(`"n%d":{"anyOf":[{"$ref":"#/$defs/n%d"},{"$ref":"#/$defs/n%d"}]},`, i, i+1, i+1)
	}
	ways += `"n13":{"anyOf":` + repeatItem(1, `{"enum":["`+strings.Repeat("x", 20_000)+`"]}`) + `}},"$ref":"#/$defs/n0"}`
	began := cputime.Used(t)
	_, err := Compile(ways)
	if err == nil || cputime.Used(t)-began > slow || !strings.Contains(err.Error(), "simpler") && !strings.Contains(err.Error(), "applies more than") {
		t.Error(err)
	}
}

// The time to read a schema grows with the square of its nesting.
func TestAttackDeepSchemaIsRefused(t *testing.T) {
	for one, end := range map[string]string{`{"not":`: "}", `{"dependencies":{"a":`: "}}", `{"anyOf":[`: "]}", `{"items":`: "}"} {
		n := 30_000 / len(one+end)
		began := cputime.Used(t)
		_, err := Compile(strings.Repeat(one, n) + "{}" + strings.Repeat(end, n))
		if !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), "nested") || cputime.Used(t)-began > slow {
			t.Errorf("%s: %v after %s", one, err, cputime.Used(t)-began)
		}
	}
	if _, err := Compile(strings.Repeat(`{"not":`, NestingMax-1) + "{}" + strings.Repeat("}", NestingMax-1)); err != nil {
		t.Error(err)
	}
	if n := nestingDepth(`{"a\"{":["{[",{}]}`); n != 3 {
		t.Error(n)
	}
}

// Ordinary schemas, and those that people know, are well within the bound.
func TestOrdinarySchemasAreCheapEnough(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Schema json.RawMessage `json:"schema"`
			Value  any             `json:"value"`
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		s, err := Compile(string(c.Schema))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if err := s.Validate(c.Value); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		steps, err := s.countSteps(c.Value)
		t.Logf("%s: %d steps, %v", file, steps, err)
	}
}
