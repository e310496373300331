package main

import (
	"context"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestMain is also the process of a measurement or of the model server: they are this program
// with other arguments.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "-child" || os.Args[1] == "-serve") {
		main()
		return
	}
	os.Exit(m.Run())
}

// The ratios to eino stay below their limits.
func TestRatios(t *testing.T) {
	p, err := newPlan("", "", "")
	if err != nil {
		t.Fatal(err)
	}
	p.rounds, p.least, p.progress = 3, 100*time.Millisecond, io.Discard
	var text strings.Builder
	if err := p.check(&text); err != nil {
		t.Error(err)
	}
	t.Log(text.String())
}

// Every column plays the same script to its answer, so each takes the same turns.
func TestEveryColumnAnswers(t *testing.T) {
	for _, c := range columns() {
		for _, name := range []string{"look-3", "fan-2"} {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				played, err := parseScript(name)
				if err != nil {
					t.Fatal(err)
				}
				r, err := c.open(t.Context(), setup{script: played, dir: t.TempDir(), agents: 1})
				if err != nil {
					t.Fatal(err)
				}
				if err := runBatch(t.Context(), r, 2); err != nil {
					t.Error(err)
				}
				if err := r.close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestAWrongAnswerIsAnError(t *testing.T) {
	if err := checkAnswer("nothing"); err == nil {
		t.Error("no error")
	}
}

func TestScriptsHaveNames(t *testing.T) {
	s, err := parseScript("look-10-20ms")
	if err != nil || s.kind != scriptLook || s.count != 10 || s.delay != 20*time.Millisecond {
		t.Errorf("%+v %v", s, err)
	}
	for _, bad := range []string{"", "dance-3", "look-many", "look-3-soon"} {
		if _, err := parseScript(bad); err == nil {
			t.Errorf("%q has no error", bad)
		}
	}
	turns, result := 0, ""
	for {
		turns++
		r := s.next(result)
		if r.text != "" {
			break
		}
		result = lookUp(r.row)
	}
	if turns != 10 {
		t.Errorf("%d turns", turns)
	}
}

// A ratio of counts that grows by half fails, whatever the machine; one that is not measured does, too.
func TestLimitsNoticeARegression(t *testing.T) {
	regressed, same, zero, negative := results{}, results{}, results{}, results{}
	for _, l := range limits() {
		for of, times := range map[string]float64{l.base: 1, l.of: l.reached} {
			same[cell{l.workload, of, l.figure}] = []float64{times}
			switch {
			case of == l.base:
			case l.most() < l.reached*1.5:
				times *= 1.5
			default:
				times *= 2.5
			}
			regressed[cell{l.workload, of, l.figure}] = []float64{times}
			zero[cell{l.workload, of, l.figure}], negative[cell{l.workload, of, l.figure}] = []float64{1, 1}, []float64{1, 1}
		}
		zero[cell{l.workload, l.of, l.figure}], negative[cell{l.workload, l.of, l.figure}] = []float64{1, 0}, []float64{-1, 1}
	}
	var text strings.Builder
	if err := same.checkLimits(&text); err != nil {
		t.Errorf("%v\n%s", err, text.String())
	}
	for _, r := range []results{regressed, {}, zero, negative} {
		text.Reset()
		if err := r.checkLimits(&text); err == nil || strings.Contains(text.String(), "ok ") {
			t.Errorf("%v\n%s", err, text.String())
		}
	}
}

func TestTableHasMediansAndRatios(t *testing.T) {
	r := results{cell{"w", columnFloor, wallPerTurn}: {1, 2, 3}, cell{"w", columnEino, wallPerTurn}: {10, 10, 10.1}, cell{"w", columnEntry, wallPerTurn}: {100, 101}}
	p := plan{workloads: []workload{{name: "w", figures: []figure{wallPerTurn}}}, columns: []column{{name: columnFloor}, {name: columnEino}, {name: columnEntry}}}
	var text strings.Builder
	r.writeTable(&text, p)
	if want := "| w | µs/turn | ~2.00 | 10.0 (5.00) | 100 (50.2, 10.1) |"; !strings.Contains(text.String(), want) {
		t.Errorf("no %q in\n%s", want, text.String())
	}
}

// Agents that wait are counted by their model calls.
func TestWaitingAgentsAreCounted(t *testing.T) {
	c, err := findColumn(columnFloor)
	if err != nil {
		t.Fatal(err)
	}
	var opened atomic.Bool
	inner := c.open
	c.open = func(ctx context.Context, s setup) (runner, error) { opened.Store(true); return inner(ctx, s) }
	s, err := measureWaiting(t.Context(), c, setup{script: script{kind: scriptWait}, agents: 300}, &profiler{})
	if err != nil || !opened.Load() || s[heapPerAgent] <= 0 {
		t.Errorf("%v %v", s, err)
	}
}
