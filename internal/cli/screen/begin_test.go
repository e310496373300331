package screen

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/top"
)

// TestRunsThatBeginAsTheScreenIsLeft: they are waited for, also if the screen never asked for their outcome, and the person
// learns the ids, the notes and the errors; not those that the screen has shown.
func TestRunsThatBeginAsTheScreenIsLeft(t *testing.T) {
	errRefused := errors.New("no such agent")
	release := make(chan struct{})
	n := newNode(t.Context(), func(ctx context.Context) (*session.Session, error) { return &session.Session{Context: ctx}, nil })
	n.begin = func(_ context.Context, flags []string, prompt string) (client.RunAccepted, string, error) {
		run := strings.TrimPrefix(flags[0], "--run-id=")
		switch prompt {
		case "slow":
			<-release
		case "bad":
			return client.RunAccepted{}, "", errRefused
		case "noted":
			return client.RunAccepted{RunID: run}, "copied; a note", nil
		}
		return client.RunAccepted{RunID: run}, "", nil
	}
	p := &program{model: top.New(top.Config{}), node: n}
	shown := top.StartRun{ID: "r0", Prompt: "go"}
	p.Update(p.commands([]top.Effect{shown})())
	p.commands([]top.Effect{top.StartRun{ID: "r1", Prompt: "noted"}, top.ForkRun{ID: "r2", Prompt: "bad"}, top.StartRun{ID: "r3", Prompt: "slow"}})
	<-n.begins[0].done
	<-n.begins[1].done
	var said []string
	err := n.finishBegins(func(line string) {
		if said = append(said, line); strings.HasPrefix(line, "waiting") {
			close(release)
		}
	})
	want := []string{"run r1 has begun", "copied; a note", "waiting for run r3 to begin", "run r3 has begun"}
	if !errors.Is(err, errRefused) || !reflect.DeepEqual(said, want) {
		t.Errorf("%v, %q, want %q", err, said, want)
	}
}
