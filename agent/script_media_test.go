package agent_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// parseMedia are those of a line: media=(NAME:MOST).
func parseMedia(t *testing.T, d *datadriven.TestData) []model.Media {
	t.Helper()
	arg, ok := d.Arg("media")
	if !ok {
		return nil
	}
	var list []model.Media
	for _, v := range arg.Vals {
		name, most, _ := strings.Cut(v, ":")
		n, err := strconv.ParseInt(most, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
		list = append(list, model.Media{Kind: model.Image, Type: model.PNG, Name: name, Ref: "ref-of-" + name, Size: 9000, Most: n})
	}
	return list
}

// printMedia prints the media of a message.
func printMedia(m model.Message) string {
	var b strings.Builder
	for _, d := range m.Media {
		fmt.Fprintf(&b, " <%s %s %s>", d.Type, d.Name, d.Ref)
	}
	return b.String()
}

// A medium is held for at the most that it can cost, in every turn that sends it,
// also when a fold stands for the message that it came with (P21).
//
//behaviour:shows G1
func TestReservationCoversMaximumMediaCost(t *testing.T) {
	bound := func(list ...model.Media) (first, folded int64) {
		s := stepAgent(agent.State{}, agent.Resumed{Activation: "a"})
		s = stepAgent(s, agent.Submitted{Task: spec.Task{ID: spec.Root, Goal: "What is this?", Media: list, Model: spec.Model{Name: "m/one"}}})
		first = s.InputBound()
		s.Fold = agent.Fold{Upto: 1, Text: "What is this?"}
		return first, s.InputBound()
	}
	plain, plainFolded := bound()
	shown, folded := bound(model.Media{Name: "a.png", Most: 4784}, model.Media{Name: "b.png"})
	if want := int64(4784 + budget.UnboundedTokens); shown-plain < want || folded-plainFolded < want || shown-plain > want+100 {
		t.Errorf("%d tokens more are held, %d behind a fold, want %d", shown-plain, folded-plainFolded, want)
	}
}

// A hook that rewrites what is sent cannot bring media of its own, whose cost it
// would name itself.
func TestHookCannotAddMedia(t *testing.T) {
	mine := model.Media{Kind: model.Image, Type: model.PNG, Name: "a.png", Ref: "r", Size: 9, Most: 1000}
	cheap := mine
	cheap.Most = 1
	for name, c := range map[string]struct {
		list []model.Media
		ok   bool
	}{"none": {nil, true}, "the task's": {[]model.Media{mine}, true}, "cheaper": {[]model.Media{cheap}, false}, "another": {[]model.Media{mine, mine}, false}} {
		s := stepAgent(agent.State{}, agent.Resumed{Activation: "a"})
		s = stepAgent(s, agent.Submitted{Task: spec.Task{ID: spec.Root, Goal: "What is this?", Media: []model.Media{mine}, Model: spec.Model{Name: "m/one"},
			LoopOptions: spec.LoopOptions{Hooks: []spec.Hook{{Name: "h", Point: spec.HookContext}}}}})
		s = stepAgent(s, agent.Hooked{ID: s.Gate.ID, Point: spec.HookContext, Answers: []spec.HookAnswer{{Hook: "h", Messages: []model.Message{{Role: model.User, Text: "Look.", Media: c.list}}}}})
		if got := s.HookEffects.Sent != nil; got != c.ok {
			t.Errorf("%s: taken %v, in phase %s", name, got, s.Phase)
		}
	}
}
