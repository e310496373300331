package troupe_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/internal/test/dialect/chat"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/openai"
	"github.com/troupe-run/troupe/tool"
)

type orderArgs struct {
	Item  string `json:"item" jsonschema:"what to order"`
	Count int    `json:"count,omitempty"`
}

var errSoldOut = errors.New("sold out until Monday")

// The arguments of a Go function are its struct; what does not fit it, what the function returns as an error, and a result
// that is malformed are results that the model reads, and each names what is wrong.
//
//behaviour:shows C1 C8 C9
func TestAGoFunctionIsATypedTool(t *testing.T) {
	ordered := 0
	order := tool.Func("order", "Orders.", model.Effect, func(_ context.Context, a orderArgs) (string, error) {
		if ordered++; a.Item == "boats" {
			return "", errSoldOut
		}
		return fmt.Sprintf("%d of %s", max(a.Count, 1), a.Item), nil
	})
	badBytes := tool.Func("name", "Names.", model.Read, func(context.Context, struct{}) (string, error) { return "caf\xe9", nil })
	badForm := tool.Func("count", "Counts.", model.Read, func(context.Context, struct{}) (string, error) { return `{"n": "many"}`, nil },
		tool.OutputSchema(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`))
	seen := &promptClient{Client: parsedScript(t, `
agents:
  clerk:
    - calls:
        - {name: order, args: {item: bolts, count: 2}}
        - {name: order, args: {item: 7}}
        - {name: order, args: {count: 2}}
        - {name: order, args: {item: bolts, colour: red}}
        - {name: order, args: {item: boats}}
        - {name: name}
        - {name: count}
    - text: "[done] {{result.0}} | {{result.1}} | {{result.2}} | {{result.3}} | {{result.4}} | {{result.5}} | {{result.6}}"
`)}
	n := startModel(t, seen, troupe.Config{Tools: []tool.Tool{order, badBytes, badForm}, Agents: namedAgents("clerk")})
	r, err := n.Run(testContext(t), troupe.Task{Prompt: "order"})
	if err != nil {
		t.Fatal(err)
	}
	results := strings.Split(r.Text, " | ")
	for i, want := range []string{"2 of bolts", `/properties/item: type: 7 has type "integer", want "string"`, `missing properties: ["item"]`, "colour",
		"sold out until Monday", "malformed result of name: 1 bytes are not UTF-8", "malformed result of count"} {
		if i >= len(results) || !strings.Contains(results[i], want) {
			t.Errorf("result %d lacks %q: %q", i, want, results)
		}
	}
	if ordered != 2 {
		t.Errorf("the function was called %d times, want 2: what does not fit its arguments must not reach it", ordered)
	}
	at := slices.IndexFunc(seen.tools, func(s model.ToolSpec) bool { return s.Name == "order" })
	if at < 0 || !strings.Contains(seen.tools[at].Schema, `"what to order"`) || !strings.Contains(seen.tools[at].Schema, `"required":["item"]`) {
		t.Errorf("the model gets the tools %+v", seen.tools)
	}
}

// Calls that may run together do so, four at a time; an effect runs alone, and the results are in the order of the calls.
//
//behaviour:shows C3
func TestCallsOfAReplyRunInBoundedBatches(t *testing.T) {
	var live, most, beside atomic.Int32
	full, once := make(chan struct{}), sync.Once{}
	enter := func() int32 {
		now := live.Add(1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		return now
	}
	look := tool.Func("look", "Looks.", model.Read, func(ctx context.Context, a greetArgs) (string, error) {
		defer live.Add(-1)
		if enter() == 4 {
			once.Do(func() { close(full) }) // the first four are inside together
		}
		select {
		case <-full:
		case <-ctx.Done():
		}
		return a.Name, ctx.Err()
	})
	pay := tool.Func("pay", "Pays.", model.Effect, func(_ context.Context, a greetArgs) (string, error) {
		defer live.Add(-1)
		beside.Add(enter() - 1)
		return a.Name, nil
	})
	n := startScripted(t, `
agents:
  clerk:
    - calls:
        - {name: look, args: {name: a}}
        - {name: look, args: {name: b}}
        - {name: look, args: {name: c}}
        - {name: look, args: {name: d}}
        - {name: look, args: {name: e}}
        - {name: pay, args: {name: f}}
        - {name: pay, args: {name: g}}
        - {name: look, args: {name: h}}
    - text: "{{result.0}}{{result.1}}{{result.2}}{{result.3}}{{result.4}}{{result.5}}{{result.6}}{{result.7}}"
`, troupe.Config{Tools: []tool.Tool{look, pay}, Agents: namedAgents("clerk")})
	r, err := n.Run(testContext(t), troupe.Task{Prompt: "look and pay"})
	if err != nil || r.Text != "abcdefgh" {
		t.Errorf("%q %v", r.Text, err)
	}
	if most.Load() != 4 || beside.Load() != 0 {
		t.Errorf("%d calls at once, want 4; %d calls beside an effect", most.Load(), beside.Load())
	}
}

// A call has a time and a size; a function that ignores the end of its context is abandoned, and its result says so.
//
//behaviour:shows C4
func TestACallIsBounded(t *testing.T) {
	let := make(chan struct{})
	deaf := tool.Func("deaf", "Ignores its context.", model.Effect, func(context.Context, struct{}) (string, error) { <-let; return "late", nil },
		tool.Timeout(50*time.Millisecond))
	slow := tool.Func("slow", "Is slow.", model.Effect, func(ctx context.Context, _ struct{}) (string, error) { <-ctx.Done(); return "", ctx.Err() },
		tool.Timeout(50*time.Millisecond))
	long := tool.Func("long", "Says much.", model.Read, func(context.Context, struct{}) (string, error) { return strings.Repeat("line\n", 2000), nil },
		tool.OutputLimit(1000))
	n := startScripted(t, `
agents:
  clerk:
    - calls: [{name: long}, {name: slow}, {name: deaf}]
    - text: "[done] {{result.0}} | {{result.1}} | {{result.2}}"
`, troupe.Config{Tools: []tool.Tool{deaf, slow, long}, Agents: namedAgents("clerk")})
	t.Cleanup(func() { close(let) })
	r, err := n.Run(testContext(t), troupe.Task{Prompt: "go"})
	if err != nil {
		t.Fatal(err)
	}
	results := strings.Split(r.Text, " | ")
	if len(results) != 3 || len(results[0]) > 1200 || !strings.Contains(results[0], "10000") {
		t.Errorf("the long result: %q", results)
	}
	if !strings.Contains(results[1], "50ms") || !strings.Contains(results[2], "abandoned and may still be running") {
		t.Errorf("%q", results[1:])
	}
}

// What a reply holds decides, and not how the provider labels it; the pieces of parallel calls are joined by their ids.
//
//behaviour:shows A1
func TestCallsThatWereObservedDecide(t *testing.T) {
	replies := [][]string{
		{chat.Call(0, "1", "greet", `{"na`), chat.Call(0, "2", "greet", `{"name":`), chat.Call(0, "1", "", `me":"Ann"}`), chat.Call(0, "2", "", `"Bob"}`), chat.Chunk("{}", "stop"), chat.Done},
		{chat.Call(0, "3", "greet", `{"name":"Eve"}`), chat.Done}, // nothing says that the call is complete
		{chat.Text("All were greeted."), chat.Chunk("{}", "tool_calls"), chat.Done},
	}
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := int(asked.Add(1)) - 1
		if i >= len(replies) {
			http.Error(w, "no more replies", http.StatusBadRequest)
			return
		}
		wiretest.Stream(replies[i])(w, r)
	}))
	t.Cleanup(s.Close)
	c, err := openai.New(openai.Config{BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	greeted := ""
	greet := tool.Func("greet", "Greets.", model.Effect, func(_ context.Context, a greetArgs) (string, error) { greeted += a.Name + " "; return "greeted", nil })
	n := startModel(t, c, troupe.Config{Tools: []tool.Tool{greet}, Agents: namedAgents("host")})
	r, err := n.Run(testContext(t), troupe.Task{Prompt: "greet"})
	if err != nil || r.Text != "All were greeted." || greeted != "Ann Bob Eve " || r.Turns != 3 {
		t.Errorf("%q greeted %q in %d turns: %v", r.Text, greeted, r.Turns, err)
	}
}
