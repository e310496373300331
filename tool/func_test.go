package tool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

type testArticle struct {
	Name string `json:"name" jsonschema:"of the article"`
}

type testStock struct {
	Pieces int    `json:"pieces"`
	Shelf  string `json:"shelf,omitempty"`
}

func countStock(_ context.Context, in testArticle) (testStock, error) {
	if in.Name != "bolt" {
		return testStock{}, fmt.Errorf("there is no article %q", in.Name)
	}
	return testStock{Pieces: 12}, nil
}

func ExampleFunc() {
	tools, err := tool.NewSet(tool.Func("stock", "How many of an article are in stock.", model.Read, countStock))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, args := range []string{`{"name":"bolt"}`, `{"name":"nut"}`, `{"nmae":"bolt"}`} {
		r := tools.Call(context.Background(), "stock", tool.Call{Args: []byte(args)})
		fmt.Println(r.Text)
	}
	fmt.Println(tools.Specs()[0].Schema)
	// Output:
	// {"pieces":12}
	// there is no article "nut"
	// the arguments do not fit the schema of stock: validating root: required: missing properties: ["name"]; the tool did not run
	// {"type":"object","properties":{"name":{"type":"string","description":"of the article"}},"required":["name"]}
}

func TestFunctionKnowsItsCall(t *testing.T) {
	tools, err := tool.NewSet(tool.Func("who", "Says who asks.", model.Read, func(ctx context.Context, _ struct{}) (string, error) {
		c := tool.CallOf(ctx)
		c.Metric("asked", 1)
		return c.Agent + " " + c.Key, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if r := tools.Call(context.Background(), "who", tool.Call{Agent: "root", Key: "k"}); r.Error || r.Text != "root k" {
		t.Errorf("%+v", r)
	}
	if c := tool.CallOf(context.Background()); c.Run != "" {
		t.Errorf("outside of a call: %+v", c)
	}
}

// A tool may be made in a literal, where no error can be returned: what is wrong
// with it is said where it is registered.
//
//behaviour:shows C1
func TestAToolThatCannotBeMadeIsRefusedByTheSet(t *testing.T) {
	for name, c := range map[string]struct {
		tool tool.Tool
		want error
	}{
		"a name with a space": {tool.Func("a b", "", model.Read, countStock), tool.ErrName},
		"no class":            {tool.Func("a", "", "", countStock), tool.ErrSpec},
		"no struct":           {tool.Func("a", "", model.Read, func(context.Context, int) (string, error) { return "", nil }), tool.ErrSpec},
		"no JSON":             {tool.Func("a", "", model.Read, func(context.Context, struct{ C chan int }) (string, error) { return "", nil }), tool.ErrSpec},
		"no function":         {tool.Func[testArticle, testStock]("a", "", model.Read, nil), tool.ErrSpec},
		"nil":                 {nil, tool.ErrSpec},
	} {
		if _, err := tool.NewSet(c.tool); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAResultThatIsNotJSONIsAnErrorResult(t *testing.T) {
	tools, err := tool.NewSet(tool.Func("a", "", model.Read, func(context.Context, struct{}) (any, error) { return func() {}, nil }))
	if err != nil {
		t.Fatal(err)
	}
	if r := tools.Call(context.Background(), "a", tool.Call{}); !r.Error || !strings.Contains(r.Text, "not JSON") {
		t.Errorf("%+v", r)
	}
}

func TestATypeIsTheSchemaOfAnAnswer(t *testing.T) {
	got, err := tool.SchemaOf[[]testStock]()
	if err != nil || !strings.Contains(got, `"required":["pieces"]`) {
		t.Errorf("%s %v", got, err)
	}
	if _, err := tool.SchemaOf[chan int](); !errors.Is(err, tool.ErrType) {
		t.Error(err)
	}
}

// A name that differs in case is another argument: hooks and people have read the one
// that the schema names.
func TestAttackAnArgumentOfAnotherCaseIsRefused(t *testing.T) {
	ran := ""
	f, err := tool.New("run", "Runs.", model.Effect, func(_ context.Context, in struct {
		Command string `json:"command"`
	}, _ tool.Call) (string, error) {
		ran = in.Command
		return "", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{`{"command":"shown","Command":"hidden"}`, `{"COMMAND":"hidden"}`} {
		if _, err := f.Call(t.Context(), tool.Call{Args: []byte(args)}); !errors.Is(err, tool.ErrArgs) || ran != "" {
			t.Errorf("%s: ran %q, %v", args, ran, err)
		}
	}
}
