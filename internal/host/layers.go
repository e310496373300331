package host

import (
	"fmt"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model/pick"
	"github.com/troupe-run/troupe/prompt"
	"github.com/troupe-run/troupe/supervisor"
)

// compose makes the prompts of a run, and labels a recording with what they name.
func (h *Host) compose(o *supervisor.Opened, r client.RunRequest, choice pick.Choice, a *client.RunAccepted) error {
	guide, err := h.guideOf(o, r, choice, a)
	if err != nil {
		return err
	}
	now := h.tapes.now()
	note, err := h.tapes.begin(o.Workspace, choice, now, h.cfg.Env)
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	if note != "" {
		a.Notes = append(a.Notes, note)
	}
	return layers(o, choice, now, guide...)
}

// layers composes the system prompts of a run: who an agent is and what it must
// keep to stay as they are, so that a provider can cache them; where and when it
// works comes behind the breakpoint, and so does what the project says: it is
// the same for all agents, and stands in the record once. The built-in planner
// has no use for either.
func layers(o *supervisor.Opened, choice pick.Choice, now time.Time, project ...prompt.Layer) error {
	around := append(project, prompt.Layer{Name: "environment", Content: environment(o.Workspace, now), Priority: prompt.Environment})
	if choice.Provider == pick.Builtin {
		around = nil
	}
	for i, d := range o.Definitions {
		p, err := prompt.Compose(append([]prompt.Layer{
			{Name: "role", Content: d.System, Priority: prompt.Role},
			{Name: "constraints", Content: list("Constraints of this run:", o.Constraints), Priority: prompt.Rules},
			{Name: "criteria", Content: list("The run is a success if:", o.Criteria), Priority: prompt.Rules},
		}, around...))
		if err != nil {
			return fmt.Errorf("host: agent %s: %w", d.Name, err)
		}
		o.Definitions[i].System, o.Manners.Dynamic = p.Stable, p.Dynamic
	}
	return nil
}

func environment(dir string, now time.Time) string {
	text := "Today is " + now.Format("Monday, 2 January 2006") + "."
	if dir != "" {
		text += "\nYour tools work in the directory " + dir + "."
	}
	return text
}

func list(head string, items []string) string {
	if len(items) == 0 {
		return ""
	}
	return head + "\n- " + strings.Join(items, "\n- ")
}

// summarizer is the model that writes summaries for agents of a model: the
// cheapest of the same provider; nil leaves it to the model itself.
func summarizer(c pick.Choice) *agent.Model {
	cheap, ok := c.Cheapest()
	if !ok {
		return nil
	}
	return &agent.Model{Name: cheap.Name(), Window: cheap.Window, Price: cheap.Price}
}
