package agent_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// kinds are the words of the agent's log, those that lead somewhere more often.
var kinds = []string{
	"submitted", "granted", "granted", "granted", "denied", "replied", "replied", "replied", "failed", "started", "started",
	"returned", "returned", "stop_allowed", "stop_vetoed", "canceled", "steered", "answered", "woke", "resumed", "checkpoint", "closed",
}

// source makes facts from bytes: small numbers and words that mean something,
// so that a few bytes go far into the machine.
type source struct {
	data []byte
	s    agent.State
}

func (r *source) byte() byte {
	if len(r.data) == 0 {
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

var words = []string{"", "search", "charge", "delegate", `{"q":"x"}`, `{"task":"look"}`, `{"q":`, " ", "a", "b", "soft", "hard", "retry",
	"approve", "text", "max_output", "refusal", "overload", "network", "undecodable", "vetoed", "token_budget", "1-0", "1-1", "2-0", "root-1-0"}

func (r *source) word() string {
	b := r.byte()
	if b < 128 && len(r.s.Calls) > 0 {
		return r.s.Calls[int(b)%len(r.s.Calls)].ID
	}
	return words[int(b)%len(words)]
}

// fill writes bytes into a fact, field by field. Leases and proposals are
// mostly the newest ones.
func (r *source) fill(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				r.fill(v.Field(i), v.Type().Field(i).Name)
			}
		}
	case reflect.String:
		switch name {
		case "Life":
			v.SetString(string(rune('a' + r.byte()%3)))
		case "Query":
			v.SetString(r.s.Query.Query)
		case "Damaged":
			if r.byte() > 250 {
				v.SetString("damaged")
			}
		default:
			v.SetString(r.word())
		}
	case reflect.Int, reflect.Int64:
		b := int64(r.byte())
		known := map[string]int{"Lease": r.s.Lease, "Proposal": r.s.Proposal, "Attempt": 1}
		if want, ok := known[name]; ok && b < 240 {
			v.SetInt(int64(want))
			return
		}
		v.SetInt(b % 70)
	case reflect.Bool:
		v.SetBool(r.byte() > 180)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		n := int(r.byte()) % 4
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			r.fill(v.Index(i), name)
		}
	}
}

// fact decodes the next fact from the bytes, as a log would.
func (r *source) fact() agent.Fact {
	kind := kinds[int(r.byte())%len(kinds)]
	f, ok, err := agent.Decode(kind, func(into any) error {
		r.fill(reflect.ValueOf(into).Elem(), "")
		if f, ok := into.(*agent.Submitted); ok && f.Task.Rules%2 == 0 {
			*f = agent.Submitted{Task: ordinary}
		}
		return nil
	})
	if err != nil || !ok {
		panic(fmt.Sprintf("%s: %v %v", kind, ok, err))
	}
	return f
}

// ordinary is a task with one tool of each kind.
var ordinary = agent.Task{Run: "r", ID: agent.Root, Goal: "Compare.", Tools: []model.ToolSpec{
	{Name: "search", Class: model.Read, Schema: schema("search")},
	{Name: "charge", Class: model.Effect, Schema: schema("charge")},
	{Name: "delegate", Class: model.Read, Schema: schema("delegate")},
}}

// walk steps an agent through the facts of the bytes and checks what must hold
// after each step.
func walk(data []byte) error {
	r := &source{data: data}
	var s agent.State
	began := map[string]bool{}
	for n := uint64(1); len(r.data) > 0; n++ {
		r.s = s
		e := agent.Event{N: n, At: int64(n) * 60_000, Life: s.Life, Fact: r.fact()}
		if f, ok := e.Fact.(agent.Resumed); ok {
			e.Life = f.Life
		}
		next, effects := agent.Step(s, e)
		agent.Notes(s, e, next)
		if err := holds(s, next, effects, began); err != nil {
			return fmt.Errorf("step %d, %s in phase %q: %w\n%s", n, e.Fact.Kind(), s.Phase, err, messages(next.History))
		}
		s = next
	}
	return nil
}

// holds checks one step of an agent.
func holds(before, after agent.State, effects []agent.Effect, began map[string]bool) error {
	if len(after.History) < len(before.History) {
		return fmt.Errorf("the history shrank from %d to %d", len(before.History), len(after.History))
	}
	for _, fx := range effects {
		switch e := fx.(type) {
		case agent.CallModel:
			if err := strictRequest(e.Request); err != nil {
				return fmt.Errorf("a provider refuses the request: %w", err)
			}
			if key := fmt.Sprint("lease ", e.Lease); began[key] {
				return fmt.Errorf("two attempts under %s", key)
			} else {
				began[key] = true
			}
		case agent.CallTool:
			if key := fmt.Sprint(e.Call, " attempt ", e.Attempt); began[key] {
				return fmt.Errorf("call %s begins twice", key)
			} else {
				began[key] = true
			}
		case agent.Finish:
			if began["finish"] {
				return fmt.Errorf("it finishes twice")
			}
			began["finish"] = true
		}
	}
	if after.Phase == agent.Done && len(after.History) > 0 {
		if err := strict(after.Prompt()); err != nil {
			return fmt.Errorf("the history that is left is refused: %w", err)
		}
	}
	return nil
}

// FuzzStep: any bytes are facts, and no fact makes the loop panic, begin a call
// twice, or send or leave what a provider refuses (A2, B2).
func FuzzStep(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{19, 0, 200, 200, 0, 0, 1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := walk(data); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStepAnyFacts is FuzzStep's short form for every test run.
func TestStepAnyFacts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := walk(rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "facts")); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTwoFutures: a State is a value. Two futures stepped from one do not
// interfere, and the State they came from stays as it was (A4).
func TestTwoFutures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &source{data: rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(t, "past")}
		var s agent.State
		step := func(s agent.State, f agent.Fact) agent.State {
			s, _ = agent.Step(s, agent.Event{At: s.Now + 60_000, Life: s.Life, Fact: f})
			return s
		}
		for len(r.data) > 0 {
			r.s = s
			s = step(s, r.fact())
		}
		was := print(t, s)
		r.s = s
		var futures [2][]agent.Fact
		for i := range futures {
			r.data = rapid.SliceOfN(rapid.Byte(), 20, 200).Draw(t, "future")
			for len(r.data) > 0 {
				futures[i] = append(futures[i], r.fact())
			}
		}
		run := func(s agent.State, facts []agent.Fact) agent.State {
			for _, f := range facts {
				s = step(s, f)
			}
			return s
		}
		alone := print(t, run(s, futures[0]))
		one, two := s, s
		for i := range max(len(futures[0]), len(futures[1])) {
			if i < len(futures[0]) {
				one = step(one, futures[0][i])
			}
			if i < len(futures[1]) {
				two = step(two, futures[1][i])
			}
		}
		if got := print(t, one); got != alone {
			t.Fatalf("beside another future it came out as\n%s\nalone as\n%s", got, alone)
		}
		if got := print(t, s); got != was {
			t.Fatalf("the past changed to\n%s\nfrom\n%s", got, was)
		}
	})
}

func print(t *rapid.T, s agent.State) string {
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestInputBound: what an agent asks for covers every byte of what is then sent (G1, D1).
func TestInputBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &source{data: rapid.SliceOfN(rapid.Byte(), 0, 1500).Draw(t, "facts")}
		var s agent.State
		asked := map[int]int64{}
		for len(r.data) > 0 {
			r.s = s
			f := r.fact()
			if e, ok := f.(agent.Replied); ok {
				e.Reply.UsageKnown = false // a reported prefix would be taken at its word
				f = e
			}
			var effects []agent.Effect
			s, effects = agent.Step(s, agent.Event{At: s.Now + 1000, Life: s.Life, Fact: f})
			for _, fx := range effects {
				switch e := fx.(type) {
				case agent.Reserve:
					asked[e.Lease] = e.Ask.Input
				case agent.CallModel:
					if sent := size(e.Request); sent > asked[e.Lease] {
						t.Fatalf("lease %d was asked for %d tokens, %d bytes are sent", e.Lease, asked[e.Lease], sent)
					}
				}
			}
		}
	})
}

// size is how many bytes a request has at least.
func size(r model.Request) int64 {
	n := budget.Text(r.System) + budget.Tools(r.Tools)
	for _, m := range r.Messages {
		n += budget.Message(m)
	}
	return n
}
