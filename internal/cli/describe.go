package cli

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

func (a *runsCommands) describeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "describe RUN", Args: exactly("RUN"),
		Short: "Show what a run was told to be, how it stands and how it came to it",
		Long: `Show everything that was decided about a run when it was opened (goal, caller,
model and why, limits, policy, agents and their tools, how the loop behaves), the
report of its agents, open questions and warnings.`,
		Example:     "  troupe describe 01k9z3\n  troupe describe 01k9z3 -o json | jq '.description.model'\n  troupe describe 01k9z3 -o json | jq '.result | {model_ms, tool_ms}'",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return a.sessions.visit(toLook, func(ctx context.Context, s *seat) error { return a.describe(ctx, s, args[0]) })
		},
	}
}

// described is what describe prints as JSON.
type described struct {
	client.RunInfo
	Questions []client.Question `json:"questions"`
	Warnings  []json.RawMessage `json:"warnings"` // events, the newest last

	events []client.Event // of the warnings
}

// warningsMax bounds the warnings that are kept: the newest of them.
const warningsMax = 100

// alarms are the kinds of events that a person should look at.
var alarms = []string{event.KindWarningRaised, event.KindErrorRaised, event.KindLimitSoft, event.KindBudgetExhausted, event.KindBudgetDenied, event.KindBudgetOverrun, event.KindLoopDetected,
	event.KindStopVetoed, event.KindGuardrailTriggered, event.KindGuardrailEscalated, event.KindRecoveryFired, event.KindCheckpointResumeUnsafe, event.KindAgentResumed, event.KindModelFallback, event.KindToolDenied}

func (a *runsCommands) describe(ctx context.Context, s *seat, run string) error {
	info, err := s.Describe(ctx, run)
	if err != nil {
		return err
	}
	d := described{RunInfo: info, Questions: []client.Question{}, Warnings: []json.RawMessage{}}
	for _, m := range agents(info.Result) {
		if q := m.Query; q != nil {
			d.Questions = append(d.Questions, client.Question{RunID: run, Agent: string(m.ID), Query: q.Query, Question: q.Question,
				Reason: string(q.Reason), Call: q.Call})
		}
	}
	err = s.Events(ctx, run, nil, false, func(e client.Event, raw []byte) error {
		if slices.Contains(alarms, e.Kind) {
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
	if a.console.output != "table" {
		return a.console.printData(d)
	}
	return a.console.lines(a.describeText(d))
}
