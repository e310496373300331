package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/provider/catalog"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/model"
)

func (a *modelCommands) modelsCommand() *cobra.Command {
	c := commandGroup("models", "List the models with their prices, or ask one whether it answers",
		"A run takes the model that --model names, or the configuration, or the keys in the\nenvironment, or a local Ollama, or else builtin/scout, which needs none.",
		"  troupe models list\n  troupe models ping anthropic/claude-sonnet-5-5")
	c.AddCommand(a.modelsList(), a.modelsPing())
	return c
}

// modelInfo is one model that can be named. Prices are US dollars a million tokens.
type modelInfo struct {
	Name       string   `json:"name"`
	Window     int64    `json:"window,omitempty"`
	MaxOutput  int64    `json:"max_output,omitempty"`
	PriceKnown bool     `json:"price_known"`
	Input      *float64 `json:"usd_per_million_input"` // null: unknown
	Output     *float64 `json:"usd_per_million_output"`
	CacheRead  *float64 `json:"usd_per_million_cache_read"`
	CacheWrite *float64 `json:"usd_per_million_cache_write"`
	// Long is the price of calls with longer prompts; absent where that is not higher.
	Long *longInfo `json:"long_prompts,omitempty"`
	// Bound is how certain it is that a call is billed for no more than its reservation.
	Bound  provider.Bound `json:"billing_bound"`
	Chosen bool           `json:"chosen"`

	price budget.Price
}

// longInfo are the prices of calls whose prompts have more than Above tokens.
type longInfo struct {
	Above      int64   `json:"above_tokens"`
	Input      float64 `json:"usd_per_million_input"`
	Output     float64 `json:"usd_per_million_output"`
	CacheRead  float64 `json:"usd_per_million_cache_read"`
	CacheWrite float64 `json:"usd_per_million_cache_write"`
}

// modelsDoc is what list prints as JSON.
type modelsDoc struct {
	PricesAsOf string `json:"prices_as_of"`
	// PricesFrom is the file that takes precedence over the list, and PricesFileAsOf when it was written.
	PricesFrom     string `json:"prices_from,omitempty"`
	PricesFileAsOf string `json:"prices_file_as_of,omitempty"`

	Chosen string      `json:"chosen,omitempty"` // by a run on this machine that names no model
	Why    string      `json:"why"`
	Models []modelInfo `json:"models"`
}

func infoOf(name string, f catalog.Facts, bound provider.Bound) modelInfo {
	p := f.Price
	i := modelInfo{Name: name, Window: f.Window, MaxOutput: f.Output, PriceKnown: p.Known, Bound: bound, price: p}
	if l := p.Long; p.Known && l.Above > 0 {
		i.Long = &longInfo{l.Above, float64(l.Input) / 1e3, float64(l.Output) / 1e3, float64(l.CacheRead) / 1e3, float64(l.CacheWrite) / 1e3}
	}
	if p.Known {
		usd := func(nano int64) *float64 { v := float64(nano) / 1e3; return &v }
		i.Input, i.Output, i.CacheRead, i.CacheWrite = usd(p.Input), usd(p.Output), usd(p.CacheRead), usd(p.CacheWrite)
	}
	return i
}

// chooseModel is the choice that a node on this machine makes.
func chooseModel(ctx context.Context, sessions *opener, named string) (provider.Choice, error) {
	prices, err := sessions.prices()
	if err != nil {
		return provider.Choice{}, err
	}
	return provider.Choose(ctx, provider.Config{Model: named, Setting: sessions.model, Env: sessions.console.getenv, Scout: investigator.New(), Prices: prices})
}

// prices are those of --pricing-file.
func (a *opener) prices() (catalog.Table, error) {
	t, err := catalog.Load(a.pricing)
	if err != nil {
		return t, &failure{exitUsage, err, "--pricing-file names the file; see docs/prices.md"}
	}
	return t, nil
}

func (a *modelCommands) modelsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: none,
		Short: "List the models whose price is known, and which one a run would take and why",
		Long: `List the models whose price and window are known, with the date of the prices, and
the model that a run here takes if it names none. Other models can be named, too:
their price is unknown, not zero, so a limit in money cannot be kept for them.`,
		Example:     "  troupe models list\n  troupe models list -o json | jq -r '.models[] | select(.usd_per_million_output < 3) | .name'",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(c *cobra.Command, _ []string) error {
			over, err := a.sessions.prices()
			if err != nil {
				return err
			}
			doc := modelsDoc{PricesAsOf: provider.PricesAsOf, PricesFrom: over.File}
			if over.File != "" {
				doc.PricesFileAsOf = over.Date.UTC().Format(time.DateOnly)
			}
			for _, l := range provider.Listed(over) {
				doc.Models = append(doc.Models, infoOf(l.Provider+"/"+l.Model, l.Facts, l.Bound))
			}
			doc.Models = append(doc.Models, infoOf(investigator.Name, catalog.Facts{Price: budget.Price{Known: true}}, provider.Exact))
			choice, err := chooseModel(c.Context(), a.sessions, "")
			if err != nil {
				doc.Why = err.Error()
			} else {
				doc.Chosen, doc.Why = choice.Name(), choice.Why
				i := slices.IndexFunc(doc.Models, func(m modelInfo) bool { return m.Name == doc.Chosen })
				if i < 0 {
					i = len(doc.Models)
					doc.Models = append(doc.Models, infoOf(doc.Chosen, catalog.Facts{Price: choice.Price, Window: choice.Window, Output: choice.MaxOutput}, choice.Bound))
				}
				doc.Models[i].Chosen = true
			}
			if a.console.output != "table" {
				return a.console.printData(doc)
			}
			return a.modelsText(doc)
		},
	}
}

func (a *modelCommands) modelsText(doc modelsDoc) error {
	head := slices.Concat(left("MODEL"), right("WINDOW", "OUTPUT", "IN", "OUT", "CACHED", "WRITTEN"), left("BOUND"))
	var rows [][]string
	for _, m := range doc.Models {
		name := "  " + term.Line(m.Name)
		if m.Chosen {
			name = "* " + term.Line(m.Name)
		}
		row := []string{name, size(m.Window), size(m.MaxOutput), "unknown", "unknown", "unknown", "unknown"}
		if p := m.price; p.Known {
			row = append(row[:3], dollars(p.Input), dollars(p.Output), dollars(p.CacheRead), dollars(p.CacheWrite))
		}
		rows = append(rows, append(row, string(m.Bound)))
	}
	if err := a.console.tableOf(head, rows); err != nil {
		return err
	}
	text := "* " + term.Line(doc.Chosen) + ": " + term.Line(doc.Why)
	if doc.Chosen == "" {
		text = "none would be chosen: " + term.Line(doc.Why)
	}
	lines := []string{"", "US dollars a million tokens, as of " + doc.PricesAsOf}
	if doc.PricesFrom != "" {
		lines[1] += ", and before those the prices of " + term.Line(doc.PricesFrom) + ", written on " + doc.PricesFileAsOf
	}
	return a.console.lines(append(lines, "BOUND: what is held for a call covers it by its own count (exact) or by what its provider publishes (documented)", text))
}

func size(tokens int64) string {
	if tokens == 0 {
		return "-"
	}
	return term.Tokens(tokens)
}

func dollars(nano int64) string {
	if nano == 0 {
		return "free"
	}
	return "$" + cents(nano)
}

const (
	askTimeout = 30 * time.Second
	askOutput  = 64 // tokens of a ping's answer: some models think first
)

// pong is what ping prints as JSON.
type pong struct {
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

func (a *modelCommands) modelsPing() *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use: "ping [PROVIDER/MODEL]",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) <= 1 {
				return nil
			}
			return exactly("PROVIDER/MODEL")(c, args)
		},
		Short: "Ask a model one tiny question: does it answer, how fast, at what cost",
		Long: fmt.Sprintf(`Send one request of a few tokens, for at most %d tokens of output, to the model that
is named, or to the one that a run here would take. It is a real request and is
billed as one.`, askOutput),
		Example:     "  troupe models ping\n  troupe models ping openai/gpt-6-sol --timeout 10s -o json | jq .took_ms",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			named := ""
			if len(args) == 1 {
				named = args[0]
			}
			if timeout <= 0 {
				return usage("leave it out for the default", "--timeout must be more than 0")
			}
			sig := catch()
			defer sig.stop()
			return a.ping(sig.starting, named, timeout)
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", askTimeout, "how long to wait for the answer")
	return c
}

func (a *modelCommands) ping(ctx context.Context, named string, timeout time.Duration) error {
	ctx, end := context.WithTimeout(ctx, timeout)
	defer end()
	choice, err := chooseModel(ctx, a.sessions, named)
	if err != nil {
		return &failure{exitUsage, err, "troupe models list shows what can be named"}
	}
	began := time.Now()
	reply, err := choice.Client.Complete(ctx, model.Request{Model: choice.Model, System: "Answer with one word.", MaxOutput: askOutput,
		Messages: []model.Message{{Role: model.User, Text: "ping"}}}, nil)
	if err != nil {
		return pingFailed(choice, err, timeout, errors.Is(ctx.Err(), context.DeadlineExceeded))
	}
	p := pong{Model: choice.Name(), Why: choice.Why, Served: reply.Served, TookMS: time.Since(began).Milliseconds(), Text: reply.Message.Text,
		Usage: reply.Usage, UsageKnown: reply.UsageKnown, PriceKnown: choice.Price.Known}
	text := "unknown"
	if choice.Price.Known && reply.UsageKnown {
		v := float64(choice.Price.Cost(reply.Usage).Nano) / nanoUSD
		p.CostUSD, text = &v, fmt.Sprintf("$%.6f", v)
		if v == 0 {
			text = "free"
		}
	}
	if a.console.output != "table" {
		return a.console.printData(p)
	}
	g := a.console.page()
	g.pairs([2]string{"model", p.Model + " (" + p.Why + ")"}, [2]string{"served by", p.Served}, [2]string{"took", took(max(1, p.TookMS))},
		[2]string{"tokens", fmt.Sprintf("%d in, %d out", p.Usage.Prompt(), p.Usage.Output)}, [2]string{"cost", text},
		[2]string{"answer", term.Cut(term.Line(p.Text), g.width)})
	return a.console.lines(g.lines)
}

// keysOf are the variables that say how to reach a provider.
var keysOf = map[string]string{"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY or GOOGLE_API_KEY",
	"ollama": "OLLAMA_HOST"}

// pingFailed explains why a model did not answer, and how to fix it.
func pingFailed(c provider.Choice, err error, timeout time.Duration, late bool) error {
	var known *model.Error
	if late {
		return &failure{exitProvider, fmt.Errorf("%s did not answer within %s", c.Name(), timeout), "look at the address and the network, or wait longer with --timeout"}
	}
	if !errors.As(err, &known) {
		return &failure{exitProvider, fmt.Errorf("%s: %w", c.Name(), err), ""}
	}
	hint := ""
	switch known.Class {
	case model.Auth:
		hint = "the provider refuses the key: look at " + keysOf[c.Provider]
	case model.RateLimit, model.Overload:
		hint = "it is there, and busy: ask again in a while"
	case model.Network:
		hint = "nothing answers there: look at the address and the network"
	case model.BadRequest, model.Misconfigured:
		hint = "look at the name of the model and at the address of the provider"
	}
	return &failure{exitProvider, fmt.Errorf("%s: %s", c.Name(), known.Message), hint}
}
