package models

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/provider/catalog"
	"github.com/troupe-run/troupe/internal/term"
)

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
	Long *longPrompts `json:"long_prompts,omitempty"`
	// Bound is how certain it is that a call is billed for no more than its reservation.
	Bound  provider.CostBound `json:"billing_bound"`
	Chosen bool               `json:"chosen"`

	price budget.Price
}

// longPrompts are the prices of calls whose prompts have more than Above tokens.
type longPrompts struct {
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

func newModelInfo(name string, f catalog.Facts, bound provider.CostBound) modelInfo {
	p := f.Price
	i := modelInfo{Name: name, Window: f.Window, MaxOutput: f.Output, PriceKnown: p.Known, Bound: bound, price: p}
	if l := p.Long; p.Known && l.Above > 0 {
		i.Long = &longPrompts{l.Above, float64(l.Input) / 1e3, float64(l.Output) / 1e3, float64(l.CacheRead) / 1e3, float64(l.CacheWrite) / 1e3}
	}
	if p.Known {
		usd := func(nano int64) *float64 { v := float64(nano) / 1e3; return &v }
		i.Input, i.Output, i.CacheRead, i.CacheWrite = usd(p.Input), usd(p.Output), usd(p.CacheRead), usd(p.CacheWrite)
	}
	return i
}

func (cs *Commands) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: command.NoArguments,
		Short: "List models with a known price, and the default model with the reason",
		Long: `List the models whose price and window are known, with the date of the prices, and
the model that a run here takes if it names none. Other models can be named, too:
their price is unknown, not zero, so a limit in money cannot be kept for them.`,
		Example:     "  troupe models list\n  troupe models list -o json |\n    jq -r '.models[] | select(.usd_per_million_output < 3) | .name'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(c *cobra.Command, _ []string) error {
			over, err := cs.Sessions.Prices()
			if err != nil {
				return err
			}
			doc := modelsDoc{PricesAsOf: provider.PricesAsOf, PricesFrom: over.File}
			if over.File != "" {
				doc.PricesFileAsOf = over.Date.UTC().Format(time.DateOnly)
			}
			for _, l := range provider.ListModels(over) {
				doc.Models = append(doc.Models, newModelInfo(l.Provider+"/"+l.Model, l.Facts, l.Bound))
			}
			doc.Models = append(doc.Models, newModelInfo(investigator.Name, catalog.Facts{Price: budget.Price{Known: true}}, provider.Exact))
			choice, err := Choose(c.Context(), cs.Sessions, "")
			if err != nil {
				doc.Why = err.Error()
			} else {
				doc.Chosen, doc.Why = choice.Name(), choice.Why
				i := slices.IndexFunc(doc.Models, func(m modelInfo) bool { return m.Name == doc.Chosen })
				if i < 0 {
					i = len(doc.Models)
					doc.Models = append(doc.Models, newModelInfo(doc.Chosen, catalog.Facts{Price: choice.Price, Window: choice.Window, Output: choice.MaxOutput}, choice.Bound))
				}
				doc.Models[i].Chosen = true
			}
			if cs.Console.Output != "table" {
				return cs.Console.PrintData(doc)
			}
			return cs.printModels(doc)
		},
	}
}

func (cs *Commands) printModels(doc modelsDoc) error {
	head := slices.Concat(console.Left("MODEL"), console.Right("WINDOW", "OUTPUT", "IN", "OUT", "CACHED", "WRITTEN"), console.Left("BOUND"))
	var rows [][]string
	for _, m := range doc.Models {
		name := "  " + term.CleanLine(m.Name)
		if m.Chosen {
			name = "* " + term.CleanLine(m.Name)
		}
		row := []string{name, tokensText(m.Window), tokensText(m.MaxOutput), "unknown", "unknown", "unknown", "unknown"}
		if p := m.price; p.Known {
			row = append(row[:3], priceCell(p.Input), priceCell(p.Output), priceCell(p.CacheRead), priceCell(p.CacheWrite))
		}
		rows = append(rows, append(row, string(m.Bound)))
	}
	if err := cs.Console.PrintColumns(head, rows); err != nil {
		return err
	}
	text := "* " + term.CleanLine(doc.Chosen) + ": " + term.CleanLine(doc.Why)
	if doc.Chosen == "" {
		text = "none would be chosen: " + term.CleanLine(doc.Why)
	}
	lines := []string{"", "US dollars a million tokens, as of " + doc.PricesAsOf}
	if doc.PricesFrom != "" {
		lines[1] += ", and before those the prices of " + term.CleanLine(doc.PricesFrom) + ", written on " + doc.PricesFileAsOf
	}
	return cs.Console.PrintLines(append(lines, "BOUND: how the reservation of a call is bounded: by troupe's own count (exact) or by what its provider publishes (documented)", text))
}

func tokensText(tokens int64) string {
	if tokens == 0 {
		return "-"
	}
	return term.FormatTokens(tokens)
}

func priceCell(nano int64) string {
	if nano == 0 {
		return "free"
	}
	return "$" + console.DollarsPerMillion(nano)
}
