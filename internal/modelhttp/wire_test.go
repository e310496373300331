package modelhttp_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/internal/test/cputime"
	"github.com/troupe-run/troupe/model"
)

// TestCallsInAnyInterleaving: however the pieces of calls are interleaved, the
// calls come out whole; cut anywhere, none comes out whole and wrong.
//
//behaviour:shows A1
func TestCallsInAnyInterleaving(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "calls")
		ids := rapid.Bool().Draw(t, "ids")
		oneIndex := ids && rapid.Bool().Draw(t, "all at index 0") // then the ids alone tell the calls apart
		want := make([]model.ToolCall, n)
		rest := make([]string, n)
		begun := make([]bool, n)
		for i := range want {
			args, err := json.Marshal(map[string]string{"k": rapid.String().Draw(t, "value")})
			if err != nil {
				t.Fatal(err)
			}
			want[i] = model.ToolCall{Name: string(rune('a' + i)), Args: string(args)}
			rest[i] = string(args)
		}
		stop := rapid.IntRange(0, 40).Draw(t, "stop")
		var c modelhttp.CallAssembler
		var order []int
		for step := 0; step < stop && strings.Join(rest, "") != ""; step++ {
			i := rapid.IntRange(0, n-1).Draw(t, "piece of")
			size := rapid.IntRange(0, len(rest[i])).Draw(t, "size")
			id, name := "", ""
			if !begun[i] {
				begun[i], name = true, want[i].Name
				order = append(order, i)
			}
			if ids {
				id = "id" + want[i].Name
			}
			index := int64(i)
			if oneIndex {
				index = 0
			}
			c.AddDelta(index, id, name, rest[i][:size])
			rest[i] = rest[i][size:]
		}
		got := c.ToolCalls(false)
		if len(got) != len(order) {
			t.Fatalf("%d calls of %d", len(got), len(order))
		}
		for at, i := range order {
			switch g := got[at]; {
			case rest[i] == "" && g != want[i]:
				t.Fatalf("%+v, want %+v", g, want[i])
			case rest[i] != "" && (!g.Cut || json.Valid([]byte(g.Args))):
				t.Fatalf("taken as whole: %+v of %+v", g, want[i])
			}
		}
	})
}

func TestCallsAreBounded(t *testing.T) {
	var c modelhttp.CallAssembler
	for i := range 2 * modelhttp.MaxCalls {
		c.AddDelta(int64(i), "", "a", "{}")
	}
	if len(c.ToolCalls(false)) != modelhttp.MaxCalls || c.Len() != modelhttp.MaxCalls {
		t.Errorf("%d calls", c.Len())
	}
}

// TestARepeatedNameBeginsACallOnceArgumentsAreWhole: some servers send the name with each piece of
// a call, others stream whole calls at one index.
func TestARepeatedNameBeginsACallOnceArgumentsAreWhole(t *testing.T) {
	for _, c := range []struct{ pieces, want []string }{
		{[]string{`{"x":`, `"}`, `\"}"`, ` }`, `{}`}, []string{`{"x":"}\"}" }`, `{}`}},
		{[]string{"", `{"x":{}`, `}`, "", `{"y":[{}]}`}, []string{`{"x":{}}`, `{"y":[{}]}`}},
		{[]string{"{}\n", " ", "{}"}, []string{"{}\n", " {}"}},
		{[]string{`{}x`, `{}`}, []string{`{}x{}`}},
		{[]string{`{a}`, `{}`}, []string{`{a}{}`}},
		{[]string{`[{}`, `]`, `{}`}, []string{`[{}]{}`}},
		{[]string{`{]}`, `}`, `{}`}, []string{`{]}}{}`}},
	} {
		var calls modelhttp.CallAssembler
		for _, p := range c.pieces {
			calls.AddDelta(0, "", "n", p)
		}
		var got []string
		for _, k := range calls.ToolCalls(false) {
			got = append(got, k.Args)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q: %s", c.pieces, diff)
		}
	}
}

// TestRepeatedNamesTakeLinearTime: the arguments are read once, however often a name is repeated,
// and a name that is not kept is no growth of the reply.
func TestRepeatedNamesTakeLinearTime(t *testing.T) {
	var calls modelhttp.CallAssembler
	calls.AddDelta(0, "", "n", `{"x":"`+strings.Repeat("a", 1<<20))
	size, began := calls.Size(), cputime.Used(t)
	for range 1 << 13 {
		calls.AddDelta(0, "", "n", "")
	}
	if calls.Size() != size {
		t.Errorf("grew from %d to %d", size, calls.Size())
	}
	for range 1 << 13 {
		calls.AddDelta(0, "", "n", "}")
	}
	if spent := cputime.Used(t) - began; spent > 10*time.Second || calls.Len() != 1 { // with all of them read for each name, a minute
		t.Errorf("%d calls in %s", calls.Len(), spent)
	}
}

func TestResultMarksCutParts(t *testing.T) {
	for _, c := range []struct {
		args       string
		end, limit bool
		want       model.ToolCall
	}{
		{``, true, false, model.ToolCall{Args: `{}`}},
		{``, false, false, model.ToolCall{Cut: true}},
		{``, true, true, model.ToolCall{Cut: true}},
		{`{"a":1`, true, false, model.ToolCall{Args: `{"a":1`}},
		{`{"a":1`, true, true, model.ToolCall{Args: `{"a":1`, Cut: true}},
		{`{"a":1}`, false, true, model.ToolCall{Args: `{"a":1}`}},
		{`12`, false, false, model.ToolCall{Args: `12`, Cut: true}},
		{`null`, true, false, model.ToolCall{Args: `null`}},
		{"{\"a\":\"\xff\"}", true, false, model.ToolCall{Args: "{\"a\":\"\uFFFD\"}"}},
	} {
		var calls modelhttp.CallAssembler
		calls.AddDelta(0, "", "n", c.args)
		if c.end {
			calls.EndCall(0)
		}
		c.want.Name = "n"
		if diff := cmp.Diff([]model.ToolCall{c.want}, calls.ToolCalls(c.limit)); diff != "" {
			t.Errorf("%q %v %v: %s", c.args, c.end, c.limit, diff)
		}
	}
}

func TestNamesAndArgumentsAreAlwaysAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		for _, w := range []string{modelhttp.CallName(s), modelhttp.CallID("x_", s)} {
			if w == "" || strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
				t.Fatalf("%q became %q", s, w)
			}
		}
		if len(modelhttp.CallName(s)) > modelhttp.MaxName {
			t.Fatal("too long")
		}
		if raw := modelhttp.CallArguments(model.ToolCall{Args: s}); !modelhttp.IsObject(string(raw)) {
			t.Fatalf("%q became %q", s, raw)
		}
	})
}

// TestArgumentsAreUTF8: the text of a model goes into a request verbatim, so it must not
// make the request undecodable.
func TestArgumentsAreUTF8(t *testing.T) {
	for _, args := range []string{"{\"x\":\"\xff\"}", "\xff", "{\xff}"} {
		if raw := modelhttp.CallArguments(model.ToolCall{Args: args}); !modelhttp.IsObject(string(raw)) || !utf8.Valid(raw) {
			t.Errorf("%q became %q", args, raw)
		}
	}
}

func TestKeysAreRemovedFromErrorTexts(t *testing.T) {
	for text, want := range map[string]string{
		"key s3cret here":                        "key [redacted] here",
		"a/b+c=d or a%2Fb%2Bc%3Dd":               "[redacted] or [redacted]",
		"Bearer abc.def used":                    "[redacted] used",
		"Get \"https://u:p@h:1/a?k=v\": refused": "Get \"https://h:1/a\": refused",
		"sk-proj-abcdef12 is wrong":              "[redacted] is wrong",
		"a\x00b\r\n\tc":                          "a b c",
		"task-force and risk-free":               "task-force and risk-free",
	} {
		if got := modelhttp.ScrubText(text, "s3cret", "", "abc", "a/b+c=d"); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := modelhttp.ScrubText(string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))+" s3cret", "s3cret")
		if !utf8.ValidString(s) || strings.Contains(s, "s3cret") || strings.ContainsAny(s, "\n\r\x00") || len(s) > modelhttp.MaxMessage+len("…") {
			t.Fatalf("%q", s)
		}
	})
}

// TestLongErrorsAreNotDecoded: an error in a stream may be as long as an event.
func TestLongErrorsAreNotDecoded(t *testing.T) {
	body := []byte(`{"error":{"message":"busy","code":[` + strings.Repeat("{},", modelhttp.MaxErrorBody) + `{}]}}`)
	if n := testing.AllocsPerRun(1, func() { modelhttp.ClassifyError(0, nil, body) }); n > 1000 {
		t.Errorf("%.0f allocations", n)
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(400, []byte(`{"error":{"type":"x","message":"prompt is too long"}}`))
	f.Add(0, []byte(`{"error":[]}`))
	f.Add(529, []byte(`{"error":{"type":{},"code":1,"message":[]},"message":{}}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		e := modelhttp.ClassifyError(status, nil, body)
		if e.Class == "" || len(e.Message) > modelhttp.MaxMessage+len("…") || e.Unbilled && status < 400 {
			t.Errorf("%+v", e)
		}
	})
}

// TestRetryAfterInEveryForm: seconds, a date, milliseconds, and Google's detail; a value
// that is not a time requests no wait.
func TestRetryAfterInEveryForm(t *testing.T) {
	soon := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
	for _, c := range []struct {
		header, value, body string
		low, high           time.Duration
	}{
		{"Retry-After", "7", "", 7 * time.Second, 7 * time.Second}, {"Retry-After", "1.5", "", 1500 * time.Millisecond, 1500 * time.Millisecond},
		{"Retry-After", soon, "", time.Second, 90 * time.Second}, {"Retry-After-Ms", "250", "", 250 * time.Millisecond, 250 * time.Millisecond},
		{"Retry-After", "soon", "", 0, 0}, {"Retry-After", "-3", "", 0, 0}, {"Retry-After", "NaN", "", 0, 0}, {"Retry-After", "1e12", "", modelhttp.MaxRetryAfter, modelhttp.MaxRetryAfter},
		{"X-Other", "7", `{"error":{"code":429,"details":[{"retryDelay":"3s"}]}}`, 3 * time.Second, 3 * time.Second},
	} {
		h := http.Header{}
		h.Set(c.header, c.value)
		if e := modelhttp.ClassifyError(http.StatusTooManyRequests, h, []byte(c.body)); e.Class != model.RateLimit || e.RetryAfter < c.low || e.RetryAfter > c.high {
			t.Errorf("%+v: %+v", c, e)
		}
	}
}

// TestAnEmptyAccountIsNoBadRequest: the next model of the chain may have money.
func TestAnEmptyAccountIsNoBadRequest(t *testing.T) {
	for status, body := range map[int]string{
		400: `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}`,
		429: `{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"You exceeded your current quota, please check your plan and billing details."}}`,
		402: `{"type":"error","error":{"type":"billing_error","message":"no"}}`,
		403: `{"error":{"code":403,"status":"PERMISSION_DENIED","message":"Billing is disabled"}}`,
	} {
		want := model.Quota
		if status == http.StatusForbidden { // its code does not tell an account from a key
			want = model.Auth
		}
		if e := modelhttp.ClassifyError(status, nil, []byte(body)); e.Class != want || !e.Unbilled {
			t.Errorf("%d: %+v", status, e)
		}
	}
}
