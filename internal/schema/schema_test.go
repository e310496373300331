package schema

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestSchemaTextIsCompiledOnce(t *testing.T) {
	const text = `{"type":"object","required":["q"]}`
	first, err := Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Compile(strings.Clone(text))
	if err != nil || again != first {
		t.Errorf("%p, before it %p, %v", again, first, err)
	}
}

func TestInvalidSchemaIsRefusedEachTime(t *testing.T) {
	for _, text := range []string{"", "7", `{"type":3}`, `{"$ref":"#"}`, `{"$schema":"http://json-schema.org/draft-01/schema#"}`} {
		for range 2 {
			if r, err := Compile(text); err == nil || r != nil {
				t.Errorf("%s: %v %v", text, r, err)
			}
		}
	}
	if _, err := Compile(strings.Repeat(" ", BytesMax+1)); !errors.Is(err, ErrSchema) {
		t.Error(err)
	}
}

func TestSchemaCacheIsBounded(t *testing.T) {
	text := func(i int) string { return fmt.Sprintf(`{"type":"object","title":"%04d"}`, i) }
	m := compileCache{bytesMax: 10 * len(text(0))}
	for i := range 95 {
		if _, err := m.compileOnce(text(i)); err != nil {
			t.Fatal(err)
		}
		if len(m.outcomes) > 10 || m.bytes > m.bytesMax || m.bytes != len(m.outcomes)*len(text(0)) {
			t.Fatalf("%d texts of %d bytes after %d", len(m.outcomes), m.bytes, i)
		}
	}
	if long := `{"title":"` + strings.Repeat("x", m.bytesMax) + `"}`; true {
		if _, err := m.compileOnce(long); err != nil || m.bytes > m.bytesMax {
			t.Errorf("%d bytes, %v", m.bytes, err)
		}
	}
}

// One compiled schema checks the arguments of many agents at the same time.
func TestSchemaIsSafeForConcurrentUse(t *testing.T) {
	var users sync.WaitGroup
	for i := range 8 {
		users.Go(func() {
			for n := range 100 {
				r, err := Compile(`{"type":"object","required":["q"],"properties":{"q":{"type":"string","pattern":"^a+$"}}}`)
				if err != nil {
					t.Error(err)
					return
				}
				if err := r.Validate(map[string]any{"q": strings.Repeat("a", 1+n%3)}); err != nil {
					t.Error(err)
				}
				if err := r.Validate(map[string]any{"q": fmt.Sprint(i)}); err == nil {
					t.Error("what does not fit passed")
				}
			}
		})
	}
	users.Wait()
}
