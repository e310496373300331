package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

type addArgs struct {
	A    int      `json:"a" jsonschema:"the first number"`
	B    int      `json:"b,omitempty"`
	Tags []string `json:"tags,omitempty"`
	At   struct {
		X float64 `json:"x"`
	} `json:"at,omitzero"`
}

// buildSet builds a set with one tool that takes addArgs.
func buildSet(t *testing.T, call func(ctx context.Context, in addArgs, c tool.Call) (string, error), opts ...tool.Option) *tool.Set {
	t.Helper()
	one, err := tool.New("add", "Adds.", model.Read, call, opts...)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(one)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func answerText(text string) func(context.Context, addArgs, tool.Call) (string, error) {
	return func(context.Context, addArgs, tool.Call) (string, error) { return text, nil }
}

func runTool(t *testing.T, set *tool.Set, args string) tool.Result {
	t.Helper()
	return set.Call(t.Context(), "add", tool.Call{Args: []byte(args)})
}

//behaviour:shows C1
func TestAGoFunctionBecomesAToolWithAShortSchema(t *testing.T) {
	set := buildSet(t, func(_ context.Context, in addArgs, _ tool.Call) (string, error) { return fmt.Sprint(in.A + in.B), nil })
	want := `{"type":"object","properties":{"a":{"type":"integer","description":"the first number"},"b":{"type":"integer"},` +
		`"tags":{"type":"array","items":{"type":"string"}},"at":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"]}},"required":["a"]}`
	if got := set.Specs()[0].Schema; got != want {
		t.Errorf("schema %s", got)
	}
	if r := runTool(t, set, `{"a":2,"b":3}`); r.Error || r.Text != "5" {
		t.Errorf("%+v", r)
	}
}

//behaviour:shows C1
func TestArgumentsThatDoNotFitAreAnErrorResultAndTheToolDoesNotRun(t *testing.T) {
	set := buildSet(t, func(context.Context, addArgs, tool.Call) (string, error) { t.Error("it ran"); return "", nil })
	for args, want := range map[string]string{
		`{`:                    "not valid JSON",
		``:                     `missing properties: ["a"]`,
		`{"a":"two"}`:          `want "integer"`,
		`{"a":1,"at":{}}`:      `missing properties: ["x"]`,
		`{"a":1,"colour":"x"}`: `unknown field "colour"`,
		`[]`:                   `want "object"`,
		`{"a":1} {}`:           "not valid JSON",
	} {
		r := runTool(t, set, args)
		if !r.Error || !strings.HasPrefix(r.Text, "the arguments do not fit the schema of add: ") || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

func TestAnUnknownToolIsAnsweredWithTheKnownOnes(t *testing.T) {
	r := buildSet(t, answerText("")).Call(t.Context(), "sub", tool.Call{})
	if !r.Error || r.Text != `unknown tool "sub"; the tools are: add` {
		t.Errorf("%+v", r)
	}
}

// plainTool is a Tool that says everything itself.
type plainTool struct{ model.ToolSpec }

func (p plainTool) Spec() model.ToolSpec                                 { return p.ToolSpec }
func (p plainTool) Call(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }

func TestASetRefusesBadAndDoubleTools(t *testing.T) {
	good := plainTool{model.ToolSpec{Name: "a", Class: model.Read, Schema: `{"type":"object"}`}}
	with := func(change func(*model.ToolSpec)) tool.Tool { p := good; change(&p.ToolSpec); return p }
	for name, c := range map[string]struct {
		tools []tool.Tool
		want  error
	}{
		"same name":        {[]tool.Tool{good, good}, tool.ErrDuplicate},
		"no name":          {[]tool.Tool{with(func(s *model.ToolSpec) { s.Name = "" })}, tool.ErrName},
		"dot in name":      {[]tool.Tool{with(func(s *model.ToolSpec) { s.Name = "a.b" })}, tool.ErrName},
		"long name":        {[]tool.Tool{with(func(s *model.ToolSpec) { s.Name = strings.Repeat("a", 65) })}, tool.ErrName},
		"no class":         {[]tool.Tool{with(func(s *model.ToolSpec) { s.Class = "" })}, tool.ErrSpec},
		"schema no JSON":   {[]tool.Tool{with(func(s *model.ToolSpec) { s.Schema = "{" })}, tool.ErrSpec},
		"schema of a list": {[]tool.Tool{with(func(s *model.ToolSpec) { s.Schema = `{"type":"array"}` })}, tool.ErrSpec},
		"schema too old": {[]tool.Tool{with(func(s *model.ToolSpec) {
			s.Schema = `{"type":"object","$schema":"http://json-schema.org/draft-04/schema#"}`
		})}, tool.ErrSpec},
		"long description": {[]tool.Tool{with(func(s *model.ToolSpec) { s.Description = strings.Repeat("x", tool.DescriptionBytes+1) })}, tool.ErrSpec},
	} {
		if _, err := tool.NewSet(c.tools...); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSpecsAreSorted(t *testing.T) {
	var tools []tool.Tool
	for _, name := range []string{"c", "a", "b"} {
		tools = append(tools, plainTool{model.ToolSpec{Name: name, Class: model.Effect, Schema: `{"type":"object"}`}})
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	var names string
	for _, spec := range set.Specs() {
		names += spec.Name
	}
	if names != "abc" {
		t.Error(names)
	}
}

func TestAPanicIsAnErrorResultThatNamesTheToolWithoutAStack(t *testing.T) {
	set := buildSet(t, func(context.Context, addArgs, tool.Call) (string, error) { panic("index out of range") })
	if r := runTool(t, set, `{"a":1}`); !r.Error || r.Text != "add crashed: index out of range" {
		t.Errorf("%+v", r)
	}
	set = buildSet(t, func(context.Context, addArgs, tool.Call) (string, error) { runtime.Goexit(); return "", nil })
	if r := runTool(t, set, `{"a":1}`); !r.Error || r.Text != "add ended without a result" {
		t.Errorf("%+v", r)
	}
}

func TestErrorResultKeepsTheToolsOutput(t *testing.T) {
	set := buildSet(t, func(context.Context, addArgs, tool.Call) (string, error) { return "half\n", errors.New("disk full") })
	if r := runTool(t, set, `{"a":1}`); !r.Error || r.Text != "half\ndisk full" {
		t.Errorf("%+v", r)
	}
}

func TestToolThatStopsAtItsTimeoutIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := buildSet(t, func(ctx context.Context, _ addArgs, _ tool.Call) (string, error) { <-ctx.Done(); return "", ctx.Err() }, tool.Timeout(7*time.Second))
		began := time.Now()
		if r := runTool(t, set, `{"a":1}`); !r.Error || !r.Transient || r.Text != "add timed out after 7s" || time.Since(began) != 7*time.Second {
			t.Errorf("%+v after %s", r, time.Since(began))
		}
		c := tool.Call{Args: []byte(`{"a":1}`), Deadline: time.Now().Add(time.Second)}
		if r := set.Call(t.Context(), "add", c); !r.Transient || r.Text != "add ran into the deadline of the call" {
			t.Errorf("%+v", r)
		}
	})
}

//behaviour:shows C4
func TestAToolThatIgnoresItsContextIsAbandonedAndReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		set := buildSet(t, func(context.Context, addArgs, tool.Call) (string, error) { <-let; return "late", nil })
		ctx, cancel := context.WithCancel(t.Context())
		cancelAt := time.AfterFunc(time.Second, cancel)
		defer cancelAt.Stop()
		began := time.Now()
		r := set.Call(ctx, "add", tool.Call{Args: []byte(`{"a":1}`)})
		if !r.Error || r.Transient || !strings.Contains(r.Text, "was canceled and did not stop within 2s; it was abandoned and may still be running") {
			t.Errorf("%+v", r)
		}
		if took := time.Since(began); took != time.Second+tool.AbandonGrace {
			t.Errorf("took %s", took)
		}
		close(let)
	})
}

//behaviour:shows C6
func TestToolKnowsItsCall(t *testing.T) {
	var got tool.Call
	set := buildSet(t, func(_ context.Context, _ addArgs, c tool.Call) (string, error) {
		got = c
		c.Metric("x", 1)
		return "", nil
	})
	sent := tool.Call{Run: "r", Agent: "a", Turn: 3, ID: "3-0", Key: "r.a.3-0", Attempt: 2, Trace: "00-x", Args: []byte(`{"a":1}`)}
	if r := set.Call(t.Context(), "add", sent); r.Error {
		t.Fatal(r.Text)
	}
	if got.Metric == nil || got.Progress == nil || got.Deadline.IsZero() {
		t.Error("no metrics sink or deadline")
	}
	got.Metric, got.Progress, got.Changed, got.Deadline = nil, nil, nil, time.Time{}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", sent) {
		t.Errorf("got %+v", got)
	}
}

//behaviour:shows C4
func TestALongResultKeepsHeadAndTailAndSaysItsSize(t *testing.T) {
	long := strings.Repeat("line of text é\n", 20_000)
	set := buildSet(t, answerText("FIRST\n"+long+"LAST"), tool.OutputLimit(1000))
	r := runTool(t, set, `{"a":1}`)
	if r.Error || len(r.Text) > 1000 || !utf8.ValidString(r.Text) || !strings.HasPrefix(r.Text, "FIRST\n") || !strings.HasSuffix(r.Text, "\nLAST") {
		t.Errorf("%d bytes: %.60s", len(r.Text), r.Text)
	}
	if mark := fmt.Sprintf("\n[clipped: %d bytes, showing the first 598 and last 292]\n", len(long)+10); !strings.Contains(r.Text, mark) {
		t.Errorf("no %q in %s", mark, r.Text)
	}
	if r.Whole != "FIRST\n"+long+"LAST" {
		t.Errorf("the whole has %d bytes", len(r.Whole))
	}
}

//behaviour:shows C9
func TestMalformedResultIsANamedError(t *testing.T) {
	r := runTool(t, buildSet(t, answerText("caf\xe9 \xff!")), `{"a":1}`)
	if !r.Error || r.Text != "[malformed result of add: 2 bytes are not UTF-8 and are shown as \uFFFD]\ncaf\uFFFD \uFFFD!" {
		t.Errorf("%+v", r)
	}
	schema := tool.OutputSchema(`{"type":"object","required":["n"]}`)
	for text, want := range map[string]string{`{"n":1}`: "", `{}`: `missing properties: ["n"]`, `n`: "invalid character"} {
		r := runTool(t, buildSet(t, answerText(text), schema), `{"a":1}`)
		if r.Error != (want != "") || !strings.Contains(r.Text, want) || !strings.HasSuffix(r.Text, text) {
			t.Errorf("%s: %+v", text, r)
		}
	}
}

func TestSecretsAreMaskedInResultsAndErrors(t *testing.T) {
	key := "AKIA" + "IOSFODNN7REALKEY"
	set := buildSet(t, func(context.Context, addArgs, tool.Call) (string, error) {
		return "a " + key, errors.New("b " + key + " configured")
	})
	if r := runTool(t, set, `{"a":1}`); r.Text != "a [masked]\nb [masked] configured" {
		t.Errorf("%q", r.Text)
	}
	if r := runTool(t, set.Masked(redact.New(redact.Config{Values: []string{"configured"}})), `{"a":1}`); r.Text != "a [masked]\nb [masked] [masked]" {
		t.Errorf("%q", r.Text)
	}
	exact := buildSet(t, answerText("x configured "+key), tool.MasksItself()).Masked(redact.New(redact.Config{Values: []string{"configured"}}))
	if r := runTool(t, exact, `{"a":1}`); r.Text != "x [masked] "+key {
		t.Errorf("%q", r.Text)
	}
}

func TestClipNeverExceedsItsLimitNorCutsARune(t *testing.T) {
	for _, text := range []string{strings.Repeat("é", 500), strings.Repeat("ab\n", 400), strings.Repeat("x", 5000)} {
		for limit := 150; limit < 1200; limit += 37 {
			got := tool.Clip(text, limit)
			if len(got) > limit || !utf8.ValidString(got) {
				t.Fatalf("limit %d: %d bytes", limit, len(got))
			}
		}
	}
}

func TestTheSchemaOfAToolIsOneThatJSONCanRead(t *testing.T) {
	var v map[string]any
	if err := json.Unmarshal([]byte(buildSet(t, answerText("")).Specs()[0].Schema), &v); err != nil || v["type"] != "object" {
		t.Errorf("%v %v", v, err)
	}
	if _, err := tool.New("n", "", model.Read, func(context.Context, int, tool.Call) (string, error) { return "", nil }); !errors.Is(err, tool.ErrSpec) {
		t.Errorf("a number as input: %v", err)
	}
}

// A tool may report figures without bound, and under any name; the log takes what is within the limits and counts the rest.
//
//behaviour:shows C6
func TestMetricsOfACallAreBounded(t *testing.T) {
	var late func(string, float64)
	set := buildSet(t, func(_ context.Context, _ addArgs, c tool.Call) (string, error) {
		c.Metric("rows", 1)
		c.Metric("rows", 41)
		for i := range 2 * spec.MetricsMax {
			c.Metric(fmt.Sprintf("m%03d", i), 1)
		}
		for _, name := range []string{"", "a b", "\x1b[2J", strings.Repeat("x", spec.MetricNameBytes+1)} {
			c.Metric(name, 1)
		}
		c.Metric("nan", math.NaN())
		c.Metric("inf", math.Inf(1))
		late = c.Metric
		return "", nil
	})
	r := set.Call(t.Context(), "add", tool.Call{Args: []byte(`{"a":1}`)})
	late("after", 1) // an abandoned tool may still report
	if got := r.Metrics.Map(); len(got) != spec.MetricsMax || got["rows"] != 41 || got["after"] != 0 {
		t.Errorf("%v", got)
	}
	if want := spec.MetricsMax + 1 + 4 + 2; r.MetricsLost != want {
		t.Errorf("%d reports were lost, not %d", r.MetricsLost, want)
	}
	if got := (spec.Metrics{{Name: "bad name", Value: 1}, {Name: "x", Value: math.NaN()}}).Map(); got != nil {
		t.Errorf("a fact of another program brought %v", got)
	}
}
