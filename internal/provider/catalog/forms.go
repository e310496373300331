package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// rawRates are the raw rates of a file for one length of prompts.
type rawRates struct {
	input, output, read, write, reasoning json.RawMessage
}

// priceTier holds the rates for prompts above a length; 0 is any. If a file states them twice,
// in two forms, the higher rate counts.
type priceTier struct {
	above int64
	rawRates
	duplicateRates []rawRates
}

// parsePrice reads prices per number of tokens. A missing rate is replaced by the plain rate of
// its kind. parsePrice keeps two rates for long prompts; if there is a third, end is the prompt
// length at which it begins.
func parsePrice(per int64, tiers []priceTier) (p budget.Price, end int64, err error) {
	slices.SortFunc(tiers, func(a, b priceTier) int { return cmp.Compare(a.above, b.above) })
	for i, t := range tiers {
		if i > 0 && t.above == tiers[i-1].above {
			return p, 0, fmt.Errorf("%w: two rates for prompts above %d tokens", ErrEntry, t.above)
		}
		r, known, err := t.rawRates.readRates(per, p)
		for _, other := range t.duplicateRates {
			dear, _, bad := other.readRates(per, p)
			r, err = r.Dearer(dear), cmp.Or(err, bad)
		}
		if err != nil {
			return p, 0, err
		}
		switch {
		case i == 0 && !known || i == 0 && t.above > 0:
			return budget.Price{}, 0, nil
		case i == 0:
			p = r
		case i == 1:
			p.Long = tierOf(t.above, r)
		case i == 2:
			p.Longest = tierOf(t.above, r)
		default: // a prompt that grows beyond end is reserved at no lower rate
			end = cmp.Or(end, t.above)
			p.Longest = tierOf(p.Longest.Above, r.Dearer(budget.Price{Known: true, Input: p.Longest.Input, Output: p.Longest.Output,
				CacheRead: p.Longest.CacheRead, CacheWrite: p.Longest.CacheWrite}))
		}
	}
	return p, end, nil
}

func tierOf(above int64, p budget.Price) budget.Tier {
	return budget.Tier{Above: above, Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
}

// readRates reads the rates of one tier; a rate that the tier omits is taken from base, if base
// has it, so that a tier may list only the differences.
func (r rawRates) readRates(per int64, base budget.Price) (p budget.Price, known bool, err error) {
	read := func(raw json.RawMessage, otherwise int64) (int64, bool) {
		n, ok, bad := parseRate(raw, per)
		err = cmp.Or(err, bad)
		if !ok {
			return otherwise, false
		}
		return n, true
	}
	var in, out bool
	p.Input, in = read(r.input, base.Input)
	p.Output, out = read(r.output, base.Output)
	p.CacheRead, _ = read(r.read, max(p.Input, base.CacheRead))
	p.CacheWrite, _ = read(r.write, max(p.Input, base.CacheWrite))
	thought, _ := read(r.reasoning, 0)
	p.Output = max(p.Output, thought)
	p.Known = in && out || base.Known
	return p, p.Known, err
}

// tiersMax bounds the tiers of one model.
const tiersMax = 16

// devModel is a model in the form of models.dev: dollars per million tokens.
type devModel struct {
	Cost  map[string]json.RawMessage `json:"cost"`
	Limit struct {
		Context json.RawMessage `json:"context"`
		Input   json.RawMessage `json:"input"`
		Output  json.RawMessage `json:"output"`
	} `json:"limit"`
}

const million = 1_000_000

// overContext matches the older name of a tier: context_over_200k.
var overContext = lazyregexp.New(`^context_over_(\d{1,6})k$`)

func (t FactTable) readModelsDev(top map[string]map[string]json.RawMessage) error {
	for _, provider := range slices.Sorted(maps.Keys(top)) {
		raw, ok := top[provider]["models"]
		if !ok {
			continue
		}
		var models map[string]devModel
		if err := json.Unmarshal(raw, &models); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrForm, provider, err)
		}
		for _, name := range slices.Sorted(maps.Keys(models)) {
			f, err := models[name].parseFacts()
			if err != nil {
				return fmt.Errorf("%s/%s: %w", provider, name, err)
			}
			t.addFacts(provider, name, f)
		}
	}
	return nil
}

func costRates(m map[string]json.RawMessage) rawRates {
	return rawRates{m["input"], m["output"], m["cache_read"], m["cache_write"], m["reasoning"]}
}

func (m devModel) parseFacts() (f Facts, err error) {
	tiers := []priceTier{{rawRates: costRates(m.Cost)}}
	if raw, ok := m.Cost["tiers"]; ok {
		if tiers, err = readTiers(tiers, raw); err != nil {
			return f, err
		}
	}
	for key, raw := range m.Cost {
		if k := overContext.FindStringSubmatch(key); k != nil {
			var more map[string]json.RawMessage
			if err := json.Unmarshal(raw, &more); err != nil {
				return f, fmt.Errorf("%w: %s: %w", ErrEntry, key, err)
			}
			above, _ := strconv.ParseInt(k[1], 10, 64) // six digits
			if i := slices.IndexFunc(tiers, func(t priceTier) bool { return t.above > 0 && t.above == above*1000 }); i > 0 {
				tiers[i].duplicateRates = append(tiers[i].duplicateRates, costRates(more))
			} else {
				tiers = append(tiers, priceTier{above: above * 1000, rawRates: costRates(more)})
			}
		}
	}
	var end, input int64
	if f.Price, end, err = parsePrice(million, tiers); err != nil {
		return f, err
	}
	if f.Window, err = parseCount(m.Limit.Context); err != nil {
		return f, err
	}
	if input, err = parseCount(m.Limit.Input); err != nil {
		return f, err
	}
	f.Output, err = parseCount(m.Limit.Output)
	f.Window = leastKnown(leastKnown(f.Window, input), end)
	return f, err
}

// readTiers reads the newer form of tiers: a list of tiers with the size at which each begins.
func readTiers(tiers []priceTier, raw json.RawMessage) ([]priceTier, error) {
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) > tiersMax {
		return nil, fmt.Errorf("%w: tiers: %.80s", ErrEntry, raw)
	}
	for _, m := range list {
		var at struct {
			Type string          `json:"type"`
			Size json.RawMessage `json:"size"`
		}
		if err := json.Unmarshal(m["tier"], &at); err != nil || at.Type != "context" {
			return nil, fmt.Errorf("%w: a tier of no size", ErrEntry)
		}
		above, err := parseCount(at.Size)
		if err != nil || above == 0 {
			return nil, fmt.Errorf("%w: a tier of the size %.40s", ErrEntry, at.Size)
		}
		tiers = append(tiers, priceTier{above: above, rawRates: costRates(m)})
	}
	return tiers, nil
}

// leastKnown returns the smaller of two numbers, ignoring unknown ones.
func leastKnown(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// aboveTier matches the end of the names of rates for long prompts in LiteLLM's form.
var aboveTier = lazyregexp.New(`_above_(\d{1,6})k_tokens$`)

// readLiteLLM reads dollars a token. The names of some providers' models begin with
// the provider.
func (t FactTable) readLiteLLM(top map[string]map[string]json.RawMessage) error {
	for _, key := range slices.Sorted(maps.Keys(top)) {
		m := top[key]
		var provider string
		if raw, ok := m["litellm_provider"]; !ok || key == "sample_spec" || json.Unmarshal(raw, &provider) != nil || provider == "" {
			continue
		}
		f, err := liteLLMFacts(m)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		t.addFacts(provider, strings.TrimPrefix(key, provider+"/"), f)
	}
	return nil
}

func liteLLMFacts(m map[string]json.RawMessage) (f Facts, err error) {
	found := map[int64]string{0: ""}
	for key := range m {
		if k := aboveTier.FindStringSubmatch(key); k != nil {
			above, _ := strconv.ParseInt(k[1], 10, 64) // six digits
			found[above*1000] = k[0]
		}
	}
	var tiers []priceTier
	for above, end := range found {
		tiers = append(tiers, priceTier{above: above, rawRates: rawRates{m["input_cost_per_token"+end], m["output_cost_per_token"+end], m["cache_read_input_token_cost"+end],
			m["cache_creation_input_token_cost"+end], m["output_cost_per_reasoning_token"+end]}})
	}
	var end int64
	if f.Price, end, err = parsePrice(1, tiers); err != nil {
		return f, err
	}
	if f.Window, err = parseCount(m["max_input_tokens"]); err != nil {
		return f, err
	}
	f.Window = leastKnown(f.Window, end)
	if f.Output, err = parseCount(m["max_output_tokens"]); err == nil && f.Output == 0 {
		f.Output, err = parseCount(m["max_tokens"])
	}
	return f, err
}
