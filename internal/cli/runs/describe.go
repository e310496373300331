package runs

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/session"
)

// Describe makes the command describe.
func (cs *Commands) Describe() *cobra.Command {
	return &cobra.Command{
		Use: "describe RUN", Args: command.Exactly("RUN"),
		Short: "Show a run's configuration, status and history",
		Long: `Show a run's configuration as fixed at its start (goal, caller, model and the reason
for it, limits, policy, agents and their tools, loop options), its agents' results,
open questions and warnings.`,
		Example:     "  troupe describe 01k9z3\n  troupe describe 01k9z3 -o json | jq '.description.model'\n  troupe describe 01k9z3 -o json | jq '.result | {model_ms, tool_ms}'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.VisitRun(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) error {
				return cs.describeRun(ctx, s, run)
			})
		},
	}
}

// description is what describe prints as JSON.
type description struct {
	client.RunInfo
	Questions []client.Question `json:"questions"`
	Warnings  []json.RawMessage `json:"warnings"` // events, the newest last

	events []client.Event // of the warnings
}

// warningsMax bounds the warnings that are kept: the newest of them.
const warningsMax = 100

// alarmKinds are the kinds of events that a person should look at.
var alarmKinds = []string{event.KindWarningRaised, event.KindAgentTainted, event.KindErrorRaised, event.KindLimitSoft, event.KindBudgetExhausted, event.KindBudgetDenied, event.KindBudgetOverrun, event.KindLoopDetected,
	event.KindStopVetoed, event.KindGuardrailTriggered, event.KindGuardrailEscalated, event.KindRecoveryFired, event.KindCheckpointResumeUnsafe, event.KindAgentResumed, event.KindModelFallback, event.KindToolDenied}

func (cs *Commands) describeRun(ctx context.Context, s *session.Session, run string) error {
	info, err := s.Describe(ctx, run)
	if err != nil {
		return err
	}
	d := description{RunInfo: info, Questions: []client.Question{}, Warnings: []json.RawMessage{}}
	for _, m := range session.AgentResults(info.Result) {
		if q := m.Query; q != nil {
			d.Questions = append(d.Questions, client.Question{RunID: run, Agent: string(m.ID), Query: q.Query, Question: s.QuestionText(run, m),
				Reason: string(q.Reason), Call: q.Call})
		}
	}
	err = s.Events(ctx, run, nil, false, func(e client.Event, raw []byte) error {
		if slices.Contains(alarmKinds, e.Kind) {
			d.Warnings, d.events = append(d.Warnings, raw), append(d.events, e)
		}
		if n := len(d.Warnings) - warningsMax; n > 0 {
			d.Warnings, d.events = d.Warnings[n:], d.events[n:]
		}
		return nil
	})
	if err != nil {
		return err
	}
	if cs.Console.Output != "table" {
		if d.Description != nil {
			d.Description.Tools = offeredTools(d.Description)
		}
		return cs.Console.PrintData(d)
	}
	if info.State == client.RunInterrupted {
		cs.Console.Say(s.DescribeInterrupted(info))
	}
	return cs.Console.PrintLines(cs.drawDescription(d))
}
