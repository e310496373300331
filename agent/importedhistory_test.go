package agent_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// recallHistory begins an agent with a history, part by part, each through an entry.
func recallHistory(t *testing.T, past history.Transcript) agent.State {
	t.Helper()
	parts, err := agent.RecallParts(past, "p")
	if err != nil {
		t.Fatal(err)
	}
	var s agent.State
	for i, part := range parts {
		raw, err := mailbox.Marshal(part)
		if err != nil {
			t.Fatalf("part %d of %d does not fit an entry: %v", i, len(parts), err)
		}
		var back agent.Recalled
		if err := mailbox.Unmarshal(raw, &back); err != nil {
			t.Fatal(err)
		}
		s = stepAgent(s, back)
	}
	return stepAgent(s, agent.Submitted{Task: ordinary})
}

var idForm = regexp.MustCompile(`^past-[0-9]{1,20}$`)

// withoutNames is a history without the ids of its calls, and with what is sent.
func withoutNames(t *testing.T, messages []model.Message) string {
	t.Helper()
	var list []model.Message
	for _, m := range messages {
		if m.Tokens > budget.Message(m) {
			m.Tokens = 0 // an estimate beyond the bound is not believed
		}
		m.Calls = append([]model.ToolCall(nil), m.Calls...)
		for i := range m.Calls {
			m.Calls[i].ID = ""
		}
		m.Results = append([]model.ToolResult(nil), m.Results...)
		for i := range m.Results {
			m.Results[i].Call = ""
		}
		list = append(list, m)
	}
	raw, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Whatever has happened to an agent, its history can be exported, written as
// JSON, and recalled: the same messages, struck ones too, under new ids, in a
// fork of a fork as well (D6).
//
//behaviour:shows D6
func TestAnyHistoryCanBeRecalled(t *testing.T) {
	messages := 0
	for seed := range uint64(500) {
		s, _ := followFacts(agent.State{}, randomBytes(seed, 60+int(seed%500)))
		if len(s.History) == 0 {
			continue
		}
		for generation := range 3 {
			past := s.Past()
			if err := past.Check(); err != nil {
				t.Fatalf("seed %d, generation %d: its own history is refused: %v\n%s", seed, generation, err, stateText(t, s))
			}
			raw, err := json.Marshal(past)
			var read history.Transcript
			if err == nil {
				err = json.Unmarshal(raw, &read)
			}
			if err != nil || !reflect.DeepEqual(withoutNames(t, read.Messages), withoutNames(t, past.Messages)) {
				t.Fatalf("seed %d: as JSON it is another one: %v", seed, err)
			}
			fork := recallHistory(t, read)
			n := fork.Recalled
			if got, want := withoutNames(t, fork.History[:n]), withoutNames(t, past.Messages); got != want {
				t.Fatalf("seed %d, generation %d: recalled as\n%s\nit was\n%s", seed, generation, got, want)
			}
			if err := strictTranscript(fork.Prompt()); err != nil {
				t.Fatalf("seed %d, generation %d: a provider refuses what was recalled: %v", seed, generation, err)
			}
			for _, m := range fork.History[:n] {
				messages++
				for _, c := range m.Calls {
					if !idForm.MatchString(c.ID) {
						t.Fatalf("seed %d: a call is called %q", seed, c.ID)
					}
				}
			}
			s, _ = followFacts(fork, randomBytes(seed+7, 200)) // and it goes on
		}
	}
	if messages < 2000 {
		t.Errorf("only %d messages were recalled", messages)
	}
}

// However a history is made up, an agent begins, and no provider refuses what
// it is sent; what Check accepts is recalled as it is.
func TestArbitraryHistoryYieldsValidRequests(t *testing.T) {
	accepted := 0
	for seed := range sampledSeeds(2000) {
		r := &factSource{data: randomBytes(seed, 400)}
		var messages []model.Message
		for range 1 + r.nextByte()%9 {
			var m model.Message
			r.fillFact(reflect.ValueOf(&m).Elem(), "")
			m.Role = []model.Role{model.User, model.Assistant, model.ToolRole, model.Assistant, model.User, "x"}[r.nextByte()%6]
			m.Tombstone, m.Tokens = r.nextByte() > 230, 0
			if r.nextByte() < 250 {
				m.Media = nil
			}
			if m.Role != model.Assistant && r.nextByte() < 200 {
				m.Calls = nil
			}
			if m.Role != model.ToolRole && r.nextByte() < 200 {
				m.Results = nil
			}
			messages = append(messages, m)
		}
		past := history.Transcript{Form: history.Form, Messages: messages}
		if r.nextByte() > 128 {
			past.Fold = &history.Summary{Upto: int(r.nextByte()%12) - 1, Text: r.nextWord()}
		}
		err := past.Check()
		if known := (*history.Error)(nil); err != nil && (!errors.As(err, &known) || known.Place == "" || known.Remedy == "" || known.What == "") {
			t.Fatalf("seed %d: refused without place and remedy: %v", seed, err)
		}
		s := recallHistory(t, past)
		if bad := strictTranscript(s.Prompt()); bad != nil {
			t.Fatalf("seed %d: a provider refuses it: %v", seed, bad)
		}
		if err == nil {
			accepted++
			kept := s.History[:s.Recalled]
			if closed := len(kept) - len(messages); closed != 0 && closed != 1 || withoutNames(t, kept[:len(messages)]) != withoutNames(t, messages) {
				t.Fatalf("seed %d: accepted, and changed to\n%s\nfrom\n%s", seed, withoutNames(t, kept), withoutNames(t, messages))
			}
		}
	}
	if accepted < 15 {
		t.Errorf("only %d of them were accepted", accepted)
	}
}

// What is too large for one entry goes in parts, a message of many results in
// pieces, and comes out as it was; what is too much is refused with its place.
func TestALargeHistoryGoesInParts(t *testing.T) {
	many := model.Message{Role: model.Assistant}
	results := model.Message{Role: model.ToolRole}
	for i := range 40 {
		id := string(rune('A' + i))
		many.Calls = append(many.Calls, model.ToolCall{ID: id, Name: "search", Args: `{}`})
		results.Results = append(results.Results, model.ToolResult{Call: id, Text: strings.Repeat("r", 60<<10)})
	}
	past := history.Transcript{Form: history.Form, Fold: &history.Summary{Upto: 3, Text: "the beginning"},
		Messages: []model.Message{{Role: model.User, Text: "go"}, many, results, {Role: model.Assistant, Text: "done"}}}
	if err := past.Check(); err != nil {
		t.Fatal(err)
	}
	s := recallHistory(t, past)
	if got := withoutNames(t, s.History[:s.Recalled]); got != withoutNames(t, past.Messages) || s.Fold.Upto != 3 || s.Fold.Text != "the beginning" {
		t.Errorf("%d messages, fold %d: %.300s", s.Recalled, s.Fold.Upto, got)
	}
	small := history.Transcript{Form: history.Form}
	for range history.MessagesMax / 2 {
		small.Messages = append(small.Messages, model.Message{Role: model.User, Text: "a"}, model.Message{Role: model.Assistant, Text: "b"})
	}
	if s := recallHistory(t, small); s.Recalled != history.MessagesMax {
		t.Errorf("%d of %d small messages", s.Recalled, history.MessagesMax)
	}
	small.Messages = append(small.Messages, model.Message{Role: model.User, Text: "one more"})
	huge := history.Transcript{Form: history.Form, Messages: []model.Message{{Role: model.User, Text: strings.Repeat("x", history.BytesMax)}}}
	single := history.Transcript{Form: history.Form, Messages: []model.Message{{Role: model.User, Text: "a"}, {Role: model.Assistant, Text: strings.Repeat("x", 250<<10)}}}
	for want, p := range map[string]history.Transcript{"messages: there are 4097": small, "messages: they are 8388": huge} {
		if err := p.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := agent.RecallParts(single, "p"); err == nil || !strings.HasPrefix(err.Error(), "message 1: it is too large") {
		t.Errorf("one message: %v", err)
	}
}

// A history that is too large to be handed to a child is not cut: the model
// reads that it was not delegated, and what to do.
func TestOversizedHistoryIsNotDelegated(t *testing.T) {
	roomy := ordinary
	roomy.Model = spec.Model{}
	s := stepAgent(agent.State{}, agent.Submitted{Task: roomy})
	reply := func(calls ...model.ToolCall) {
		s = stepAgent(s, agent.Granted{Reservation: s.Reservation, Output: 100, Calls: 64})
		s = stepAgent(s, agent.Replied{Reservation: s.Reservation, Reply: model.Reply{Message: model.Message{Role: model.Assistant, Calls: calls}}})
	}
	for range 3 {
		reply(model.ToolCall{Name: "search", Args: `{"q":"x"}`})
		s = stepAgent(s, agent.Returned{Call: s.Calls[0].ID, Attempt: 1, Text: strings.Repeat("r", message.PartBytesMax/3)})
	}
	reply(model.ToolCall{Name: "delegate", Args: `{"task":"check","fork":true}`}, model.ToolCall{Name: "delegate", Args: `{"task":"check"}`})
	forked, plain := s.Calls[0], s.Calls[1]
	if !forked.Result.Error || !strings.Contains(forked.Result.Text, "it was not delegated. Delegate without fork") || plain.Stage != agent.Running {
		t.Errorf("forked: %+v\nplain: %s", forked.Result, plain.Stage)
	}
}

// Two calls of one id are two calls, and each has a result of its own.
func TestDuplicateCallIDsMatchResultsInOrder(t *testing.T) {
	s := recallHistory(t, history.Transcript{Form: history.Form, Messages: []model.Message{{Role: model.User, Text: "go"},
		{Role: model.Assistant, Calls: []model.ToolCall{{ID: "a", Name: "search", Args: `{}`}, {ID: "a", Name: "search", Args: `{}`}}},
		{Role: model.ToolRole, Results: []model.ToolResult{{Call: "a", Text: "first"}, {Call: "a", Text: "second"}}}}})
	if r := s.History[2].Results; len(r) != 2 || r[0].Text != "first" || r[1].Text != "second" || r[0].Call == r[1].Call {
		t.Errorf("%+v", r)
	}
}
