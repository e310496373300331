package modelhttp_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// looseEvent is an event as adapters declare them.
type looseEvent struct {
	Text  modelhttp.Text  `json:"text"`
	Count modelhttp.Count `json:"count"`
	List  []struct {
		Plain string `json:"plain"`
	} `json:"list"`
}

// TestFieldsOfAnyType: servers that speak an API write texts and counts as other types; a field
// of a type that means nothing counts as absent, and only what is no JSON object fails.
func TestFieldsOfAnyType(t *testing.T) {
	known := func(n int64) modelhttp.Count { return modelhttp.Count{N: n, Known: true} }
	for data, want := range map[string]looseEvent{
		`{"text":"a\"\u00e9","count":3}`:                 {Text: "a\"é", Count: known(3)},
		"{\"text\":\"a\xff\xfeb\"}":                      {Text: "a\uFFFDb"},
		`{"text":null,"count":null,"list":null}`:         {},
		`{"text":7,"count":"7"}`:                         {Text: "7", Count: known(7)},
		`{"text":{"a":[1]},"count":35.0}`:                {Text: `{"a":[1]}`, Count: known(35)},
		`{"text":true,"count":true}`:                     {Text: "true"},
		`{"count":1e300}`:                                {Count: known(1<<47 - 1<<16)},
		`{"count":-2.5}`:                                 {Count: known(-1)},
		`{"count":"many","list":{"plain":1},"text":"b"}`: {Text: "b"},
		`null`: {},
	} {
		var got looseEvent
		if err := modelhttp.DecodeEvent([]byte(data), &got); err != nil {
			t.Errorf("%s: %v", data, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", data, diff)
		}
	}
	for _, data := range []string{``, `{`, `[]`, `"a"`, `7`, `{"text":}`} {
		if err := modelhttp.DecodeEvent([]byte(data), new(looseEvent)); err == nil {
			t.Errorf("%s is taken", data)
		}
	}
}

func TestEncodeBody(t *testing.T) {
	got, err := modelhttp.EncodeBody(map[string]string{"a": "<b> & \u2028"})
	if err != nil || string(got) != `{"a":"<b> & \u2028"}` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := modelhttp.EncodeBody(func() {}); err == nil {
		t.Error("a function is encoded")
	}
}

// TestSchemasAreCached: the cache changes nothing, also when it is full.
func TestSchemasAreCached(t *testing.T) {
	const size = 64 << 10
	for i := range 2 * modelhttp.CachedSchemaBytes / size {
		schema := fmt.Sprintf(`{"type":"object","anyOf":[{"properties":{"a%d":{"description":"%0*d"}}}]}`, i, size, 0)
		want := ""
		for range 2 {
			got, err := modelhttp.ToolSchema(model.ToolSpec{Name: "t", Schema: schema})
			if err != nil || want != "" && want != string(got) {
				t.Fatalf("%.100s, then %.100s: %v", want, got, err)
			}
			want = string(got)
		}
	}
	for range 2 {
		if _, err := modelhttp.ToolSchema(model.ToolSpec{Name: "t", Schema: "[]"}); err == nil {
			t.Error("a list is taken for a schema")
		}
	}
}
