package budget_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/budget/tokens"
	"github.com/troupe-run/troupe/model"
)

// A conversation of this measure: an agent reads pieces of one kind of text,
// turn by turn, and says some of it back.
const (
	readTurns  = 24
	pieceBytes = 6 << 10 // of a result
	saidBytes  = 1 << 10 // of a reply
	counted    = 4       // tokens that the provider adds to a message, call or result
)

// textKinds are the five kinds of text; four are this repository's own.
func textKinds(t *testing.T) map[string]string {
	t.Helper()
	read := func(patterns ...string) string {
		var b strings.Builder
		for _, p := range patterns {
			files, err := filepath.Glob(filepath.FromSlash(p))
			if err != nil || len(files) == 0 {
				t.Fatalf("%s: %v", p, err)
			}
			for _, f := range files {
				data, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				b.Write(data)
			}
		}
		return b.String()
	}
	code := read("*.go", "../model/*.go", "../supervisor/*.go")
	return map[string]string{"code": code, "prose": read("../docs/*.md", "../*.md"), "json": read("../internal/control/schemas/*.json"),
		"chinese": read("testdata/chinese.txt"), "base64": base64.StdEncoding.EncodeToString([]byte(code))}
}

// textPiece is the nth piece of a text, which begins again at its end.
func textPiece(text string, n, size int) string {
	at := n * size % max(1, len(text)-size)
	return strings.ToValidUTF8(text[at:at+min(size, len(text)-at)], "")
}

// messageCounter counts each message once: a transcript is sent again and again.
type messageCounter map[string]int64

func (c messageCounter) countMessage(m model.Message) int64 {
	key := m.Text
	for _, r := range m.Results {
		key += r.Text
	}
	if _, ok := c[key]; !ok {
		c[key] = tokens.Message(m)
	}
	return c[key]
}

// billedTokens is what a provider with the vocabulary of package tokens counts.
func (c messageCounter) billedTokens(r model.Request) int64 {
	n := tokens.Count(r.System) + tokens.Count(r.Dynamic)
	for _, s := range r.Tools {
		n += counted + tokens.Count(s.Name) + tokens.Count(s.Description) + tokens.Count(s.Schema)
	}
	for _, m := range r.Messages {
		n += counted + c.countMessage(m)
		n += counted * int64(len(m.Calls)+len(m.Results))
	}
	return n
}

// reservedAndUsed is what one conversation reserved and used, call by call.
type reservedAndUsed struct{ held, used, prompt, bound []int64 }

// driveLoop drives the loop itself: what it asks for is what a node would hold.
func driveLoop(t *testing.T, text string) (l reservedAndUsed) {
	t.Helper()
	s, c := agent.State{}, messageCounter{}
	var fx []agent.Effect
	step := func(f agent.Fact) {
		next, stepped := agent.Step(s, agent.Input{At: s.Now + 10, Activation: "a", Fact: f})
		s, fx = next, stepped.Effects
	}
	step(agent.Resumed{Activation: "a"})
	step(agent.Submitted{Task: spec.Task{ID: spec.Root, Goal: textPiece(text, 1, 300), System: "You read carefully, and say what you have read.",
		Model: spec.Model{Name: "m/one"}, Limits: spec.Limits{Turns: readTurns + 2},
		Tools: []model.ToolSpec{{Name: "read", Description: "Reads a piece.", Class: model.Read, Schema: `{"type":"object","properties":{"n":{"type":"integer"}}}`}}}})
	for turn := range readTurns {
		at := slices.IndexFunc(fx, func(e agent.Effect) bool { _, ok := e.(agent.Reserve); return ok })
		if at < 0 {
			t.Fatalf("turn %d reserves nothing: %T", turn, fx)
		}
		ask := fx[at].(agent.Reserve).Request
		step(agent.Granted{Reservation: s.Reservation, Output: ask.Output, Calls: ask.Calls})
		call, ok := fx[len(fx)-1].(agent.CallModel)
		if !ok {
			t.Fatalf("turn %d calls no model: %T", turn, fx)
		}
		said := model.Message{Role: model.Assistant, Text: textPiece(text, turn, saidBytes), Calls: []model.ToolCall{{Name: "read", Args: `{"n":1}`}}}
		u := model.Usage{Input: c.billedTokens(call.Request), Output: counted + c.countMessage(said)}
		l.held, l.used = append(l.held, budget.Price{}.Bound(ask.Input, ask.Output).Tokens), append(l.used, u.Total())
		l.prompt, l.bound = append(l.prompt, u.Input), append(l.bound, ask.Input)
		if u.Output > ask.Output || l.used[turn] > l.held[turn] {
			t.Errorf("call %d: %d tokens used, %d held", turn, l.used[turn], l.held[turn])
		}
		step(agent.Replied{Reservation: s.Reservation, Reply: model.Reply{Message: said, Usage: u, UsageKnown: true, Stop: model.StopTools}})
		step(agent.Returned{Call: s.Calls[0].ID, Attempt: 1, Text: textPiece(text, 3*turn, pieceBytes)})
	}
	return l
}

func sumOf(list []int64) (n int64) {
	for _, v := range list {
		n += v
	}
	return n
}

// overMost is the most that a run may hold for each token that it uses: what
// this measure has printed, and a little. The aim is 1.3.
const overMost = 1.35

// TestOverReservation prints how much is held for each token that is used, and
// shows that never more is used than was held (issue 5, item 6). The vocabulary is
// the one that is here, which is no provider's: where a provider makes fewer
// tokens of the same bytes the figure is higher, where it makes more it is lower.
// go test ./budget -run OverReservation -v
//
//behaviour:shows G1
func TestOverReservation(t *testing.T) {
	t.Logf("%-8s %6s %11s %11s %11s %11s %11s %11s", "kind", "calls", "used", "held", "a run", "a call", "worst call", "its prompt")
	var held, used int64
	for _, kind := range []string{"code", "prose", "json", "chinese", "base64"} {
		l := driveLoop(t, textKinds(t)[kind])
		var each []float64
		for i := range l.held {
			each = append(each, float64(l.held[i])/float64(l.used[i]))
		}
		slices.Sort(each)
		run := float64(sumOf(l.held)) / float64(sumOf(l.used))
		t.Logf("%-8s %6d %11d %11d %11.2f %11.2f %11.2f %11.2f", kind, len(each), sumOf(l.used), sumOf(l.held), run, each[len(each)/2], each[len(each)-1],
			float64(sumOf(l.bound))/float64(sumOf(l.prompt)))
		if run > overMost {
			t.Errorf("%s: a run holds %.2f times what it uses, at most %.1f is usual", kind, run, overMost)
		}
		held, used = held+sumOf(l.held), used+sumOf(l.used)
	}
	t.Logf("all: %.2f; tokens beyond what was held: 0 in every call, or this test fails", float64(held)/float64(used))
}
