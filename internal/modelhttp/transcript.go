package modelhttp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-run/troupe/model"
)

// SendableWithMedia returns the messages of a request's transcript to send, without tombstones, to be read only, or
// an error if no provider would accept them: they must begin with a user message, every
// call must be answered directly after by the results of the same ids in the same order,
// and no id may occur twice. Media must be in messages of the user, with their bytes. A request that
// breaks this is a bug of troupe, so it is refused, unsent, instead of silently repaired.
func SendableWithMedia(req model.Request) ([]model.Message, error) {
	if req.MaxOutput <= 0 {
		return nil, UnsentError("the request has no output limit")
	}
	out := withoutTombstones(req.Messages)
	if len(out) == 0 || out[0].Role != model.User {
		return nil, UnsentError("the transcript does not begin with a user message")
	}
	seen, _ := callIDSets.Get().(map[string]bool)
	if seen == nil {
		seen = map[string]bool{}
	}
	defer func() {
		clear(seen)
		callIDSets.Put(seen)
	}()
	for i := range out {
		var before []model.ToolCall
		if i > 0 {
			before = out[i-1].Calls
		}
		if err := checkMessage(i, &out[i], before, seen); err != nil {
			return nil, err
		}
	}
	if len(out[len(out)-1].Calls) > 0 {
		return nil, UnsentError("the transcript ends in calls without results")
	}
	return out, nil
}

// callIDSets are sets of call ids, empty: every turn checks the ids of the whole transcript.
var callIDSets sync.Pool

// withoutTombstones returns the messages themselves if none is a tombstone: few transcripts have one, and a copy would
// cost a turn as much as the transcript is long.
func withoutTombstones(messages []model.Message) []model.Message {
	for i := range messages {
		if messages[i].Tombstone {
			return slices.DeleteFunc(slices.Clone(messages), func(m model.Message) bool { return m.Tombstone })
		}
	}
	return messages
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
func checkMessage(i int, m *model.Message, before []model.ToolCall, seen map[string]bool) error {
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
func CallID(prefix, id string) string {
	var room [64]byte
	return string(appendCallID(room[:0], prefix, id))
}

func appendCallID(dst []byte, prefix, id string) []byte {
	dst = append(dst, prefix...)
	for _, r := range id {
		if r == '-' {
			r = '_'
		}
		dst = append(dst, byte(safeRune(r)))
	}
	return dst
}

// MaxName is the longest tool name that all providers take.
const MaxName = 64

// CallName converts the name of a call in a transcript to one that providers accept: models
// invent names, and the record of one must not make the next request fail.
func CallName(name string) string {
	if name = strings.Map(safeRune, name); name == "" {
		return "_"
	}
	return name[:min(len(name), MaxName)]
}

// safeRune replaces what no provider accepts in a name or an id.
func safeRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
		return r
	}
	return '_'
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
