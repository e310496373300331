package conformance_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/test/conformance"
)

// talk is a request that Anthropic takes: thoughts, two calls at once, one of
// a tool that nobody declared, both answered, and a word of the user.
const talk = `{"model":"one","max_tokens":64,"stream":true,"temperature":0.5,
"system":[{"type":"text","text":"You look.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"It is late."}],
"tools":[{"name":"look","description":"d","input_schema":{"type":"object","properties":{}}},{"name":"pay","input_schema":{"type":"object","properties":{}}}],
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
"tools":[{"type":"function","function":{"name":"look","description":"d","parameters":{"type":"object","properties":{}}}},{"type":"function","function":{"name":"pay","parameters":{"type":"object","properties":{}}}}],
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

// list is a request that the Responses API takes, of the same kind.
const list = `{"model":"one","max_output_tokens":64,"stream":true,"store":false,"include":["reasoning.encrypted_content"],
"instructions":"You look.",
"tools":[{"type":"function","name":"look","description":"d","strict":false,"parameters":{"type":"object","properties":{}}},{"type":"function","name":"pay","strict":false,"parameters":{"type":"object","properties":{}}}],
"tool_choice":{"type":"function","name":"look"},
"input":[
{"role":"user","content":"Find out."},
{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"of one"},
{"role":"assistant","content":"I look.","phase":"commentary"},
{"type":"function_call","call_id":"call_1_0","name":"look","arguments":"{\"q\":\"x\"}"},
{"type":"function_call","call_id":"call_1_1","name":"fly","arguments":"{}"},
{"type":"function_call_output","call_id":"call_1_1","output":"error: there is no fly"},
{"type":"function_call_output","call_id":"call_1_0","output":"seen"},
{"role":"user","content":"Mind the gap."},
{"role":"assistant","content":"I mind it."},
{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,YQ==","detail":"high"},
 {"type":"input_file","filename":"b.pdf","file_data":"data:application/pdf;base64,Yg=="},{"type":"input_text","text":"Go on."}]}]}`

// parts is a request that Gemini takes, of the same kind.
const parts = `{"generationConfig":{"maxOutputTokens":64,"temperature":0.5},"systemInstruction":{"parts":[{"text":"You look."},{"text":"It is late."}]},
"tools":[{"functionDeclarations":[{"name":"look","description":"d","parametersJsonSchema":{"type":"object","properties":{}}},{"name":"pay","description":"p"}]}],
"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["look"]}},
"contents":[
{"role":"user","parts":[{"text":"Find out."}]},
{"role":"model","parts":[{"text":"hm","thought":true,"thoughtSignature":"of one"},{"text":"I look."},
 {"functionCall":{"id":"call_1_0","name":"look","args":{"q":"x"}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"call_1_1","name":"fly","args":{}}}]},
{"role":"user","parts":[{"functionResponse":{"id":"call_1_1","name":"fly","response":{"error":"there is no fly"}}},
 {"functionResponse":{"id":"call_1_0","name":"look","response":{"output":""}}},{"text":"Mind the gap."}]},
{"role":"model","parts":[{"text":"I mind it."}]},
{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"YQ=="}},{"text":"Go on."}]}]}`

// signed: a signature says whose it is.
func signed(signature string) string {
	_, who, _ := strings.Cut(signature, "of ")
	return who
}

func anthropic(body string) error { return conformance.Anthropic([]byte(body), signed) }
func openai(body string) error    { return conformance.OpenAI([]byte(body)) }

func responses(body string) error { return conformance.Responses([]byte(body), signed) }
func gemini(body string) error    { return conformance.Gemini([]byte(body), "one", signed) }

// spoiled is a document with one change, and the rule that it breaks.
type spoiled struct {
	rule     conformance.Rule
	old, new string
}

var badTalks = []spoiled{
	{conformance.Media, `"content":"Go on."`, `"content":[{"type":"image","source":{"type":"url","media_type":"image/png","data":"YQ=="}}]`},
	{conformance.Media, `"content":"Go on."`, `"content":[{"type":"document","source":{"type":"base64","media_type":"image/png","data":"YQ=="}}]`},
	{conformance.Media, `"content":"Go on."`, `"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"?"}}]`},
	{conformance.Shape, `"content":"Go on."`, `"content":[{"type":"image","source":{"type":"base64","data":"YQ=="}}]`},
	{conformance.Shape, `{"role":"assistant","content":"I mind it."}`, `{"role":"assistant","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"YQ=="}}]}`},
	{conformance.Encoding, `Go on.`, "Go \xff on."},
	{conformance.Encoding, `"messages":[`, `"messages"[`},
	{conformance.Shape, `"stream":true`, `"streaming":true`},
	{conformance.Shape, `"model":"one"`, `"model":""`},
	{conformance.Shape, `"messages":[
{`, `"messages":[{"role":"system","content":"x"},{`},
	{conformance.Shape, `{"role":"user","content":"Go on."}`, `{"role":"user"}`},
	{conformance.Shape, `"is_error":true`, `"is_error":"yes"`},
	{conformance.Shape, `{"role":"assistant","content":"I mind it."}`, `{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"x"}]}`},
	{conformance.Shape, `{"role":"user","content":"Go on."}`, `{"role":"user","content":[{"type":"tool_use","id":"x","name":"look","input":{}}]}`},
	{conformance.Shape, `"cache_control":{"type":"ephemeral"}`, `"cache_control":{"type":"for ever"}`},
	{conformance.Shape, `"name":"fly","input"`, `"name":"fly away","input"`},
	{conformance.Limit, `"max_tokens":64`, `"max_tokens":0`},
	{conformance.System, `"text":"It is late."`, `"text":"  "`},
	{conformance.System, `{"type":"text","text":"It is late."}`, strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 4) + `{"type":"text","text":"y"}`},
	{conformance.First, `"messages":[
{"role":"user","content":[{"type":"text","text":"Find out."}]},`, `"messages":[`},
	{conformance.Alternation, `{"role":"assistant","content":"I mind it."},`, ``},
	{conformance.Alternation, `{"role":"assistant","content":"I mind it."},`, `{"role":"assistant","content":"I"},{"role":"assistant","content":"mind it."},`},
	{conformance.Last, `,
{"role":"user","content":"Go on."}`, ``},
	{conformance.Empty, `"content":"Go on."`, `"content":" "`},
	{conformance.Empty, `"content":"Go on."`, `"content":[]`},
	{conformance.Empty, `"text":"Mind the gap."`, `"text":""`},
	{conformance.Empty, `"text":"there is no fly"`, `"text":""`},
	{conformance.Identity, `"id":"toolu_1_0"`, `"id":"toolu.1.0"`},
	{conformance.Identity, `"id":"toolu_1_0"`, `"id":""`},
	{conformance.Identity, `"id":"toolu_1_0"`, `"id":"` + strings.Repeat("x", 65) + `"`},
	{conformance.Identity, `"id":"toolu_1_0"`, `"id":"toolu_1_1"`},
	{conformance.Arguments, `"input":{"q":"x"}`, `"input":"{}"`},
	{conformance.Arguments, `"input":{"q":"x"}`, `"input":null`},
	{conformance.Pairing, `{"type":"tool_result","tool_use_id":"toolu_1_0"},`, ``},
	{conformance.Pairing, `"tool_use_id":"toolu_1_0"`, `"tool_use_id":"toolu_1_1","is_error":true`},
	{conformance.Pairing, `"tool_use_id":"toolu_1_0"`, `"tool_use_id":"toolu_1_7"`},
	{conformance.Pairing, `{"role":"user","content":"Go on."}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1_0"}]}`},
	{conformance.Pairing, `{"role":"assistant","content":"I mind it."}`, `{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"look","input":{}}]}`},
	{conformance.Order, `"name":"fly","input":{}}`, `"name":"fly","input":{}},{"type":"text","text":"I looked."}`},
	{conformance.Order, `{"type":"tool_result","tool_use_id":"toolu_1_0"},{"type":"text","text":"Mind the gap."}`, `{"type":"text","text":"Mind the gap."},{"type":"tool_result","tool_use_id":"toolu_1_0"}`},
	{conformance.Order, `"content":"I mind it."`, `"content":[{"type":"thinking","thinking":"hm","signature":"of one"}]`},
	{conformance.Signature, `"signature":"of one"`, `"signature":"of two"`},
	{conformance.Signature, `"data":"of one"`, `"data":"of two"`},
	{conformance.Signature, `"signature":"of one"`, `"signature":"nobody's"`},
	{conformance.Declared, `"is_error":true,`, ``},
	{conformance.Declared, `"tools":[{"name":"look","description":"d","input_schema":{"type":"object","properties":{}}},{"name":"pay","input_schema":{"type":"object","properties":{}}}],
"tool_choice":{"type":"tool","name":"look"},`, ``},
	{conformance.Tools, `"name":"pay","input_schema"`, `"name":"look","input_schema"`},
	{conformance.Tools, `"name":"pay","input_schema"`, `"name":"pay now","input_schema"`},
	{conformance.Tools, `"name":"pay","input_schema":{"type":"object","properties":{}}`, `"name":"pay","input_schema":{"type":"array"}`},
	{conformance.Tools, `"name":"pay","input_schema":{"type":"object","properties":{}}`, `"name":"pay","input_schema":{"type":"object"}`},
	{conformance.Tools, `"name":"pay","input_schema":{"type":"object","properties":{}}`, `"name":"pay","input_schema":{"type":"object","properties":{},"oneOf":[]}`},
	{conformance.Choice, `{"type":"tool","name":"look"}`, `{"type":"tool","name":"fly"}`},
	{conformance.Choice, `{"type":"tool","name":"look"}`, `{"type":"some"}`},
	{conformance.Choice, `{"type":"tool","name":"look"}`, `"auto"`},
}

var badChats = []spoiled{
	{conformance.Media, `"content":"Go on."`, `"content":[{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}]`},
	{conformance.Media, `"content":"Go on."`, `"content":[{"type":"image_url","image_url":{"url":"data:image/tiff;base64,YQ=="}}]`},
	{conformance.Media, `"content":"Go on."`, `"content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,"}}]`},
	{conformance.Shape, `"content":"Go on."`, `"content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,YQ=="}}]`},
	{conformance.Shape, `"content":"Go on."`, `"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,YQ==","detail":"all"}}]`},
	{conformance.Shape, `"content":"Go on."`, `"content":[{"type":"video","video":{}}]`},
	{conformance.Empty, `"content":"Go on."`, `"content":[{"type":"text","text":" "}]`},
	{conformance.Empty, `"content":"Go on."`, `"content":[]`},
	{conformance.Encoding, `Go on.`, "Go \xff on."},
	{conformance.Shape, `"stream":true`, `"streaming":true`},
	{conformance.Shape, `"role":"assistant","content":"I mind it."`, `"role":"assistant","content":"I mind it.","thinking":"hm"`},
	{conformance.Shape, `"role":"assistant","content":"I mind it."`, `"role":"model","content":"I mind it."`},
	{conformance.Shape, `"arguments":"{}"`, `"arguments":{}`},
	{conformance.Shape, `"type":"function","function":{"name":"fly"`, `"type":"function","signature":"x","function":{"name":"fly"`},
	{conformance.Limit, `"max_completion_tokens":64`, `"max_completion_tokens":64,"max_tokens":64`},
	{conformance.Limit, `"max_completion_tokens":64`, `"max_tokens":-1`},
	{conformance.System, `"content":"You look."`, `"content":" "`},
	{conformance.System, `{"role":"user","content":"Go on."}`, `{"role":"user","content":"Go on."},{"role":"system","content":"Stop."}`},
	{conformance.First, `{"role":"user","content":"Find out."},`, ``},
	{conformance.Alternation, `{"role":"assistant","content":"I mind it."},`, ``},
	{conformance.Alternation, `{"role":"assistant","content":"I mind it."},`, `{"role":"assistant","content":"I"},{"role":"assistant","content":"mind it."},`},
	{conformance.Last, `,
{"role":"user","content":"Go on."}`, ``},
	{conformance.Empty, `"content":"Go on."`, `"content":" "`},
	{conformance.Empty, `"content":"I mind it."`, `"content":""`},
	{conformance.Empty, `"content":"seen"`, `"content":""`},
	{conformance.Identity, `"id":"call_1_0"`, `"id":"call.1.0"`},
	{conformance.Identity, `"id":"call_1_0"`, `"id":"` + strings.Repeat("x", 41) + `"`},
	{conformance.Identity, `"id":"call_1_0"`, `"id":"call_1_1"`},
	{conformance.Arguments, `"arguments":"{}"`, `"arguments":""`},
	{conformance.Arguments, `"arguments":"{}"`, `"arguments":"[]"`},
	{conformance.Pairing, `{"role":"tool","tool_call_id":"call_1_0","content":"seen"},`, ``},
	{conformance.Pairing, `"tool_call_id":"call_1_0","content":"seen"`, `"tool_call_id":"call_1_1","content":"error: again"`},
	{conformance.Pairing, `"tool_call_id":"call_1_0"`, `"tool_call_id":"call_9_0"`},
	{conformance.Pairing, `{"role":"tool","tool_call_id":"call_1_0","content":"seen"},
{"role":"user","content":"Mind the gap."},`, `{"role":"user","content":"Mind the gap."},{"role":"tool","tool_call_id":"call_1_0","content":"seen"},`},
	{conformance.Declared, `error: there is no fly`, `flown`},
	{conformance.Tools, `"name":"pay"`, `"name":"look"`},
	{conformance.Tools, `"name":"pay","parameters":{"type":"object","properties":{}}`, `"name":"pay","parameters":true`},
	{conformance.Choice, `{"type":"function","function":{"name":"look"}},
"messages"`, `{"type":"function","function":{"name":"fly"}},
"messages"`},
	{conformance.Choice, `{"type":"function","function":{"name":"look"}},
"messages"`, `"any","messages"`},
}

var badLists = []spoiled{
	{conformance.Encoding, `Go on.`, "Go \xff on."},
	{conformance.Shape, `"stream":true`, `"streaming":true`},
	{conformance.Shape, `"store":false`, `"store":true`},
	{conformance.Shape, `"model":"one"`, `"model":""`},
	{conformance.Shape, `"role":"assistant","content":"I mind it."`, `"role":"model","content":"I mind it."`},
	{conformance.Shape, `{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,YQ==","detail":"high"},
 {"type":"input_file","filename":"b.pdf","file_data":"data:application/pdf;base64,Yg=="},{"type":"input_text","text":"Go on."}]}`, `{"type":"item_reference","id":"msg_1"}`},
	{conformance.Shape, `"arguments":"{}"`, `"arguments":{}`},
	{conformance.Shape, `"name":"pay","strict":false`, `"name":"pay"`},
	{conformance.Shape, `"type":"reasoning","id":"rs_1"`, `"type":"reasoning"`},
	{conformance.Limit, `"max_output_tokens":64`, `"max_output_tokens":0`},
	{conformance.System, `"instructions":"You look."`, `"instructions":" "`},
	{conformance.First, `{"role":"user","content":"Find out."},`, ``},
	{conformance.Alternation, `{"role":"assistant","content":"I mind it."},`, ``},
	{conformance.Last, `,
{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,YQ==","detail":"high"},
 {"type":"input_file","filename":"b.pdf","file_data":"data:application/pdf;base64,Yg=="},{"type":"input_text","text":"Go on."}]}`, ``},
	{conformance.Empty, `"text":"Go on."`, `"text":" "`},
	{conformance.Media, `data:image/png`, `data:image/tiff`},
	{conformance.Media, `base64,Yg==`, `base64,`},
	{conformance.Shape, `"filename":"b.pdf",`, ``},
	{conformance.Shape, `,"detail":"high"`, ``},
	{conformance.Shape, `"type":"input_text"`, `"type":"text"`},
	{conformance.Empty, `"content":"I mind it."`, `"content":""`},
	{conformance.Empty, `"output":"seen"`, `"output":""`},
	{conformance.Identity, `"type":"function_call","call_id":"call_1_0"`, `"type":"function_call","call_id":"call.1.0"`},
	{conformance.Identity, `"type":"function_call","call_id":"call_1_0"`, `"type":"function_call","call_id":""`},
	{conformance.Identity, `"type":"function_call","call_id":"call_1_0"`, `"type":"function_call","call_id":"call_1_1"`},
	{conformance.Arguments, `"arguments":"{}"`, `"arguments":""`},
	{conformance.Arguments, `"arguments":"{}"`, `"arguments":"[]"`},
	{conformance.Pairing, `{"type":"function_call_output","call_id":"call_1_0","output":"seen"},`, ``},
	{conformance.Pairing, `"call_id":"call_1_0","output":"seen"`, `"call_id":"call_1_1","output":"error: again"`},
	{conformance.Pairing, `"call_id":"call_1_0","output":"seen"`, `"call_id":"call_9_0","output":"seen"`},
	{conformance.Pairing, `{"type":"function_call_output","call_id":"call_1_0","output":"seen"},
{"role":"user","content":"Mind the gap."},`, `{"role":"user","content":"Mind the gap."},{"type":"function_call_output","call_id":"call_1_0","output":"seen"},`},
	{conformance.Order, `{"role":"assistant","content":"I mind it."},`, `{"role":"assistant","content":"I mind it."},{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"of one"},`},
	{conformance.Signature, `"encrypted_content":"of one"`, `"encrypted_content":"of two"`},
	{conformance.Signature, `"encrypted_content":"of one"`, `"encrypted_content":"nobody's"`},
	{conformance.Declared, `error: there is no fly`, `flown`},
	{conformance.Tools, `"name":"pay"`, `"name":"look"`},
	{conformance.Tools, `"name":"pay","strict":false,"parameters":{"type":"object","properties":{}}`, `"name":"pay","strict":false,"parameters":true`},
	{conformance.Choice, `"tool_choice":{"type":"function","name":"look"}`, `"tool_choice":{"type":"function","name":"fly"}`},
	{conformance.Choice, `"tool_choice":{"type":"function","name":"look"}`, `"tool_choice":"any"`},
	{conformance.Choice, `"tool_choice":{"type":"function","name":"look"}`, `"tool_choice":1`},
}

var badParts = []spoiled{
	{conformance.Encoding, `Go on.`, "Go \xff on."},
	{conformance.Shape, `"toolConfig"`, `"tool_config"`},
	{conformance.Shape, `{"role":"model","parts":[{"text":"I mind it."}]}`, `{"role":"assistant","parts":[{"text":"I mind it."}]}`},
	{conformance.Shape, `{"text":"I mind it."}`, `{"text":"I mind it.","functionResponse":{"id":"x","name":"look","response":{}}}`},
	{conformance.Shape, `{"text":"Go on."}`, `{"functionCall":{"id":"x","name":"look","args":{}}}`},
	{conformance.Shape, `{"error":"there is no fly"}`, `{"failure":"there is no fly"}`},
	{conformance.Shape, `"name":"pay","description":"p"`, `"name":"pay"`},
	{conformance.Limit, `"maxOutputTokens":64`, `"maxOutputTokens":0`},
	{conformance.System, `"text":"It is late."`, `"text":" "`},
	{conformance.System, `{"parts":[{"text":"You look."},{"text":"It is late."}]}`, `{"parts":[]}`},
	{conformance.First, `{"role":"user","parts":[{"text":"Find out."}]},`, ``},
	{conformance.Alternation, `{"role":"model","parts":[{"text":"I mind it."}]},`, ``},
	{conformance.Last, `,
{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"YQ=="}},{"text":"Go on."}]}`, ``},
	{conformance.Media, `"mimeType":"image/png"`, `"mimeType":"image/tiff"`},
	{conformance.Media, `"data":"YQ=="`, `"data":"?"`},
	{conformance.Shape, `"data":"YQ=="`, `"data":"YQ==","name":"x"`},
	{conformance.Empty, `"text":"Go on."`, `"text":" "`},
	{conformance.Empty, `[{"text":"I mind it."}]`, `[]`},
	{conformance.Identity, `"functionCall":{"id":"call_1_0"`, `"functionCall":{"id":"call.1.0"`},
	{conformance.Identity, `"functionCall":{"id":"call_1_0"`, `"functionCall":{"id":"call_1_1"`},
	{conformance.Arguments, `"args":{}`, `"args":"{}"`},
	{conformance.Pairing, `{"functionResponse":{"id":"call_1_0","name":"look","response":{"output":""}}},`, ``},
	{conformance.Pairing, `"functionResponse":{"id":"call_1_0","name":"look"`, `"functionResponse":{"id":"call_9_0","name":"look"`},
	{conformance.Pairing, `"functionResponse":{"id":"call_1_0","name":"look"`, `"functionResponse":{"id":"call_1_0","name":"pay"`},
	{conformance.Order, `{"text":"Mind the gap."}]`, `{"text":"Mind the gap."},{"functionResponse":{"id":"call_1_0","name":"look","response":{}}}]`},
	{conformance.Signature, `"thoughtSignature":"of one"`, `"thoughtSignature":"of two"`},
	{conformance.Signature, `"thoughtSignature":"of one"`, `"thoughtSignature":"skip_thought_signature_validator"`},
	{conformance.Declared, `{"error":"there is no fly"}`, `{"output":"flown"}`},
	{conformance.Tools, `"name":"pay","description"`, `"name":"look","description"`},
	{conformance.Tools, `"parametersJsonSchema":{"type":"object","properties":{}}`, `"parametersJsonSchema":{"type":"array"}`},
	{conformance.Tools, `"tools":[{"functionDeclarations":[{"name":"look","description":"d","parametersJsonSchema":{"type":"object","properties":{}}},{"name":"pay","description":"p"}]}]`, `"tools":[]`},
	{conformance.Choice, `"allowedFunctionNames":["look"]`, `"allowedFunctionNames":["fly"]`},
	{conformance.Choice, `"mode":"ANY"`, `"mode":"NONE"`},
	{conformance.Choice, `"mode":"ANY","allowedFunctionNames":["look"]`, `"mode":"SOME"`},
}

// TestValidRequestsOfEveryFormAreAccepted: what a provider takes is taken, whichever form of it.
func TestValidRequestsOfEveryFormAreAccepted(t *testing.T) {
	for name, err := range map[string]error{
		"talk":               anthropic(talk),
		"chat":               openai(chat),
		"list":               responses(list),
		"parts":              gemini(parts),
		"none of a list":     responses(strings.Replace(list, `{"type":"function","name":"look"},`, `"none",`, 1)),
		"a system of words":  anthropic(`{"model":"m","max_tokens":1,"system":"You.","messages":[{"role":"user","content":"x"}]}`),
		"media to the one":   anthropic(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"YQ=="}},{"type":"document","title":"a","source":{"type":"base64","media_type":"application/pdf","data":"YQ=="}},{"type":"text","text":"x"}]}]}`),
		"media to the other": openai(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,YQ==","detail":"high"}},{"type":"file","file":{"filename":"a","file_data":"data:application/pdf;base64,YQ=="}},{"type":"text","text":"x"}]}]}`),
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

// TestEachRuleRefusesItsViolation: each change breaks the rule that it should, and no other.
func TestEachRuleRefusesItsViolation(t *testing.T) {
	for _, judge := range []struct {
		name string
		good string
		bad  []spoiled
		ask  func(string) error
		not  []conformance.Rule // that it does not know
	}{
		{"anthropic", talk, badTalks, anthropic, nil},
		{"openai", chat, badChats, openai, []conformance.Rule{conformance.Signature, conformance.Order}},
		{"responses", list, badLists, responses, nil},
		{"gemini", parts, badParts, gemini, nil},
	} {
		seen := map[conformance.Rule]bool{}
		for _, b := range judge.bad {
			if strings.Count(judge.good, b.old) != 1 {
				t.Errorf("%s: %q is there %d times", judge.name, b.old, strings.Count(judge.good, b.old))
				continue
			}
			var r *conformance.Refusal
			err := judge.ask(strings.Replace(judge.good, b.old, b.new, 1))
			if !errors.As(err, &r) || r.Rule != b.rule || r.Where == "" || r.What == "" {
				t.Errorf("%s: %q instead of %q breaks the rule %s, but: %v", judge.name, b.new, b.old, b.rule, err)
			}
			seen[b.rule] = true
		}
		for _, r := range conformance.Rules() {
			if !seen[r] && !slices.Contains(judge.not, r) {
				t.Errorf("%s: the rule %s was never seen to fail", judge.name, r)
			}
		}
	}
}

// TestSignaturesNeedAJudge: without a judge of signatures none is taken.
func TestSignaturesNeedAJudge(t *testing.T) {
	var r *conformance.Refusal
	for name, err := range map[string]error{"anthropic": conformance.Anthropic([]byte(talk), nil), "responses": conformance.Responses([]byte(list), nil),
		"gemini": conformance.Gemini([]byte(parts), "one", nil)} {
		if !errors.As(err, &r) || r.Rule != conformance.Signature {
			t.Errorf("%s: a signature that nobody knows is taken: %v", name, err)
		}
	}
}

// FuzzJudges: any bytes get a judgement.
func FuzzJudges(f *testing.F) {
	f.Add([]byte(talk))
	f.Add([]byte(chat))
	f.Add([]byte(list))
	f.Add([]byte(parts))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, err := range []error{conformance.Anthropic(body, signed), conformance.OpenAI(body), conformance.Responses(body, signed), conformance.Gemini(body, "one", signed)} {
			var r *conformance.Refusal
			if err != nil && !errors.As(err, &r) {
				t.Errorf("not a refusal: %v", err)
			}
		}
	})
}
