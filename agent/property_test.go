package agent_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// kinds are the words of the agent's log, those that lead somewhere more often.
var kinds = []string{
	"submitted", "granted", "granted", "granted", "denied", "replied", "replied", "replied", "failed", "started", "started",
	"returned", "returned", "hooked", "stop_allowed", "stop_vetoed", "canceled", "steered", "answered", "woke", "resumed", "checkpoint", "closed", "recalled", "messaged", "log_verified",
}

// likely are the facts that mean something in a phase.
var likely = map[agent.Phase][]string{
	"":              {"submitted", "recalled"},
	agent.Reserving: {"granted", "granted", "granted", "granted", "denied", "steered", "canceled"},
	agent.Thinking:  {"replied", "replied", "replied", "replied", "replied", "failed", "steered", "canceled", "resumed"},
	agent.Acting:    {"hooked", "log_verified", "started", "started", "returned", "returned", "returned", "resumed", "steered", "canceled"},
	agent.Waiting:   {"messaged", "woke", "woke", "answered", "answered", "returned", "resumed", "canceled"},
	agent.Stopping:  {"stop_vetoed", "stop_vetoed", "stop_allowed", "hooked", "steered", "resumed"},
	agent.Hooking:   {"hooked", "hooked", "hooked", "hooked", "steered", "resumed", "canceled"},
}

// factSource makes facts from bytes: small numbers and words that mean something,
// so that a few bytes go far into the machine.
type factSource struct {
	data []byte
	s    agent.State
	task *spec.Task // nil: ordinary
}

func (r *factSource) nextByte() byte {
	if len(r.data) == 0 {
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

var words = []string{"", "search", "charge", "delegate", `{"q":"x"}`, `{"task":"look"}`, `{"task":"look","background":true}`, "send_message", `{"to":"parent","text":"x"}`, `{"q":`, " ", "a", strings.Repeat("many words ", 30), "soft", "hard", "retry",
	"approve", "text", "max_output", "refusal", "too_long", "overload", "network", "undecodable", "vetoed", "token_budget", "1-0", "1-1", "2-0", "root-1-0"}

func (r *factSource) nextWord() string {
	b := r.nextByte()
	if b < 128 && len(r.s.Calls) > 0 {
		return r.s.Calls[int(b)%len(r.s.Calls)].ID
	}
	return words[int(b)%len(words)]
}

// leftEmpty are fields whose arbitrary values would make every answer mean nothing, or every call be denied.
var leftEmpty = []string{"Digest", "Always", "By", "Shows", "Permissions", "Granted", "QuestionMS"}

// fillFact writes bytes into a fact, field by field. Reservations and proposals are
// mostly the newest ones.
func (r *factSource) fillFact(v reflect.Value, name string) {
	if slices.Contains(leftEmpty, name) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				r.fillFact(v.Field(i), v.Type().Field(i).Name)
			}
		}
	case reflect.String:
		switch name {
		case "Activation":
			v.SetString(string(rune('a' + r.nextByte()%3)))
		case "Query", "Timer":
			if name == "Timer" {
				v.SetString([]string{"soft", "hard", "retry", "retry", "retry", "retry"}[r.nextByte()%6])
				return
			}
			v.SetString(r.s.Suspended.Question.Query)
		case "Damaged":
			if r.nextByte() > 250 {
				v.SetString("damaged")
			}
		default:
			v.SetString(r.nextWord())
		}
	case reflect.Int, reflect.Int64:
		b := int64(r.nextByte())
		known := map[string]int{"Reservation": r.s.Reservation, "Proposal": r.s.Proposal, "Attempt": 1}
		if want, ok := known[name]; ok && b < 240 {
			v.SetInt(int64(want))
			return
		}
		v.SetInt(b % 70)
	case reflect.Bool:
		v.SetBool(r.nextByte() > 180)
	case reflect.Map: // what a node has otherwise
		if b := r.nextByte(); b > 200 {
			key := []string{spec.PromptVersion, spec.RouteVersion, spec.ToolVersion + "charge"}[b%3]
			v.Set(reflect.ValueOf(map[string]string{key: words[b%3]}))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		n := int(r.nextByte()) % 4
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			r.fillFact(v.Index(i), name)
		}
	}
}

// nextFact decodes the next fact from the bytes, as a log would.
func (r *factSource) nextFact() agent.Fact {
	kind := kinds[int(r.nextByte())%len(kinds)]
	if b, next := r.nextByte(), likely[r.s.Phase]; b < 200 && len(next) > 0 {
		kind = next[int(b)%len(next)]
	}
	f, ok, err := agent.Decode(kind, func(into any) error {
		r.fillFact(reflect.ValueOf(into).Elem(), "")
		r.aimFact(into)
		return nil
	})
	if err != nil || !ok {
		panic(fmt.Sprintf("%s: %v %v", kind, ok, err))
	}
	return f
}

// aimFact makes a fact one that the machine waits for, most of the time.
func (r *factSource) aimFact(into any) {
	if r.nextByte() > 230 {
		return
	}
	open := agent.Call{}
	for _, c := range r.s.Calls {
		if c.Stage == agent.Starting || c.Stage == agent.Running {
			open = c
		}
	}
	switch f := into.(type) {
	case *agent.Submitted:
		f.Task = ordinary
		if r.task != nil {
			f.Task = *r.task
		}
	case *agent.Hooked:
		r.aimHooked(f)
	case *agent.Started:
		f.Call, f.Attempt, f.Activation = open.ID, open.Attempt, r.s.Activation
	case *agent.Returned:
		f.Call, f.Attempt = open.ID, open.Attempt
	case *agent.LogVerified:
		f.Activation = r.s.LogVerification.Asked
	case *agent.Messaged:
		if f.Call = ""; len(r.s.BackgroundChildren) > 0 && r.nextByte() > 60 {
			f.From, f.Call = r.s.BackgroundChildren[0].Child, r.s.BackgroundChildren[0].Call
		}
	case *agent.Replied:
		if f.Dropped < 65 { // mostly all of a reply is kept
			f.Dropped = 0
		}
		for i := range f.Reply.Message.Calls {
			f.Reply.Message.Calls[i] = []model.ToolCall{{Name: "search", Args: `{"q":"x"}`}, {Name: "charge", Args: `{"q":"5"}`},
				{Name: "delegate", Args: `{"task":"look"}`}, {Name: "search", Args: `{"q":7}`}, {Name: "refund", Args: `{"q":"5"}`},
				{Name: "ask_human", Args: `{"question":"Which?"}`}, {Name: "append_run_journal_entry", Args: `{"section":"decisions","entry":"so"}`},
				{Name: "update_run_journal", Args: `{"objective":"compare"}`}, {Name: "send_message", Args: `{"to":"parent","text":"x"}`}}[r.nextByte()%9]
		}
	case *agent.Failed:
		if r.nextByte() > 200 {
			f.Class = model.TooLong
		}
	case *agent.Woke:
		for _, c := range r.s.Calls {
			if c.Stage == agent.Retrying {
				f.Timer = "retry-" + c.ID
			}
		}
	case *agent.Canceled:
		f.Now = f.Now && r.nextByte() > 128
	}
}

// ordinary is a task with one tool of each kind.
var ordinary = spec.Task{Run: "r", ID: spec.Root, Goal: "Compare.", Model: spec.Model{Name: "m", Window: 1000},
	Limits: spec.Limits{Output: 60, Turns: 60}, Tools: append(agent.JournalTools(), []model.ToolSpec{
		{Name: "search", Class: model.Read, Schema: toolSchema("search")},
		{Name: "charge", Class: model.Effect, Schema: toolSchema("charge")},
		{Name: "delegate", Class: model.Read, Schema: toolSchema("delegate")},
		agent.AskSpec(), agent.SendSpec(),
	}...), Forbidden: []string{"refund"}, LoopOptions: spec.LoopOptions{Watch: spec.DefaultLoopOptions().Watch, Breaker: spec.DefaultLoopOptions().Breaker, AskPeople: true,
		Context: spec.Context{Percent: 70, Tail: 4, PruneTail: 2, Within: 4, Summary: 20}, Journal: true}}

// walkFacts steps an agent through the facts of the bytes and checks what must hold
// after each step.
func walkFacts(data []byte, task *spec.Task) error {
	r := &factSource{data: data, task: task}
	var s agent.State
	began := map[string]bool{}
	for n := uint64(1); len(r.data) > 0; n++ {
		r.s = s
		e := agent.Input{N: n, At: int64(n) * 60_000, Activation: s.Activation, Fact: r.nextFact()}
		if f, ok := e.Fact.(agent.Resumed); ok {
			e.Activation = f.Activation
		}
		next, stepped := agent.Step(s, e)
		if err := checkStep(s, next, stepped.Effects, began); err != nil {
			return fmt.Errorf("step %d, %s in phase %q: %w\n%s", n, e.Fact.Kind(), s.Phase, err, printMessages(next.History))
		}
		s = next
	}
	return nil
}

// checkStep checks one step of an agent.
func checkStep(before, after agent.State, effects []agent.Effect, began map[string]bool) error {
	if len(after.History) < len(before.History) {
		return fmt.Errorf("the history shrank from %d to %d", len(before.History), len(after.History))
	}
	if err := checkSuspended(after); err != nil {
		return err
	}
	if after.Ladder.Used > spec.RecoveriesMax {
		return fmt.Errorf("%d recoveries, at most %d are allowed", after.Ladder.Used, spec.RecoveriesMax)
	}
	if after.Fold.Upto < before.Fold.Upto {
		return fmt.Errorf("%d messages were folded, now %d are", before.Fold.Upto, after.Fold.Upto)
	}
	for _, fx := range effects {
		switch e := fx.(type) {
		case agent.CallModel:
			if err := strictRequest(e.Request); err != nil {
				return fmt.Errorf("a provider refuses the request: %w", err)
			}
			if key := fmt.Sprint("reservation ", e.Reservation); began[key] {
				return fmt.Errorf("two attempts under %s", key)
			}
			began[fmt.Sprint("reservation ", e.Reservation)] = true
		case agent.CallTool:
			if key := fmt.Sprint(e.Call, " attempt ", e.Attempt); began[key] {
				return fmt.Errorf("call %s begins twice", key)
			}
			began[fmt.Sprint(e.Call, " attempt ", e.Attempt)] = true
		case agent.Finish:
			if began["finish"] && e.Outcome.Reason != spec.LogDamaged {
				return fmt.Errorf("it finishes twice")
			}
			began["finish"] = true
		}
	}
	if after.Phase == agent.Done && len(after.History) > 0 {
		if err := strictTranscript(after.Prompt()); err != nil {
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
		if err := walkFacts(data, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStepSurvivesArbitraryFacts is FuzzStep's short form for every test run.
//
//behaviour:shows A2 B2
func TestStepSurvivesArbitraryFacts(t *testing.T) {
	for seed := range sampledSeeds(3000) {
		if err := walkFacts(randomBytes(seed, 700), nil); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// randomBytes is n bytes that a seed gives.
func randomBytes(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// TestStateIsAValue: a State is a value. Two futures stepped from one do not
// interfere, and the State they came from stays as it was (A4).
//
//behaviour:shows A4
func TestStateIsAValue(t *testing.T) {
	for seed := range sampledSeeds(400) {
		past, _ := followFacts(agent.State{}, randomBytes(3*seed, int(seed)))
		was := stateText(t, past)
		alone, facts := followFacts(past, randomBytes(3*seed+1, 120))
		_, others := followFacts(past, randomBytes(3*seed+2, 120))
		one, two := past, past
		for i := range max(len(facts), len(others)) {
			if i < len(facts) {
				one = stepAgent(one, facts[i])
			}
			if i < len(others) {
				two = stepAgent(two, others[i])
			}
		}
		if got, want := stateText(t, one), stateText(t, alone); got != want {
			t.Fatalf("seed %d: beside another future it came out as\n%s\nalone as\n%s", seed, got, want)
		}
		if got := stateText(t, past); got != was {
			t.Fatalf("seed %d: the past changed to\n%s\nfrom\n%s", seed, got, was)
		}
	}
}

func stepAgent(s agent.State, f agent.Fact) agent.State {
	s, _ = agent.Step(s, agent.Input{At: s.Now + 60_000, Activation: s.Activation, Fact: f})
	return s
}

// followFacts steps a State through the facts of the bytes, and returns them.
func followFacts(s agent.State, data []byte) (agent.State, []agent.Fact) {
	r := &factSource{data: data}
	var facts []agent.Fact
	for len(r.data) > 0 {
		r.s = s
		f := r.nextFact()
		facts = append(facts, f)
		s = stepAgent(s, f)
	}
	return s, facts
}

func stateText(t *testing.T, s agent.State) string {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestInputBound: what an agent asks for covers every byte of what is then
// sent (G1).
func TestInputBound(t *testing.T) {
	for seed := range sampledSeeds(1000) {
		r := &factSource{data: randomBytes(seed, 700)}
		if seed%2 == 1 {
			r.task = &gatedTask
		}
		var s agent.State
		asked := map[int]int64{}
		for len(r.data) > 0 {
			r.s = s
			f := r.nextFact()
			if e, ok := f.(agent.Replied); ok {
				e.Reply.UsageKnown = false // a prefix that was reported is taken at its word
				f = e
			}
			var stepped agent.Output
			s, stepped = agent.Step(s, agent.Input{At: s.Now + 1000, Activation: s.Activation, Fact: f})
			for _, fx := range stepped.Effects {
				switch e := fx.(type) {
				case agent.Reserve:
					asked[e.Reservation] = e.Request.Input
				case agent.CallModel:
					if sent := requestSize(e.Request); sent > asked[e.Reservation] {
						t.Fatalf("seed %d: reservation %d was asked for %d tokens, %d bytes are sent", seed, e.Reservation, asked[e.Reservation], sent)
					}
				}
			}
		}
	}
}

// requestSize is how many tokens a request has at most: its bytes.
func requestSize(r model.Request) int64 {
	n := budget.Text(r.System) + budget.Text(r.Dynamic) + budget.Tools(r.Tools)
	for _, m := range r.Messages {
		n += budget.Message(m)
	}
	return n
}
