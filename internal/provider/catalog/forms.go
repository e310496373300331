package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/budget"
)

// rates are the raw rates of a file for one length of prompts.
type rates struct {
	input, output, read, write, reasoning json.RawMessage
}

// tier holds the rates for prompts above a length; 0 is any. If a file states them twice,
// in two forms, the higher rate counts.
type tier struct {
	above int64
	rates
	again []rates
}

// price reads prices per number of tokens. A missing rate is replaced by the plain rate of
// its kind. price keeps two rates for long prompts; if there is a third, end is the prompt
// length at which it begins.
func price(per int64, tiers []tier) (p budget.Price, end int64, err error) {
	slices.SortFunc(tiers, func(a, b tier) int { return cmp.Compare(a.above, b.above) })
	for i, t := range tiers {
		if i > 0 && t.above == tiers[i-1].above {
			return p, 0, fmt.Errorf("%w: two rates for prompts above %d tokens", ErrEntry, t.above)
		}
		r, known, err := t.rates.read1(per, p)
		for _, other := range t.again {
			dear, _, bad := other.read1(per, p)
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

// read1 reads the rates of one tier; a rate that the tier omits is taken from base, if base
// has it, so that a tier may list only the differences.
func (r rates) read1(per int64, base budget.Price) (p budget.Price, known bool, err error) {
	read := func(raw json.RawMessage, otherwise int64) (int64, bool) {
		n, ok, bad := rate(raw, per)
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
var overContext = regexp.MustCompile(`^context_over_(\d{1,6})k$`)

func (t Table) modelsDev(top map[string]map[string]json.RawMessage) error {
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
			f, err := models[name].facts()
			if err != nil {
				return fmt.Errorf("%s/%s: %w", provider, name, err)
			}
			t.add(provider, name, f)
		}
	}
	return nil
}

func costs(m map[string]json.RawMessage) rates {
	return rates{m["input"], m["output"], m["cache_read"], m["cache_write"], m["reasoning"]}
}

func (m devModel) facts() (f Facts, err error) {
	tiers := []tier{{rates: costs(m.Cost)}}
	if raw, ok := m.Cost["tiers"]; ok {
		if tiers, err = named(tiers, raw); err != nil {
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
			if i := slices.IndexFunc(tiers, func(t tier) bool { return t.above > 0 && t.above == above*1000 }); i > 0 {
				tiers[i].again = append(tiers[i].again, costs(more))
			} else {
				tiers = append(tiers, tier{above: above * 1000, rates: costs(more)})
			}
		}
	}
	var end, input int64
	if f.Price, end, err = price(million, tiers); err != nil {
		return f, err
	}
	if f.Window, err = count(m.Limit.Context); err != nil {
		return f, err
	}
	if input, err = count(m.Limit.Input); err != nil {
		return f, err
	}
	f.Output, err = count(m.Limit.Output)
	f.Window = least(least(f.Window, input), end)
	return f, err
}

// named reads the newer form of tiers: a list of tiers with the size at which each begins.
func named(tiers []tier, raw json.RawMessage) ([]tier, error) {
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
		above, err := count(at.Size)
		if err != nil || above == 0 {
			return nil, fmt.Errorf("%w: a tier of the size %.40s", ErrEntry, at.Size)
		}
		tiers = append(tiers, tier{above: above, rates: costs(m)})
	}
	return tiers, nil
}

// least returns the smaller of two numbers, ignoring unknown ones.
func least(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// aboveTier matches the end of the names of rates for long prompts in LiteLLM's form.
var aboveTier = regexp.MustCompile(`_above_(\d{1,6})k_tokens$`)

// liteLLM reads dollars a token. The names of some providers' models begin with
// the provider.
func (t Table) liteLLM(top map[string]map[string]json.RawMessage) error {
	for _, key := range slices.Sorted(maps.Keys(top)) {
		m := top[key]
		var provider string
		if raw, ok := m["litellm_provider"]; !ok || key == "sample_spec" || json.Unmarshal(raw, &provider) != nil || provider == "" {
			continue
		}
		f, err := liteFacts(m)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		t.add(provider, strings.TrimPrefix(key, provider+"/"), f)
	}
	return nil
}

func liteFacts(m map[string]json.RawMessage) (f Facts, err error) {
	found := map[int64]string{0: ""}
	for key := range m {
		if k := aboveTier.FindStringSubmatch(key); k != nil {
			above, _ := strconv.ParseInt(k[1], 10, 64) // six digits
			found[above*1000] = k[0]
		}
	}
	var tiers []tier
	for above, end := range found {
		tiers = append(tiers, tier{above: above, rates: rates{m["input_cost_per_token"+end], m["output_cost_per_token"+end], m["cache_read_input_token_cost"+end],
			m["cache_creation_input_token_cost"+end], m["output_cost_per_reasoning_token"+end]}})
	}
	var end int64
	if f.Price, end, err = price(1, tiers); err != nil {
		return f, err
	}
	if f.Window, err = count(m["max_input_tokens"]); err != nil {
		return f, err
	}
	f.Window = least(f.Window, end)
	if f.Output, err = count(m["max_output_tokens"]); err == nil && f.Output == 0 {
		f.Output, err = count(m["max_tokens"])
	}
	return f, err
}
