package models

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/interrupt"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/model"
)

const (
	askTimeout = 30 * time.Second
	askOutput  = 64 // tokens of a ping's answer: some models think first
)

// pingReport is what ping prints as JSON.
type pingReport struct {
	Model      string      `json:"model"`
	Why        string      `json:"why"`
	Served     string      `json:"served,omitempty"`
	TookMS     int64       `json:"took_ms"`
	Text       string      `json:"text"`
	Usage      model.Usage `json:"usage"`
	UsageKnown bool        `json:"usage_known"`
	PriceKnown bool        `json:"price_known"`
	CostUSD    *float64    `json:"cost_usd"` // null: unknown
}

func (cs *Commands) pingCommand() *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use: "ping [PROVIDER/MODEL]",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) <= 1 {
				return nil
			}
			return command.Exactly("PROVIDER/MODEL")(c, args)
		},
		Short: "Send a model one short request; print its latency and cost",
		Long: fmt.Sprintf(`Send one request of a few tokens, for at most %d tokens of output, to the model that
is named, or to the one that a run here would take. It is a real request and is
billed as one.`, askOutput),
		Example:     "  troupe models ping\n  troupe models ping openai/gpt-6-sol --timeout 10s -o json | jq .took_ms",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			named := ""
			if len(args) == 1 {
				named = args[0]
			}
			if timeout <= 0 {
				return exit.UsageError("leave it out for the default", "--timeout must be more than 0")
			}
			sig := interrupt.Catch()
			defer sig.Stop()
			return cs.pingModel(sig.Starting, named, timeout)
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", askTimeout, "how long to wait for the answer")
	return c
}

func (cs *Commands) pingModel(ctx context.Context, named string, timeout time.Duration) error {
	ctx, end := context.WithTimeout(ctx, timeout)
	defer end()
	choice, err := Choose(ctx, cs.Sessions, named)
	if err != nil {
		return &exit.Failure{Code: exit.Usage, Err: err, Hint: "troupe models list shows the models"}
	}
	began := time.Now()
	reply, err := choice.Client.Complete(ctx, model.Request{Model: choice.Model, System: "Answer with one word.", MaxOutput: askOutput,
		Messages: []model.Message{{Role: model.User, Text: "ping"}}}, nil)
	if err != nil {
		return pingError(choice, err, timeout, errors.Is(ctx.Err(), context.DeadlineExceeded))
	}
	p := pingReport{Model: choice.Name(), Why: choice.Why, Served: reply.Served, TookMS: time.Since(began).Milliseconds(), Text: reply.Message.Text,
		Usage: reply.Usage, UsageKnown: reply.UsageKnown, PriceKnown: choice.Price.Known}
	text := "unknown"
	if choice.Price.Known && reply.UsageKnown {
		v := float64(choice.Price.Cost(reply.Usage).Nano) / budget.NanoPerUSD
		p.CostUSD, text = &v, fmt.Sprintf("$%.6f", v)
		switch {
		case v == 0:
			text = "free"
		case choice.Price.Estimated:
			text = "~" + text + " (an estimate by the list price: the model is behind a gateway)"
		}
	}
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(p)
	}
	g := cs.Console.NewPage()
	g.AddPairs([2]string{"model", p.Model + " (" + p.Why + ")"}, [2]string{"served by", p.Served}, [2]string{"took", console.Took(max(1, p.TookMS))},
		[2]string{"tokens", fmt.Sprintf("%d in, %d out", p.Usage.Prompt(), p.Usage.Output)}, [2]string{"cost", text},
		[2]string{"answer", term.Truncate(term.CleanLine(p.Text), g.Width)})
	return cs.Console.PrintLines(g.Lines)
}

// keyVariables are the variables that say how to reach a provider.
var keyVariables = map[string]string{"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY or GOOGLE_API_KEY",
	"ollama": "OLLAMA_HOST"}

// pingError explains why a model did not answer, and how to fix it.
func pingError(c provider.Choice, err error, timeout time.Duration, late bool) error {
	var known *model.Error
	if late {
		return &exit.Failure{Code: exit.Provider, Err: fmt.Errorf("%s did not answer within %s", c.Name(), timeout), Hint: "check the address and the network, or wait longer with --timeout"}
	}
	if !errors.As(err, &known) {
		return &exit.Failure{Code: exit.Provider, Err: fmt.Errorf("%s: %w", c.Name(), err), Hint: ""}
	}
	hint := ""
	switch known.Class {
	case model.Auth:
		hint = "the provider refuses the key: look at " + keyVariables[c.Provider]
	case model.Quota:
		hint = "the account has no quota left: look at its plan and billing"
	case model.RateLimit, model.Overload:
		hint = "the server is busy: try again later"
	case model.Network:
		hint = "no server answers there: check the address and the network"
	case model.BadRequest, model.Misconfigured:
		hint = "look at the name of the model and at the address of the provider"
	}
	return &exit.Failure{Code: exit.Provider, Err: fmt.Errorf("%s: %s", c.Name(), known.Message), Hint: hint}
}
