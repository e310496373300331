package wiretest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/model"
)

// Requests are requests of every kind that troupe makes, by name, to one model. The opaque
// blocks are what that model thought before its calls.
func Requests(name string, opaque ...model.Opaque) map[string]model.Request {
	const schema = `{"type":"object","properties":{"path":{"type":"string","minLength":1}},"required":["path"]}`
	user := model.Message{Role: model.User, Text: "Hello?"}
	call := model.Message{Role: model.Assistant, Text: "I look.", Opaque: opaque,
		Calls: []model.ToolCall{{ID: "1-0", Name: "read_file", Args: `{"path": "a.go", "n": 1e3}`}, {ID: "1-1", Name: "7 zip", Args: `{"pa`, Cut: true}}}
	results := model.Message{Role: model.ToolRole, Results: []model.ToolResult{{Call: "1-0", Text: "if a < b && c > d {\n\t\"é\u2028\"\n}"}, {Call: "1-1", Text: "cut", Error: true}}}
	tools := []model.ToolSpec{{Name: "read_file", Description: "Reads <a file> & more.", Schema: schema}, {Name: "now"}}
	warm := 0.5
	whole := model.Request{Model: name, System: "Be brief.", Dynamic: "It is Monday.", MaxOutput: 30_000, Temperature: &warm, Effort: "low",
		Messages: []model.Message{user, call, results, {Role: model.User, Text: "Hurry."}}, Tools: tools}
	out := map[string]model.Request{"whole": whole, "smallest": {Model: name, MaxOutput: 1, Messages: []model.Message{user}}}
	add := func(kind string, change func(*model.Request)) {
		r := whole
		change(&r)
		out[kind] = r
	}
	add("forced", func(r *model.Request) { r.Choice, r.Messages = "read_file", r.Messages[:1] })
	add("forced to any", func(r *model.Request) { r.Choice, r.Messages = model.ChoiceAny, r.Messages[:1] })
	add("forced to what is not offered", func(r *model.Request) { r.Choice = "ask_human" })
	add("closing", func(r *model.Request) { r.NoTools = true })
	add("structured", func(r *model.Request) { r.Schema = schema })
	add("structured loosely", func(r *model.Request) { r.Schema = `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}` })
	add("structured, closing", func(r *model.Request) { r.Schema, r.NoTools = schema, true })
	add("structured, alone", func(r *model.Request) { r.Schema, r.Tools = schema, nil })
	add("high effort", func(r *model.Request) { r.Effort = "high" })
	add("no effort, no temperature", func(r *model.Request) { r.Effort, r.Temperature = "", nil })
	add("coldest", func(r *model.Request) { zero := 0.0; r.Temperature = &zero })
	add("without tools", func(r *model.Request) { r.Tools = nil })
	add("only a dynamic prompt", func(r *model.Request) { r.System = " " })
	add("no prompt", func(r *model.Request) { r.System, r.Dynamic = "", "\n" })
	add("media", func(r *model.Request) { r.Messages = Shown() })
	add("media without text", func(r *model.Request) { m := Shown()[0]; m.Text = ""; r.Messages = []model.Message{m} })
	add("tools of a stranger", func(r *model.Request) {
		r.Tools = []model.ToolSpec{{Name: "a", Schema: `{"anyOf":[{"type":"object","properties":{"x":{"type":"string"}}},{"$ref":"#/$defs/y"}],"$defs":{"y":{"type":"object","properties":{"z":{}}}}}`},
			{Name: "b", Schema: `{"type":"object"}`}, {Name: "c", Description: "D.", Schema: "{\n  \"type\": \"object\",\n  \"properties\": {\"a\": {\"pattern\": \"<&>\"}}\n}"}}
	})
	add("a stormy record", func(r *model.Request) {
		r.Messages = []model.Message{user, {Role: model.Assistant, Text: "lost", Tombstone: true}, {Role: model.User, Text: "Still \xff there?"}, call, results,
			{Role: model.Assistant, Text: " "}, {Role: model.User, Text: "\n"}, {Role: model.User, Text: "Well?"}, {Role: model.Assistant, Text: "So.\xfe"}, {Role: model.User, Text: "<b>&amp;\u2028</b>"}}
	})
	add("calls without text", func(r *model.Request) {
		silent, empty := call, results
		silent.Text, empty.Results = "", []model.ToolResult{{Call: "1-0"}, {Call: "1-1", Text: " ", Error: true}}
		r.Messages = []model.Message{user, silent, empty}
	})
	add("ends with the model", func(r *model.Request) { r.Messages = []model.Message{user, {Role: model.Assistant, Text: "Once"}} })
	return out
}

// tap takes requests from the wire, and sends nothing.
type tap struct {
	request *http.Request
	body    []byte
}

var errTapped = errors.New("the request was taken from the wire")

func (w *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	var err error
	if w.body, err = io.ReadAll(r.Body); err != nil {
		return nil, err
	}
	w.request = r
	return nil, errTapped
}

// Sent is a request on the wire.
type Sent struct {
	Name   string
	URL    string
	Header http.Header
	Body   []byte
}

// SentRequests returns what a client sends for requests, in the order of their names. with
// makes a client that sends them by a transport.
func SentRequests(t *testing.T, requests map[string]model.Request, with func(http.RoundTripper) (model.Client, error)) []Sent {
	t.Helper()
	var out []Sent
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		w := &tap{}
		c, err := with(w)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Complete(t.Context(), requests[name], nil); w.request == nil {
			t.Errorf("%s: not sent: %v", name, err)
			continue
		}
		out = append(out, Sent{name, w.request.URL.String(), w.request.Header, w.body})
	}
	return out
}

// ownHeaders are the headers that adapters set for their providers.
var ownHeaders = []string{"Accept", "Anthropic-Beta", "Anthropic-Version", "Authorization", "Content-Type", "X-Api-Key", "X-Goog-Api-Key"}

// String renders a request for a golden file: its address, the headers that adapters set, and
// the body with its keys in order.
func (s Sent) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\nPOST %s\n", s.Name, s.URL)
	for _, name := range ownHeaders {
		if v := s.Header.Values(name); v != nil {
			fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(v, ", "))
		}
	}
	d := json.NewDecoder(bytes.NewReader(s.Body))
	d.UseNumber()
	var body any
	if err := d.Decode(&body); err != nil {
		return fmt.Sprintf("%s%q: %v\n", b.String(), s.Body, err)
	}
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(body); err != nil {
		return err.Error() // what was decoded encodes
	}
	return b.String()
}
