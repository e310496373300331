package provider

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/provider/catalog"
	"github.com/troupe-run/troupe/model/anthropic"
	"github.com/troupe-run/troupe/model/gemini"
	"github.com/troupe-run/troupe/model/openai"
)

// PricesAsOf is when the table was last compared with the providers' price
// pages: plain requests, standard tier, no regional surcharge.
const PricesAsOf = "2026-11-20"

// freePrice is the price of models inside troupe.
var freePrice = budget.Price{Known: true}

// Windows. If longer prompts cost more per token, the window ends where the higher rate
// begins: a prompt that grows beyond it is reserved at the higher rate.
const (
	window100k = 100_000
	window200k = 200_000
	window272k = 272_000
	window1m   = 1_000_000
	output64k  = 64_000
	output65k  = 65_536
	output128k = 128_000
)

// priceUSD makes a price from US dollars per million tokens, in thousandths:
// input, output, cache read, cache write. A thousandth of a dollar per million
// is one billionth per token.
func priceUSD(input, output, read, write, window, most int64) catalog.Facts {
	return catalog.Facts{Price: budget.Price{Known: true, Input: input, Output: output, CacheRead: read, CacheWrite: write}, Window: window, Output: most}
}

// doublingPrice is priceUSD for a model whose prompts beyond its window cost twice as much, and whose
// output then costs half as much again.
func doublingPrice(input, output, read, write, window, most int64) catalog.Facts {
	return withLongPrice(priceUSD(input, output, read, write, window, most), 2*input, output+output/2, 2*read, 2*write)
}

// withLongPrice returns the facts with another price for prompts beyond the window.
func withLongPrice(f catalog.Facts, input, output, read, write int64) catalog.Facts {
	f.Price.Long = budget.Tier{Above: f.Window, Input: input, Output: output, CacheRead: read, CacheWrite: write}
	return f
}

// listedModels are the models with a known price; other models have none, which is not zero.
// test/judges compares the names with the constants of the providers' SDKs. Of Google's two prices
// the table has the later one: until 2026-11-30 (gemini-4-argon) and 2026-12-31 (gemini-3.8-flash)
// half of it is billed, and a limit in money must hold after that, too. Google does not bill cache
// writes.
var listedModels = map[string]map[string]catalog.Facts{
	anthropic.Provider: {
		"claude-fable-5-1":  priceUSD(10_000, 50_000, 250, 12_500, window1m, output128k),
		"claude-fable-5":    priceUSD(10_000, 50_000, 1_000, 12_500, window1m, output128k),
		"claude-opus-5-5":   priceUSD(4_000, 20_000, 200, 5_000, window1m, output128k),
		"claude-opus-5":     priceUSD(5_000, 25_000, 500, 6_250, window1m, output128k),
		"claude-opus-4-8":   priceUSD(5_000, 25_000, 500, 6_250, window1m, output128k),
		"claude-opus-4-7":   priceUSD(5_000, 25_000, 500, 6_250, window1m, output128k),
		"claude-opus-4-6":   priceUSD(5_000, 25_000, 500, 6_250, window1m, output128k),
		"claude-opus-4-5":   priceUSD(5_000, 25_000, 500, 6_250, window200k, output64k),
		"claude-sonnet-5-5": priceUSD(2_000, 10_000, 100, 2_500, window1m, output128k),
		"claude-sonnet-5":   priceUSD(2_000, 10_000, 200, 2_500, window1m, output128k),
		"claude-sonnet-4-6": priceUSD(3_000, 15_000, 300, 3_750, window200k, output64k),
		"claude-sonnet-4-5": priceUSD(3_000, 15_000, 300, 3_750, window200k, output64k), // served until 2026-11-30
		"claude-haiku-5-5":  withLongPrice(priceUSD(100, 500, 10, 125, window100k, output128k), 500, 2_500, 50, 625),
		"claude-haiku-4-5":  priceUSD(1_000, 5_000, 100, 1_250, window200k, output64k),
	},
	openai.Provider: {
		"gpt-6-astra":   doublingPrice(10_000, 50_000, 1_000, 12_500, window272k, output128k),
		"gpt-6.1-sol":   doublingPrice(2_000, 10_000, 100, 2_500, window272k, output128k),
		"gpt-6.1-terra": doublingPrice(1_000, 5_000, 50, 1_250, window272k, output128k),
		"gpt-6-sol":     doublingPrice(2_000, 10_000, 200, 2_500, window272k, output128k),
		"gpt-6-luna":    doublingPrice(100, 500, 10, 125, window272k, output128k),
		"gpt-5.6-terra": doublingPrice(2_000, 12_000, 200, 2_500, window272k, output128k),
		"gpt-5.6-luna":  doublingPrice(200, 1_200, 20, 250, window272k, output128k),
		"gpt-5.4":       doublingPrice(2_500, 15_000, 250, 2_500, window272k, output128k),
		"gpt-5.4-mini":  priceUSD(750, 4_500, 75, 750, window272k, output128k),
	},
	gemini.Provider: {
		"gemini-4-argon": priceUSD(4_000, 20_000, 200, 4_000, window1m, output65k),
		DefaultGemini:    priceUSD(1_500, 7_500, 150, 1_500, window1m, output65k),
	},
}

// frameAnthropic is more than the system prompt that Anthropic adds if tools are listed:
// 290 to 804 tokens, depending on the model, according to its price page.
const frameAnthropic = 1_024

// toolFrameTokens returns the most tokens that a provider adds to a prompt that lists tools.
// Providers other than these document none.
func toolFrameTokens(provider, name string) int64 {
	if provider == anthropic.Provider && strings.HasPrefix(name, "claude-") {
		return frameAnthropic
	}
	return 0
}

// ModelListing describes a model from local data, without a request to any provider.
type ModelListing struct {
	Provider, Model string
	catalog.Facts
	Bound CostBound
}

// ListModels returns the models of the table, by provider and name, with the facts of a file
// applied.
func ListModels(over catalog.FactTable) []ModelListing {
	var list []ModelListing
	for provider, table := range listedModels {
		for name, f := range table {
			f = Config{Prices: over}.overriddenFacts(provider, name).Merge(f)
			list = append(list, ModelListing{provider, name, f, BoundOf(provider)})
		}
	}
	slices.SortFunc(list, func(a, b ModelListing) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Model, b.Model))
	})
	return list
}

// snapshotDate matches the date at the end of a snapshot's name, which does not change the price.
var snapshotDate = lazyregexp.New(`-(\d{8}|\d{4}-\d{2}-\d{2})$`)

// factsOf returns the listed facts about a model; the zero value if it is not listed.
func factsOf(provider, name string) catalog.Facts {
	table := listedModels[provider]
	if f, ok := table[name]; ok {
		return f
	}
	return table[snapshotDate.ReplaceAllString(name, "")]
}

// overriddenFacts returns the facts that the operator's file states about a model, if any.
func (cfg Config) overriddenFacts(provider, name string) catalog.Facts {
	if f, ok := cfg.Prices.Lookup(provider, name); ok {
		return f
	}
	f, _ := cfg.Prices.Lookup(provider, snapshotDate.ReplaceAllString(name, ""))
	return f
}

// CheapestModel returns the cheapest listed model of the same provider, for work that needs no
// better one. ok is false if that is the model itself, or if the model is called at another
// address than the provider's own.
func (c Choice) CheapestModel() (cheap Choice, ok bool) {
	if !c.Paid || !c.Price.Known {
		return Choice{}, false
	}
	best := c
	for _, name := range slices.Sorted(maps.Keys(listedModels[c.Provider])) {
		f := c.overriddenFacts(name).Merge(listedModels[c.Provider][name])
		if f.Price.Input+f.Price.Output < best.Price.Input+best.Price.Output {
			best = Choice{Provider: c.Provider, Model: name, Price: f.Price, Window: f.Window, MaxOutput: f.Output, Bound: c.Bound, Paid: c.Paid}
		}
	}
	return best, best.Model != c.Model
}
