package strict_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/strict"
)

// talk is a request that Anthropic takes: thoughts, two calls at once, one of
// a tool that nobody declared, both answered, and a word of the user.
const talk = `{"model":"one","max_tokens":64,"stream":true,"temperature":0.5,
"system":[{"type":"text","text":"You look.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"It is late."}],
"tools":[{"name":"look","description":"d","input_schema":{"type":"object"}},{"name":"pay","input_schema":{"type":"object"}}],
"tool_choice":{"type":"tool","name":"look"},
"messages":[
{"role":"user","content":[{"type":"text","text":"Find out."}]},
{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"of one"},{"type":"redacted_thinking","data":"of one"},
 {"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1_0","name":"look","input":{"q":"x"}},{"type":"tool_use","id":"toolu_1_1","name":"fly","input":{}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1_1","is_error":true,"content":[{"type":"text","text":"there is no fly"}]},
 {"type":"tool_result","tool_use_id":"toolu_1_0"},{"type":"text","text":"Mind the gap."}]},
{"role":"assistant","content":"I mind it."},
{"role":"user","content":"Go on."}]}`

// chat is a request that OpenAI takes, of the same kind.
const chat = `{"model":"one","max_completion_tokens":64,"stream":true,"stream_options":{"include_usage":true},
"tools":[{"type":"function","function":{"name":"look","description":"d","parameters":{"type":"object"}}},{"type":"function","function":{"name":"pay","parameters":{"type":"object"}}}],
"tool_choice":{"type":"function","function":{"name":"look"}},
"messages":[
{"role":"system","content":"You look."},
{"role":"user","content":"Find out."},
{"role":"assistant","content":"I look.","tool_calls":[{"id":"call_1_0","type":"function","function":{"name":"look","arguments":"{\"q\":\"x\"}"}},
 {"id":"call_1_1","type":"function","function":{"name":"fly","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"call_1_1","content":"error: there is no fly"},
{"role":"tool","tool_call_id":"call_1_0","content":"seen"},
{"role":"user","content":"Mind the gap."},
{"role":"assistant","content":"I mind it."},
{"role":"user","content":"Go on."}]}`

// signed: a signature says whose it is.
func signed(signature string) string {
	_, who, _ := strings.Cut(signature, "of ")
	return who
}

func anthropic(body string) error { return strict.Anthropic([]byte(body), signed) }
func openai(body string) error    { return strict.OpenAI([]byte(body)) }

// spoiled is a document with one change, and the rule that it breaks.
type spoiled struct {
	rule     strict.Rule
	old, new string
}

var badTalks = []spoiled{
	{strict.Encoding, `Go on.`, "Go \xff on."},
	{strict.Encoding, `"messages":[`, `"messages"[`},
	{strict.Shape, `"stream":true`, `"streaming":true`},
	{strict.Shape, `"model":"one"`, `"model":""`},
	{strict.Shape, `"messages":[
{`, `"messages":[{"role":"system","content":"x"},{`},
	{strict.Shape, `{"role":"user","content":"Go on."}`, `{"role":"user"}`},
	{strict.Shape, `"is_error":true`, `"is_error":"yes"`},
	{strict.Shape, `{"role":"assistant","content":"I mind it."}`, `{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"x"}]}`},
	{strict.Shape, `{"role":"user","content":"Go on."}`, `{"role":"user","content":[{"type":"tool_use","id":"x","name":"look","input":{}}]}`},
	{strict.Shape, `"cache_control":{"type":"ephemeral"}`, `"cache_control":{"type":"for ever"}`},
	{strict.Shape, `"name":"fly","input"`, `"name":"fly away","input"`},
	{strict.Limit, `"max_tokens":64`, `"max_tokens":0`},
	{strict.System, `"text":"It is late."`, `"text":"  "`},
	{strict.System, `{"type":"text","text":"It is late."}`, strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 4) + `{"type":"text","text":"y"}`},
	{strict.First, `"messages":[
{"role":"user","content":[{"type":"text","text":"Find out."}]},`, `"messages":[`},
	{strict.Alternation, `{"role":"assistant","content":"I mind it."},`, ``},
	{strict.Alternation, `{"role":"assistant","content":"I mind it."},`, `{"role":"assistant","content":"I"},{"role":"assistant","content":"mind it."},`},
	{strict.Last, `,
{"role":"user","content":"Go on."}`, ``},
	{strict.Empty, `"content":"Go on."`, `"content":" "`},
	{strict.Empty, `"content":"Go on."`, `"content":[]`},
	{strict.Empty, `"text":"Mind the gap."`, `"text":""`},
	{strict.Empty, `"text":"there is no fly"`, `"text":""`},
	{strict.Identity, `"id":"toolu_1_0"`, `"id":"toolu.1.0"`},
	{strict.Identity, `"id":"toolu_1_0"`, `"id":""`},
	{strict.Identity, `"id":"toolu_1_0"`, `"id":"` + strings.Repeat("x", 65) + `"`},
	{strict.Identity, `"id":"toolu_1_0"`, `"id":"toolu_1_1"`},
	{strict.Arguments, `"input":{"q":"x"}`, `"input":"{}"`},
	{strict.Arguments, `"input":{"q":"x"}`, `"input":null`},
	{strict.Pairing, `{"type":"tool_result","tool_use_id":"toolu_1_0"},`, ``},
	{strict.Pairing, `"tool_use_id":"toolu_1_0"`, `"tool_use_id":"toolu_1_1","is_error":true`},
	{strict.Pairing, `"tool_use_id":"toolu_1_0"`, `"tool_use_id":"toolu_1_7"`},
	{strict.Pairing, `{"role":"user","content":"Go on."}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1_0"}]}`},
	{strict.Pairing, `{"role":"assistant","content":"I mind it."}`, `{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"look","input":{}}]}`},
	{strict.Order, `"name":"fly","input":{}}`, `"name":"fly","input":{}},{"type":"text","text":"I looked."}`},
	{strict.Order, `{"type":"tool_result","tool_use_id":"toolu_1_0"},{"type":"text","text":"Mind the gap."}`, `{"type":"text","text":"Mind the gap."},{"type":"tool_result","tool_use_id":"toolu_1_0"}`},
	{strict.Order, `"content":"I mind it."`, `"content":[{"type":"thinking","thinking":"hm","signature":"of one"}]`},
	{strict.Signature, `"signature":"of one"`, `"signature":"of two"`},
	{strict.Signature, `"data":"of one"`, `"data":"of two"`},
	{strict.Signature, `"signature":"of one"`, `"signature":"nobody's"`},
	{strict.Declared, `"is_error":true,`, ``},
	{strict.Declared, `"tools":[{"name":"look","description":"d","input_schema":{"type":"object"}},{"name":"pay","input_schema":{"type":"object"}}],
"tool_choice":{"type":"tool","name":"look"},`, ``},
	{strict.Tools, `"name":"pay","input_schema"`, `"name":"look","input_schema"`},
	{strict.Tools, `"name":"pay","input_schema"`, `"name":"pay now","input_schema"`},
	{strict.Tools, `"name":"pay","input_schema":{"type":"object"}`, `"name":"pay","input_schema":{"type":"array"}`},
	{strict.Choice, `{"type":"tool","name":"look"}`, `{"type":"tool","name":"fly"}`},
	{strict.Choice, `{"type":"tool","name":"look"}`, `{"type":"some"}`},
	{strict.Choice, `{"type":"tool","name":"look"}`, `"auto"`},
}

var badChats = []spoiled{
	{strict.Encoding, `Go on.`, "Go \xff on."},
	{strict.Shape, `"stream":true`, `"streaming":true`},
	{strict.Shape, `"role":"assistant","content":"I mind it."`, `"role":"assistant","content":"I mind it.","thinking":"hm"`},
	{strict.Shape, `"role":"assistant","content":"I mind it."`, `"role":"model","content":"I mind it."`},
	{strict.Shape, `"arguments":"{}"`, `"arguments":{}`},
	{strict.Shape, `"type":"function","function":{"name":"fly"`, `"type":"function","signature":"x","function":{"name":"fly"`},
	{strict.Limit, `"max_completion_tokens":64`, `"max_completion_tokens":64,"max_tokens":64`},
	{strict.Limit, `"max_completion_tokens":64`, `"max_tokens":-1`},
	{strict.System, `"content":"You look."`, `"content":" "`},
	{strict.System, `{"role":"user","content":"Go on."}`, `{"role":"user","content":"Go on."},{"role":"system","content":"Stop."}`},
	{strict.First, `{"role":"user","content":"Find out."},`, ``},
	{strict.Alternation, `{"role":"assistant","content":"I mind it."},`, ``},
	{strict.Alternation, `{"role":"assistant","content":"I mind it."},`, `{"role":"assistant","content":"I"},{"role":"assistant","content":"mind it."},`},
	{strict.Last, `,
{"role":"user","content":"Go on."}`, ``},
	{strict.Empty, `"content":"Go on."`, `"content":" "`},
	{strict.Empty, `"content":"I mind it."`, `"content":""`},
	{strict.Empty, `"content":"seen"`, `"content":""`},
	{strict.Identity, `"id":"call_1_0"`, `"id":"call.1.0"`},
	{strict.Identity, `"id":"call_1_0"`, `"id":"` + strings.Repeat("x", 41) + `"`},
	{strict.Identity, `"id":"call_1_0"`, `"id":"call_1_1"`},
	{strict.Arguments, `"arguments":"{}"`, `"arguments":""`},
	{strict.Arguments, `"arguments":"{}"`, `"arguments":"[]"`},
	{strict.Pairing, `{"role":"tool","tool_call_id":"call_1_0","content":"seen"},`, ``},
	{strict.Pairing, `"tool_call_id":"call_1_0","content":"seen"`, `"tool_call_id":"call_1_1","content":"error: again"`},
	{strict.Pairing, `"tool_call_id":"call_1_0"`, `"tool_call_id":"call_9_0"`},
	{strict.Pairing, `{"role":"tool","tool_call_id":"call_1_0","content":"seen"},
{"role":"user","content":"Mind the gap."},`, `{"role":"user","content":"Mind the gap."},{"role":"tool","tool_call_id":"call_1_0","content":"seen"},`},
	{strict.Declared, `error: there is no fly`, `flown`},
	{strict.Tools, `"name":"pay"`, `"name":"look"`},
	{strict.Tools, `"name":"pay","parameters":{"type":"object"}`, `"name":"pay","parameters":true`},
	{strict.Choice, `{"type":"function","function":{"name":"look"}},
"messages"`, `{"type":"function","function":{"name":"fly"}},
"messages"`},
	{strict.Choice, `{"type":"function","function":{"name":"look"}},
"messages"`, `"any","messages"`},
}

// TestGood: what a provider takes is taken, whichever form of it.
func TestGood(t *testing.T) {
	for name, err := range map[string]error{
		"talk":               anthropic(talk),
		"chat":               openai(chat),
		"a system of words":  anthropic(`{"model":"m","max_tokens":1,"system":"You.","messages":[{"role":"user","content":"x"}]}`),
		"no choice":          anthropic(strings.Replace(talk, `{"type":"tool","name":"look"}`, `{"type":"none"}`, 1)),
		"required":           openai(strings.Replace(chat, `{"type":"function","function":{"name":"look"}},`+"\n"+`"messages"`, `"required","messages"`, 1)),
		"the older limit":    openai(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`),
		"results at the end": openai(chat[:strings.Index(chat, `,`+"\n"+`{"role":"user","content":"Mind`)] + `]}`),
	} {
		if err != nil {
			t.Errorf("%s is refused: %v", name, err)
		}
	}
}

// TestBad: each change breaks the rule that it should, and no other.
func TestBad(t *testing.T) {
	for _, judge := range []struct {
		name string
		good string
		bad  []spoiled
		ask  func(string) error
		not  []strict.Rule // that it does not know
	}{
		{"anthropic", talk, badTalks, anthropic, nil},
		{"openai", chat, badChats, openai, []strict.Rule{strict.Signature, strict.Order}},
	} {
		seen := map[strict.Rule]bool{}
		for _, b := range judge.bad {
			if strings.Count(judge.good, b.old) != 1 {
				t.Errorf("%s: %q is there %d times", judge.name, b.old, strings.Count(judge.good, b.old))
				continue
			}
			var r *strict.Refusal
			err := judge.ask(strings.Replace(judge.good, b.old, b.new, 1))
			if !errors.As(err, &r) || r.Rule != b.rule || r.Where == "" || r.What == "" {
				t.Errorf("%s: %q instead of %q breaks the rule %s, but: %v", judge.name, b.new, b.old, b.rule, err)
			}
			seen[b.rule] = true
		}
		for _, r := range strict.Rules() {
			if !seen[r] && !slices.Contains(judge.not, r) {
				t.Errorf("%s: the rule %s was never seen to fail", judge.name, r)
			}
		}
	}
}

// TestNobodySigns: without a judge of signatures none is taken.
func TestNobodySigns(t *testing.T) {
	var r *strict.Refusal
	if err := strict.Anthropic([]byte(talk), nil); !errors.As(err, &r) || r.Rule != strict.Signature {
		t.Errorf("a signature that nobody knows is taken: %v", err)
	}
}

// FuzzJudges: any bytes get a judgement.
func FuzzJudges(f *testing.F) {
	f.Add([]byte(talk))
	f.Add([]byte(chat))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, err := range []error{strict.Anthropic(body, signed), strict.OpenAI(body)} {
			var r *strict.Refusal
			if err != nil && !errors.As(err, &r) {
				t.Errorf("not a refusal: %v", err)
			}
		}
	})
}
