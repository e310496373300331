package runspec

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/failure"
	"github.com/troupe-run/troupe/internal/prompt"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/supervisor"
)

// composedPrompts are the definitions of a run with their whole prompts.
type composedPrompts struct {
	definitions []supervisor.Definition
	dynamic     string // appended to the prompt of every agent
	warnings    []string
}

// composePrompts composes the prompts of a run, and labels a recording with the names in
// them.
func (b *Builder) composePrompts(req acceptedRequest, choice provider.Choice, defs []supervisor.Definition) (c composedPrompts, err error) {
	guides, warnings, err := b.guidesOf(req, choice)
	if err != nil {
		return c, err
	}
	if choice.Provider != provider.Builtin { // the built-in model runs no commands and changes no files
		warnings = append(warnings, noteClaudeSettings(req.claude)...)
	}
	now := b.cfg.Recordings.PromptTime()
	note, err := b.cfg.Recordings.BeginRun(req.workspace, choice, now, b.cfg.Env)
	if err != nil {
		return c, fmt.Errorf("runspec: %w", err)
	}
	if note != "" {
		warnings = append(warnings, note)
	}
	c, err = composeLayers(req, defs, choice, now, guides...)
	c.warnings = warnings
	return c, err
}

// composeLayers composes the system prompts of a run. An agent's role and rules stay the
// same, so that a provider can cache them; the place and the date come after the
// breakpoint, and so do the project's instructions: they are the same for all agents, and
// the record holds them once. The built-in planner uses neither.
func composeLayers(req acceptedRequest, defs []supervisor.Definition, choice provider.Choice, now time.Time, project ...prompt.Layer) (c composedPrompts, err error) {
	around := append(project, prompt.Layer{Name: "environment", Content: environmentText(req.workspace, now), Priority: prompt.EnvironmentPriority})
	if choice.Provider == provider.Builtin {
		around = nil
	}
	c.definitions = slices.Clone(defs)
	for i, d := range c.definitions {
		p, err := prompt.Compose(append([]prompt.Layer{
			{Name: "role", Content: d.System, Priority: prompt.RolePriority},
			{Name: "constraints", Content: bulletList("Constraints of this run:", slices.Concat(req.Constraints, d.Constraints)), Priority: prompt.RulesPriority},
			{Name: "criteria", Content: bulletList("The run is a success if:", slices.Concat(req.Criteria, d.Criteria)), Priority: prompt.RulesPriority},
			{Name: "failure", Content: failure.Prompt(slices.Concat(req.FailureConditions, d.FailIf), declaringTool(d, req)), Priority: prompt.RulesPriority},
		}, around...))
		if err != nil {
			return c, fmt.Errorf("runspec: agent %s: %w", d.Name, err)
		}
		c.definitions[i].System, c.dynamic = p.Stable, p.Dynamic
	}
	return c, nil
}

func environmentText(dir string, now time.Time) string {
	text := "Today is " + now.Format("Monday, 2 January 2006") + "."
	if dir != "" {
		text += "\nYour tools work in the directory " + dir + "."
	}
	return text
}

func bulletList(head string, items []string) string {
	if len(items) == 0 {
		return ""
	}
	return head + "\n- " + strings.Join(items, "\n- ")
}
