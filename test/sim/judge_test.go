package sim

import (
	"bytes"
	"errors"
	"hash/maphash"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/test/conformance"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/anthropic"
	"github.com/troupe-run/troupe/model/gemini"
	"github.com/troupe-run/troupe/model/openai"
)

// judge sends requests through the adapters, catches what they would write on
// the wire, and lets package conformance judge that by the rules of each API.
type judge struct {
	clients [4]model.Client
	wires   [4]*requestRecorder
	judged  int // bodies
	seen    map[uint64]bool
	buf     []byte
}

func newJudge(t *testing.T) *judge {
	t.Helper()
	j := &judge{wires: [4]*requestRecorder{{}, {}, {}, {}}, seen: map[uint64]bool{}}
	a, err := anthropic.New(anthropic.Config{BaseURL: "http://judge", Transport: j.wires[0]})
	if err != nil {
		t.Fatal(err)
	}
	o, err := openai.New(openai.Config{BaseURL: "http://judge", Transport: j.wires[1]})
	if err != nil {
		t.Fatal(err)
	}
	r, err := openai.New(openai.Config{BaseURL: "http://judge", API: openai.APIResponses, Transport: j.wires[2]})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gemini.New(gemini.Config{BaseURL: "http://judge", Transport: j.wires[3]})
	if err != nil {
		t.Fatal(err)
	}
	j.clients = [4]model.Client{a, o, r, g}
	return j
}

// requestRecorder takes a request and sends nothing.
type requestRecorder struct{ body []byte }

var errTapped = errors.New("the request was taken from the wire")

// RoundTrip is part of http.RoundTripper.
func (w *requestRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	var err error
	if w.body, err = io.ReadAll(r.Body); err != nil {
		return nil, err
	}
	return nil, errTapped
}

// request judges a request as each provider would get it. What was judged
// before is not judged again.
func (j *judge) request(t *testing.T, r model.Request) error {
	t.Helper()
	j.buf = canonRequest(j.buf[:0], &r)
	key := maphash.Bytes(hashSeed, j.buf)
	if j.seen[key] {
		return nil
	}
	j.seen[key] = true
	_, r.Model, _ = strings.Cut(r.Model, "/")
	for i, c := range j.clients {
		j.wires[i].body = nil
		if _, err := c.Complete(t.Context(), r, nil); j.wires[i].body == nil {
			return err // the adapter refuses it unsent
		}
		j.judged++
		// The simulator's models sign in Anthropic's form only.
		var err error
		switch body := j.wires[i].body; i {
		case 0:
			err = conformance.Anthropic(body, signer)
		case 1:
			err = conformance.OpenAI(body)
		case 2:
			err = conformance.Responses(body, nil)
		default:
			err = conformance.Gemini(body, r.Model, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// history judges what an agent leaves behind, as the model would get it that
// is asked to go on from there: the prompt, and the whole record.
func (j *judge) history(t *testing.T, s agent.State) error {
	t.Helper()
	r := model.Request{Model: s.Task.Model.Name, System: s.Task.System, Tools: s.Task.Tools, MaxOutput: 1}
	for _, messages := range [][]model.Message{s.Prompt(), s.History} {
		r.Messages = append(messages[:len(messages):len(messages)], model.Message{Role: model.User, Text: "Go on."})
		if err := j.request(t, r); err != nil {
			return err
		}
	}
	return nil
}

func canonRequest(b []byte, r *model.Request) []byte {
	b = appendStrings(b, r.Model, r.System, r.Dynamic, r.Choice)
	b = appendBools(b, r.NoTools)
	b = appendNumbers(b, len(r.Tools))
	for i := range r.Messages {
		b = canonMessage(b, &r.Messages[i])
	}
	return b
}

// signer reads which model of Anthropic issued a signature of the simulator's:
// they say so themselves.
func signer(signature string) string {
	who, _ := strings.CutPrefix(signature, signedBy+anthropic.Provider+"/")
	return who
}

// TestJudgeRefusesBrokenTranscripts: the way from a transcript to a judgement is open: what is broken
// on purpose is refused, what is not is taken.
func TestJudgeRefusesBrokenTranscripts(t *testing.T) {
	j := newJudge(t)
	good := model.Request{Model: "anthropic/one", MaxOutput: 9, Tools: tools, Messages: []model.Message{
		{Role: model.User, Text: "x"}, {Role: model.Assistant, Calls: []model.ToolCall{{ID: "1-0", Name: "look", Args: "{}"}}},
		{Role: model.ToolRole, Results: []model.ToolResult{{Call: "1-0", Text: "y"}}}}}
	if err := j.request(t, good); err != nil || j.judged != 4 || !bytes.Contains(j.wires[0].body, []byte("toolu_1_0")) {
		t.Fatalf("%v, %d bodies judged: %s", err, j.judged, j.wires[0].body)
	}
	for name, bad := range map[string][]model.Message{
		"an unanswered call": good.Messages[:2],
		"an orphan":          {good.Messages[0], good.Messages[2]},
		"no user":            good.Messages[1:],
		"the last word":      {good.Messages[0], {Role: model.Assistant, Text: "z"}},
		"a success of a tool that is none": {good.Messages[0], {Role: model.Assistant, Calls: []model.ToolCall{{ID: "1-0", Name: "fly", Args: "{}"}}},
			good.Messages[2]},
	} {
		r := good
		r.Messages = bad
		if err := j.request(t, r); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
