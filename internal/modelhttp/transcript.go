package modelhttp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// SendableWithMedia returns the messages of a request's transcript to send, without tombstones, or
// an error if no provider would accept them: they must begin with a user message, every
// call must be answered directly after by the results of the same ids in the same order,
// and no id may occur twice. Media must be in messages of the user, with their bytes. A request that
// breaks this is a bug of troupe, so it is refused, unsent, instead of silently repaired.
func SendableWithMedia(req model.Request) ([]model.Message, error) {
	if req.MaxOutput <= 0 {
		return nil, UnsentError("the request has no output limit")
	}
	var out []model.Message
	for _, m := range req.Messages {
		if !m.Tombstone {
			out = append(out, m)
		}
	}
	if len(out) == 0 || out[0].Role != model.User {
		return nil, UnsentError("the transcript does not begin with a user message")
	}
	seen := map[string]bool{}
	for i, m := range out {
		var before []model.ToolCall
		if i > 0 {
			before = out[i-1].Calls
		}
		if err := checkMessage(i, m, before, seen); err != nil {
			return nil, err
		}
	}
	if len(out[len(out)-1].Calls) > 0 {
		return nil, UnsentError("the transcript ends in calls without results")
	}
	return out, nil
}

// ToolChoice returns the tool choice of a request in a valid form: "", model.ChoiceAny or a
// name. A name that is not among the tools forces nothing: a provider would refuse the
// whole request.
func ToolChoice(req model.Request) string {
	named := func(t model.ToolSpec) bool { return t.Name == req.Choice }
	if req.NoTools || len(req.Tools) == 0 || req.Choice != model.ChoiceAny && !slices.ContainsFunc(req.Tools, named) {
		return ""
	}
	return req.Choice
}

// checkMessage checks message i against the calls of the message before it.
func checkMessage(i int, m model.Message, before []model.ToolCall, seen map[string]bool) error {
	switch {
	case m.Role != model.User && m.Role != model.Assistant && m.Role != model.ToolRole:
		return UnsentError("message %d: unknown role %q", i, m.Role)
	case m.Role == model.ToolRole && len(before) == 0:
		return UnsentError("message %d: results without calls before them", i)
	case m.Role != model.ToolRole && len(before) > 0:
		return UnsentError("message %d: call %s has no result", i, before[0].ID)
	case m.Role == model.ToolRole && len(m.Results) != len(before):
		return UnsentError("message %d: %d results for %d calls", i, len(m.Results), len(before))
	case m.Role != model.User && len(m.Media) > 0:
		return UnsentError("message %d: media in a message of role %s", i, m.Role)
	case m.Role != model.Assistant && len(m.Calls) > 0:
		return UnsentError("message %d: calls in a message of role %s", i, m.Role)
	}
	for _, d := range m.Media {
		if len(d.Data) == 0 || model.KindOf(d.Type) == "" {
			return UnsentError("message %d: %s %q without its bytes, or of no type that can be sent", i, d.Type, d.Name)
		}
	}
	for j, r := range m.Results {
		if m.Role == model.ToolRole && r.Call != before[j].ID {
			return UnsentError("message %d: result %d answers %q instead of %q", i, j, r.Call, before[j].ID)
		}
	}
	for _, c := range m.Calls {
		if c.ID == "" || seen[c.ID] {
			return UnsentError("message %d: the call id %q is empty or was used before", i, c.ID)
		}
		seen[c.ID] = true
	}
	return nil
}

// UnsentError is the error of a request that is refused before it is sent.
func UnsentError(format string, args ...any) error {
	return &model.Error{Class: model.BadRequest, Unbilled: true, Message: "not sent: " + fmt.Sprintf(format, args...)}
}

// CallID derives a wire id from troupe's: providers accept letters, digits, _ and -.
func CallID(prefix, id string) string { return prefix + safeName(strings.ReplaceAll(id, "-", "_"), "") }

// MaxName is the longest tool name that all providers take.
const MaxName = 64

// CallName converts the name of a call in a transcript to one that providers accept: models
// invent names, and the record of one must not make the next request fail.
func CallName(name string) string {
	name = safeName(name, "_")
	return name[:min(len(name), MaxName)]
}

func safeName(s, empty string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s)
	if s == "" {
		return empty
	}
	return s
}

// CallArguments returns the arguments of a call in a transcript as a JSON object. Text that is
// not JSON goes back to the model as a string inside an object, so that the model can see
// what it wrote. JSON that is not valid UTF-8 is repaired, because it is sent verbatim.
func CallArguments(c model.ToolCall) json.RawMessage {
	c.Args = strings.ToValidUTF8(c.Args, "\uFFFD")
	if IsObject(c.Args) {
		return json.RawMessage(c.Args)
	}
	data, err := json.Marshal(map[string]string{"undecodable_arguments": c.Args})
	if err != nil {
		return json.RawMessage(`{}`) // a map of strings always encodes
	}
	return data
}

// IsBlank reports whether a text is one that a provider would reject as empty.
func IsBlank(text string) bool { return strings.TrimSpace(text) == "" }
