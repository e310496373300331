package agent_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// parseContext reads what a script's task says of its context: `window=N` with
// `percent=N tail=N prune=N within=N summary=N cheap=MODEL`, `reactive` for the
// reactive compaction alone, `journal`, `constraint=TEXT`.
func parseContext(t *testing.T, d *datadriven.TestData, task *spec.Task) {
	t.Helper()
	m := &task.LoopOptions
	if d.HasArg("window") {
		task.Model.Window = int64(argumentNumber(t, d, "window", 0))
		m.Context = spec.DefaultLoopOptions().Context
	}
	if d.HasArg("reactive") {
		m.Context = spec.Context{Tail: spec.CompactTail}
	}
	c := &m.Context
	c.Percent, c.Tail = argumentNumber(t, d, "percent", c.Percent), argumentNumber(t, d, "tail", c.Tail)
	c.PruneTail, c.Within = argumentNumber(t, d, "prune", c.PruneTail), argumentNumber(t, d, "within", c.Within)
	c.Summary = int64(argumentNumber(t, d, "summary", int(c.Summary)))
	if name := argumentValue(t, d, "cheap"); name != "" {
		c.Model = &spec.Model{Name: name}
	}
	task.Limits.Output = int64(argumentNumber(t, d, "output", 0))
	if m.Journal = d.HasArg("journal"); m.Journal {
		task.Tools = append(task.Tools, agent.JournalTools()...)
	}
	if v := argumentValue(t, d, "constraint"); v != "" {
		task.Constraints = []string{v}
	}
}

// longText makes a text of `bytes=N` bytes out of a line's input: it stands in the
// first line, and the rest is filling.
func longText(t *testing.T, d *datadriven.TestData, text string) string {
	t.Helper()
	n := argumentNumber(t, d, "bytes", len(text))
	for i := 1; len(text) < n; i++ {
		text += fmt.Sprintf("\nline %d of it", i)
	}
	return text[:n]
}

// printFold prints what stands for the beginning of the transcript.
func printFold(s agent.State) string {
	if s.Fold.Upto == 0 {
		return "nothing is folded\n"
	}
	return fmt.Sprintf("%d messages are folded\n%s\n", s.Fold.Upto, s.Fold.Text)
}

// parseContextSet is `context-set add=(search:read) without=(delegate) by=ann`, and a layer on each line: `NAME PRIORITY TEXT`, after
// which `below`, `merge` or `of=AGENT` may follow the priority. It is root-1-0's. No text removes the layer.
func parseContextSet(t *testing.T, d *datadriven.TestData) agent.ContextSet {
	t.Helper()
	f := agent.ContextSet{By: argumentValue(t, d, "by")}
	if arg, ok := d.Arg("add"); ok {
		for _, v := range arg.Vals {
			name, class, _ := strings.Cut(v, ":")
			f.AddTools = append(f.AddTools, model.ToolSpec{Name: name, Class: model.Class(class), Schema: toolSchema(name)})
		}
	}
	if arg, ok := d.Arg("without"); ok {
		f.RemoveTools = arg.Vals
	}
	for line := range strings.Lines(d.Input) {
		var l spec.Layer
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		priority, text, _ := strings.Cut(rest, " ")
		l.Name, l.Owner, l.Agent = name, f.By, "root-1-0"
		l.Priority, _ = strconv.Atoi(priority)
		for {
			word, after, _ := strings.Cut(text, " ")
			of, isOf := strings.CutPrefix(word, "of=")
			switch {
			case word == "below":
				l.Below = true
			case word == "merge":
				l.Merge = true
			case isOf:
				l.Agent = spec.ID(of)
			}
			if word != "below" && word != "merge" && !isOf {
				break
			}
			text = after
		}
		l.Text = text
		f.Layers = append(f.Layers, l)
	}
	return f
}

// printRequest prints the newest request; with tools, the names of those that it offers, too.
func printRequest(c agent.CallModel, tools bool) string {
	if tools {
		return strings.Join(append([]string{"tools"}, toolNames(c.Request.Tools)...), " ") + "\n" + printRequest(c, false)
	}
	return fmt.Sprintf("model %s\nsystem %q\ndynamic %q\n%s", c.Model, c.Request.System, c.Request.Dynamic, printMessages(c.Request.Messages))
}

// TestRandomFactsCoverEveryRecoveryStage: the walks over any facts fold, prune, ask, and
// recover from "too long" often enough to mean something (D5).
//
//behaviour:shows D5
func TestRandomFactsCoverEveryRecoveryStage(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(5000) {
		r := &factSource{data: randomBytes(seed, 900)}
		var s agent.State
		for len(r.data) > 0 {
			r.s = s
			e := agent.Input{At: s.Now + 1000, Activation: s.Activation, Fact: r.nextFact()}
			next, stepped := agent.Step(s, e)
			for _, n := range stepped.Events {
				switch d := n.Data.(type) {
				case event.Recovery:
					seen[d.Stage]++
				case event.Compaction:
					seen[fmt.Sprintf("%s by %s", d.How, d.By)]++
					if d.AfterTokens >= d.BeforeTokens+1000 {
						t.Fatalf("seed %d: a compaction from %d to %d tokens", seed, d.BeforeTokens, d.AfterTokens)
					}
				case event.JournalUpdated:
					seen["journal"]++
				}
			}
			for _, fx := range stepped.Effects {
				if c, ok := fx.(agent.CallModel); ok && c.Request.NoTools && c.Request.Tools == nil && next.Purpose == agent.ForSummary {
					seen["summary"]++
				}
			}
			s = next
		}
	}
	t.Log(seen)
	for _, want := range []string{"compacted by software", "compacted by model", "deep_prune", "ask_human", "reactive", "summary", "journal"} {
		if seen[want] == 0 {
			t.Errorf("no walk reached %s: %v", want, seen)
		}
	}
}

// runningCall is the call that a line means: the one it names, or `next`, the first that runs.
func runningCall(d *datadriven.TestData, s agent.State) string {
	if firstArgument(d) != "next" {
		return firstArgument(d)
	}
	for _, c := range s.Calls {
		if c.Stage == agent.Running {
			return c.ID
		}
	}
	return ""
}

// quoteMiddle is a text of a message, the middle of a long one left out.
func quoteMiddle(text string) string {
	const ends = 150
	if len(text) <= 2*ends {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q … %q (%d bytes)", text[:ends], text[len(text)-ends/2:], len(text))
}

// clipData is what an observer is told, without the end of a long one.
func clipData(text string) string {
	const most = 400
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s … (%d bytes)", text[:most], len(text))
}

func toolNames(tools []model.ToolSpec) (names []string) {
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return names
}
