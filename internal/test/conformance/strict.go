// Package conformance judges the body of a request to a model as the provider that
// gets it would, from its JSON alone: Anthropic's Messages API, OpenAI's Chat
// Completions and Responses, and Google's generateContent.
//
// It shares no code with the agent loop, nor with the adapters that build the
// bodies, and it is stricter than the providers are: what one of them only
// tolerates (two messages of a side in a row, a field that it ignores) is
// refused here, because the next provider may not.
package conformance

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// rule is one thing that a request must keep.
type rule string

// The rules. All judges know all of them, except Signature and Order in Chat
// Completions, which has no field for a signature.
const (
	Encoding    rule = "encoding"    // the body is JSON in UTF-8
	Shape       rule = "shape"       // it has the fields that the API knows, of their types, and no others
	Limit       rule = "limit"       // the request states the most that may be written, once
	System      rule = "system"      // the system prompt is sent once, first, and is not empty
	First       rule = "first"       // the user speaks first
	Alternation rule = "alternation" // the sides take turns
	Last        rule = "last"        // the model is asked to speak last
	Empty       rule = "empty"       // nothing is empty
	Identity    rule = "identity"    // ids of calls are well formed, and each is used once
	Arguments   rule = "arguments"   // the arguments of a call are a JSON object
	Pairing     rule = "pairing"     // each call has exactly one result, directly after it, and no result is an orphan
	Order       rule = "order"       // the parts of one message have the order that the API requires
	Signature   rule = "signature"   // signed content goes back to the model that signed it and to no other
	Declared    rule = "declared"    // a tool that the history names is declared, or its result says that it failed
	Tools       rule = "tools"       // tools are well formed, and each is declared once
	Choice      rule = "choice"      // the choice of a tool is one that the tools allow
)

// refusal is why a provider does not take a request.
type refusal struct {
	Rule  rule
	Where string // in the document
	What  string
}

// Error names the rule, the position in the request and the problem.
func (r *refusal) Error() string {
	return fmt.Sprintf("strict: %s: %s: %s", r.Rule, r.Where, r.What)
}

func refuseRequest(rule rule, where, format string, args ...any) error {
	return &refusal{Rule: rule, Where: where, What: fmt.Sprintf(format, args...)}
}

// name matches the call ids and tool names that every API accepts.
var name = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// jsonObject is a JSON object whose fields are not read yet.
type jsonObject map[string]json.RawMessage

// readDocument reads a whole body.
func readDocument(body []byte) (jsonObject, error) {
	var o jsonObject
	if !utf8.Valid(body) {
		return nil, refuseRequest(Encoding, "body", "it is not UTF-8")
	}
	if err := json.Unmarshal(body, &o); err != nil || o == nil {
		return nil, refuseRequest(Encoding, "body", "it is not a JSON object: %v", err)
	}
	return o, nil
}

// checkFields checks that an object has the required fields (a name with a "!") and
// no field that is not listed.
func (o jsonObject) checkFields(where string, names ...string) error {
	for i, n := range names {
		plain, required := strings.CutSuffix(n, "!")
		names[i] = plain
		if required && o[plain] == nil {
			return refuseRequest(Shape, where, "%q is missing", plain)
		}
	}
	for n := range o {
		if !slices.Contains(names, n) {
			return refuseRequest(Shape, where, "there is no field %q", n)
		}
	}
	return nil
}

// readField decodes a field as a type; an absent one stays zero.
func readField[T any](o jsonObject, where, field string) (v T, err error) {
	raw, ok := o[field]
	if !ok {
		return v, nil
	}
	if err := json.Unmarshal(raw, &v); err != nil || string(raw) == "null" {
		return v, refuseRequest(Shape, where, "%q is not a %T", field, v)
	}
	return v, nil
}

// isObject reports whether raw is one JSON object.
func isObject(raw []byte) bool {
	var o jsonObject
	return json.Unmarshal(raw, &o) == nil && o != nil
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// toolTranscript is what all judges ask of the calls of a document.
type toolTranscript struct {
	ids      map[string]bool
	declared map[string]bool
	open     []toolCall // of the message before
}

type toolCall struct{ id, tool string }

// addCall takes a call.
func (t *toolTranscript) addCall(where, id, tool string, input []byte) error {
	switch {
	case !name.MatchString(id):
		return refuseRequest(Identity, where, "the id %q of a call is not well formed", id)
	case t.ids[id]:
		return refuseRequest(Identity, where, "the id %q is used twice", id)
	case !name.MatchString(tool):
		return refuseRequest(Shape, where, "%q is no name of a tool", tool)
	case !isObject(input):
		return refuseRequest(Arguments, where, "the arguments of %s are not a JSON object: %s", id, input)
	case len(t.declared) == 0:
		return refuseRequest(Declared, where, "there is a call of %s, and no tool is declared", tool)
	}
	t.ids[id] = true
	return nil
}

// checkAnswers checks the results that directly follow the open calls. A call of an
// undeclared tool is the model's mistake: the result of such a call must be a failure.
func (t *toolTranscript) checkAnswers(where string, results []toolAnswer) error {
	seen := map[string]int{}
	for _, r := range results {
		i := slices.IndexFunc(t.open, func(c toolCall) bool { return c.id == r.id })
		if i < 0 {
			return refuseRequest(Pairing, where, "the result %q answers no call before it", r.id)
		}
		if seen[r.id]++; seen[r.id] > 1 {
			return refuseRequest(Pairing, where, "the call %q has two results", r.id)
		}
		if tool := t.open[i].tool; !t.declared[tool] && !r.failed {
			return refuseRequest(Declared, where, "%s is not declared, and %q has a result that is no failure", tool, r.id)
		}
	}
	for _, c := range t.open {
		if seen[c.id] == 0 {
			return refuseRequest(Pairing, where, "the call %q has no result", c.id)
		}
	}
	t.open = nil
	return nil
}

type toolAnswer struct {
	id     string
	failed bool
}
