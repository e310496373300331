package supervisor_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// kinds are the words of a supervisor's log.
var kinds = []string{"opened", "reserve", "reserve", "reserve", "settle", "settle", "delegate", "delegate", "propose_stop", "park", "unpark",
	"return_allowance", "finish", "report_log", "canceled", "policy_set", "limit_set", "woke", "resumed", "checkpoint", "closed"}

// eventSource makes events from bytes.
type eventSource struct {
	data []byte
	s    supervisor.State
}

func (r *eventSource) nextByte() byte {
	if len(r.data) == 0 {
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

// anyMember is a member, or nearly one.
func (r *eventSource) anyMember() spec.ID {
	var ids []spec.ID
	r.s.Members(func(m supervisor.Member) { ids = append(ids, m.ID) })
	b := int(r.nextByte())
	if len(ids) == 0 || b > 250 {
		return "stranger"
	}
	return ids[b%len(ids)]
}

var numbers = []int64{0, 1, 2, 3, 10, 100, 700, 4096, 20000, -1, -5000, 1 << 40, -1 << 62, 1 << 62}

// fillFact writes bytes into a fact, field by field.
func (r *eventSource) fillFact(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				r.fillFact(v.Field(i), v.Type().Field(i).Name)
			}
		}
	case reflect.String:
		v.SetString([]string{"", "lead", "helper", "stop", "turn", "answer", "lacks", "turns", "first_message/root", "(", "1-0"}[int(r.nextByte())%11])
	case reflect.Int, reflect.Int64:
		b := r.nextByte()
		if name == "Reservation" || b < 160 {
			v.SetInt(int64(b % 8))
			return
		}
		v.SetInt(numbers[int(b)%len(numbers)])
	case reflect.Bool:
		v.SetBool(r.nextByte() > 180)
	case reflect.Slice:
		n := int(r.nextByte()) % 4
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			r.fillFact(v.Index(i), name)
		}
	}
}

// nextEvent decodes the next event from the bytes, as a log would.
func (r *eventSource) nextEvent() supervisor.Input {
	kind := kinds[int(r.nextByte())%len(kinds)]
	if r.s.Phase == "" && r.nextByte() > 20 {
		kind = "opened"
	}
	e := supervisor.Input{At: r.s.Now + int64(r.nextByte())*1000, Damaged: r.nextByte() > 252}
	f, ok, err := supervisor.Decode(kind, func(into any) error {
		r.fillFact(reflect.ValueOf(into).Elem(), "")
		r.aimFact(into, &e)
		return nil
	})
	if !ok || err != nil {
		panic(fmt.Sprintf("%s: %v %v", kind, ok, err))
	}
	e.Fact = f
	if _, ask := f.(agent.SupervisorMessage); ask && e.From == "" {
		e.From = r.anyMember()
	}
	return e
}

// aimFact makes a fact one that means something, most of the time.
func (r *eventSource) aimFact(into any, e *supervisor.Input) {
	if r.nextByte() > 220 {
		return
	}
	e.From = r.anyMember()
	switch f := into.(type) {
	case *supervisor.Opened:
		*f = supervisor.Opened{Run: "r", Goal: "Compare.", Root: "lead", Definitions: []supervisor.Definition{{Name: "lead"}, {Name: "helper"}},
			Tools: []model.ToolSpec{{Name: "delegate"}}, Limits: spec.RunLimits{Tokens: 60000, Depth: 4}}
		e.From = ""
	case *agent.Reserve:
		f.Reservation = r.s.Pool.Account(string(e.From)).Closed + 1
		f.Request = budget.AttemptRequest{Input: 100, Output: 1000 * int64(r.nextByte()%8), OutputMin: 64, Closing: 100, Calls: int64(r.nextByte() % 64)}
		f.Ahead = int(r.nextByte()) % (2 * agent.GrantsAheadMax)
	case *agent.Settle:
		a := r.s.Pool.Account(string(e.From))
		f.Reservation, f.Under = a.Open, 0
		if a.Open == 0 && a.AheadOf != 0 && r.nextByte() > 60 {
			f.Reservation, f.Under = a.Closed+1, a.AheadOf
		}
	case *agent.ReturnAllowance:
		a := r.s.Pool.Account(string(e.From))
		f.Grant, f.Reservation = a.AheadOf, a.Newest()
		if f.Open {
			f.Reservation++
		}
	case *agent.Delegate:
		*f = agent.Delegate{Call: "1-0", Child: spec.ID(fmt.Sprintf("%s-%d-0", e.From, r.nextByte())), Name: "helper", Goal: "Look."}
	case *agent.Canceled, *supervisor.PolicySet, *supervisor.LimitSet, *agent.Woke, *agent.Resumed, *agent.Checkpoint, *agent.Closed:
		e.From = ""
	}
}

// walkEvents steps a supervisor through the events of the bytes and checks what must
// hold after each step.
func walkEvents(data []byte) error {
	r := &eventSource{data: data}
	var s supervisor.State
	published := 0
	for n := uint64(1); len(r.data) > 0; n++ {
		r.s = s
		e := r.nextEvent()
		e.N = n
		next, out := supervisor.Step(s, e)
		effects := out.Effects
		if err := checkStep(s, next, effects); err != nil {
			return fmt.Errorf("step %d, %T: %w", n, e.Fact, err)
		}
		if slices.Contains(effects, supervisor.Effect(supervisor.Publish{})) {
			published++
		}
		if published > 1 {
			return fmt.Errorf("step %d, %T: the result is published twice", n, e.Fact)
		}
		s = next
	}
	return nil
}

// checkStep checks one step of a supervisor.
func checkStep(before, after supervisor.State, effects []supervisor.Effect) error {
	var spent, held, kept budget.Amount
	live, parked := 0, 0
	after.Members(func(m supervisor.Member) {
		a := after.Pool.Account(string(m.ID))
		spent, held, kept = spent.Plus(a.Spent), held.Plus(a.InUse()), kept.Plus(a.Kept)
		if !m.Done {
			live++
		}
		if m.Query != nil {
			parked++
		}
	})
	p := after.Pool
	switch {
	case spent != p.Spent || held != p.Held || kept != p.Kept:
		return fmt.Errorf("accounts %v+%v+%v, pool %v+%v+%v", spent, held, kept, p.Spent, p.Held, p.Kept)
	case live != after.Live || parked != after.Parked:
		return fmt.Errorf("%d live and %d parked members, the state says %d and %d", live, parked, after.Live, after.Parked)
	case before.Phase == supervisor.Over && after.Phase != supervisor.Over:
		return fmt.Errorf("a run that was over is %s", after.Phase)
	case after.Waiting() > 0 && after.Cancel == nil && p.Held.Zero():
		return fmt.Errorf("%d wait and nobody holds anything", after.Waiting())
	}
	was := before.Pool.Spent.Plus(before.Pool.Held).Minus(before.Pool.Overrun)
	now := p.Spent.Plus(p.Held).Minus(p.Overrun)
	if limit := p.Limit.Tokens; limit > 0 && now.Tokens > limit && now.Tokens > was.Tokens {
		return fmt.Errorf("%d tokens committed under a limit of %d, before it were %d", now.Tokens, limit, was.Tokens)
	}
	if limit := p.Limit.Calls; limit > 0 && now.Calls > limit && now.Calls > was.Calls {
		return fmt.Errorf("%d calls committed under a limit of %d, before it were %d", now.Calls, limit, was.Calls)
	}
	for _, fx := range effects {
		tell, ok := fx.(supervisor.Tell)
		if !ok {
			continue
		}
		if _, grant := tell.Fact.(agent.Granted); grant && before.Cancel != nil {
			return fmt.Errorf("a reservation for %s after the cancel", tell.To)
		}
		if _, child := tell.Fact.(agent.Submitted); child && before.Cancel != nil {
			return fmt.Errorf("%s begins after the cancel", tell.To)
		}
	}
	return nil
}

// FuzzStep: any bytes are facts, and no fact makes the supervisor panic, lose
// count of its pool, or commit more than the limit (G1, P24).
func FuzzStep(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 100, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := walkEvents(data); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStepSurvivesArbitraryFacts is FuzzStep's short form for every test run.
func TestStepSurvivesArbitraryFacts(t *testing.T) {
	for seed := range uint64(3000) {
		if err := walkEvents(noiseBytes(seed, 900)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// noiseBytes is n bytes that a seed gives.
func noiseBytes(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 2))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// TestStateIsAValue: a run is a value: two futures stepped from one do not
// interfere.
func TestStateIsAValue(t *testing.T) {
	for seed := range uint64(300) {
		past, _ := followEvents(supervisor.State{}, noiseBytes(3*seed, 2*int(seed)))
		was := showState(past)
		alone, events := followEvents(past, noiseBytes(3*seed+1, 150))
		_, others := followEvents(past, noiseBytes(3*seed+2, 150))
		one, two := past, past
		for i := range max(len(events), len(others)) {
			if i < len(events) {
				one, _ = supervisor.Step(one, events[i])
			}
			if i < len(others) {
				two, _ = supervisor.Step(two, others[i])
			}
		}
		if got, want := showState(one), showState(alone); got != want {
			t.Fatalf("seed %d: beside another future it came out as\n%s\nalone as\n%s", seed, got, want)
		}
		if got := showState(past); got != was {
			t.Fatalf("seed %d: the past changed to\n%s\nfrom\n%s", seed, got, was)
		}
	}
}

// followEvents steps a State through the events of the bytes, and returns them.
func followEvents(s supervisor.State, data []byte) (supervisor.State, []supervisor.Input) {
	r := &eventSource{data: data}
	var events []supervisor.Input
	for len(r.data) > 0 {
		r.s = s
		e := r.nextEvent()
		events = append(events, e)
		s, _ = supervisor.Step(s, e)
	}
	return s, events
}

func showState(s supervisor.State) string {
	out := fmt.Sprintf("%s %+v %+v waiting=%d %+v %+v\n", printState(s), s.Run.Limits, s.Run.Policy, s.Waiting(), s.Cancel != nil, printResult(s.Result()))
	s.Members(func(m supervisor.Member) {
		query := agent.Park{}
		if m.Query != nil {
			query, m.Query = *m.Query, nil
		}
		out += fmt.Sprintf("%+v %+v %+v\n", m, query, s.Pool.Account(string(m.ID)))
	})
	return out
}

// TestEveryStopReasonHasAKnownSubtype: every stop reason has the word that scripts read (A7).
//
//behaviour:shows A7
func TestEveryStopReasonHasAKnownSubtype(t *testing.T) {
	words := map[string]bool{"success": true, "error_max_tokens": true, "error_max_budget_usd": true, "error_max_turns": true,
		"error_max_tool_calls": true, "error_timeout": true, "error_needs_human": true, "error_provider": true, "error_refused": true,
		"error_cancelled": true, "error_during_execution": true}
	fallen := []spec.Reason{spec.ToolFailure, spec.Failed, spec.LogDamaged}
	for _, r := range spec.Reasons() {
		word := event.Subtype(r)
		if !words[word] {
			t.Errorf("%s: unknown subtype %q", r, word)
		}
		if fell := word == "error_during_execution"; fell != slices.Contains(fallen, r) {
			t.Errorf("%s is %q", r, word)
		}
	}
}
