package troupetest_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"testing"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
	"github.com/troupe-run/troupe/troupetest"
)

// In a test, t is its *testing.T.
func Example() {
	t := &exampleT{}
	defer t.end()

	stock := tool.Func("stock", "How many bolts are in stock.", model.Read,
		func(context.Context, struct{}) (int, error) { return 12, nil })
	node := troupetest.Start(t, troupe.Config{
		Tools:  []tool.Tool{stock},
		Agents: []troupe.Agent{{Name: "clerk", Description: "Knows the stock."}},
	}, `agents: {clerk: [{calls: [{name: stock}]}, {text: "We have {{last}} bolts."}]}`)

	node.CrashAt(5) // the node is killed at the fifth entry of the run's logs, and another one continues
	trace := node.Run(troupe.Task{Prompt: "How many bolts do we have?"})
	trace.AssertCompleted("12 bolts")
	trace.AssertCalls("stock", 1)
	trace.AssertOrder(event.KindRunStarted, event.KindToolFinished, event.KindAgentFinished)

	fmt.Println(trace.Result.Text)
	fmt.Println("crashes:", trace.Crashes, "more than 5 entries:", trace.Entries > 5)
	// Output:
	// We have 12 bolts.
	// crashes: 1 more than 5 entries: true
}

// exampleT stands for a *testing.T, which an example does not have.
type exampleT struct {
	testing.TB
	ends []func()
}

func (t *exampleT) Helper()                   {}
func (t *exampleT) Logf(string, ...any)       {}
func (t *exampleT) Errorf(s string, a ...any) { fmt.Printf(s+"\n", a...) }
func (t *exampleT) Error(a ...any)            { fmt.Println(a...) }
func (t *exampleT) Fatal(a ...any)            { log.Fatal(a...) }
func (t *exampleT) Cleanup(f func())          { t.ends = append(t.ends, f) }

func (t *exampleT) TempDir() string {
	dir, err := os.MkdirTemp("", "troupetest-")
	if err != nil {
		log.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (t *exampleT) end() {
	for i := len(t.ends) - 1; i >= 0; i-- {
		t.ends[i]()
	}
}
