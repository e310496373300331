package catalog_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/provider/catalog"
	"github.com/troupe-run/troupe/model"
)

const modelsDev = `{
 "google": {"id": "google", "name": "Google", "models": {
  "gemini-x": {"id": "gemini-x", "cost": {"input": 1.25, "output": 10, "cache_read": 0.125, "context_over_200k": {"input": 2.5, "output": 15}},
   "limit": {"context": 1000000, "output": 65536}},
  "gemini-y": {"id": "gemini-y", "cost": {"input": 1, "output": 2, "tiers": [{"input": 3, "output": 4, "tier": {"type": "context", "size": 1000}},
    {"input": 9, "output": 9, "tier": {"type": "context", "size": 5000}}]}, "limit": {"context": 9000, "input": 8000, "output": 10}}}},
 "anthropic": {"models": {"silent": {"id": "silent", "limit": {"context": 200000, "output": 1000}},
  "half": {"id": "half", "cost": {"input": 1}}, "thinker": {"id": "thinker", "cost": {"input": 1, "output": 2, "reasoning": 8}}}}}`

const liteLLM = `{
 "sample_spec": {"litellm_provider": "one of", "max_tokens": "a number, or a sentence"},
 "gemini/gemini-x": {"litellm_provider": "gemini", "input_cost_per_token": 1.25e-06, "output_cost_per_token": 1e-05, "max_input_tokens": 1048576,
  "max_output_tokens": 65535, "input_cost_per_token_above_200k_tokens": 2.5e-06, "output_cost_per_token_above_200k_tokens": 1.5e-05,
  "input_cost_per_token_above_200k_tokens_priority": 9},
 "claude-x": {"litellm_provider": "anthropic", "input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, "cache_creation_input_token_cost": 3.75e-06,
  "cache_read_input_token_cost": 3e-07, "max_tokens": 64000, "supports_vision": true},
 "tiny": {"litellm_provider": "openai", "input_cost_per_token": 3.75e-08, "output_cost_per_token": 0.00000015},
 "picture": {"litellm_provider": "openai", "mode": "image_generation", "output_cost_per_image": 0.06}}`

// Dollars a million tokens are thousandths of a billionth a token.
//
//behaviour:shows G4
func TestBothPriceFileFormatsGiveTheSameFacts(t *testing.T) {
	tier := budget.Tier{Above: 200_000, Input: 2500, Output: 15_000, CacheRead: 2500, CacheWrite: 2500}
	for form, c := range map[string]struct {
		text, provider, name string
		want                 catalog.Facts
	}{
		"models.dev": {modelsDev, "gemini", "gemini-x", catalog.Facts{Window: 1_000_000, Output: 65_536,
			Price: budget.Price{Known: true, Input: 1250, Output: 10_000, CacheRead: 125, CacheWrite: 1250, Long: tier}}},
		"LiteLLM": {liteLLM, "gemini", "gemini-x", catalog.Facts{Window: 1_048_576, Output: 65_535,
			Price: budget.Price{Known: true, Input: 1250, Output: 10_000, CacheRead: 1250, CacheWrite: 1250, Long: tier}}},
		"a third rate": {modelsDev, "gemini", "gemini-y", catalog.Facts{Window: 8000, Output: 10,
			Price: budget.Price{Known: true, Input: 1000, Output: 2000, CacheRead: 1000, CacheWrite: 1000,
				Long:    budget.Tier{Above: 1000, Input: 3000, Output: 4000, CacheRead: 3000, CacheWrite: 3000},
				Longest: budget.Tier{Above: 5000, Input: 9000, Output: 9000, CacheRead: 9000, CacheWrite: 9000}}}},
		"caches": {liteLLM, "anthropic", "claude-x", catalog.Facts{Output: 64_000,
			Price: budget.Price{Known: true, Input: 3000, Output: 15_000, CacheRead: 300, CacheWrite: 3750}}},
		"thinking is output":    {modelsDev, "anthropic", "thinker", catalog.Facts{Price: budget.Price{Known: true, Input: 1000, Output: 8000, CacheRead: 1000, CacheWrite: 1000}}},
		"rounded up":            {liteLLM, "openai", "tiny", catalog.Facts{Price: budget.Price{Known: true, Input: 38, Output: 150, CacheRead: 38, CacheWrite: 38}}},
		"no price":              {modelsDev, "anthropic", "silent", catalog.Facts{Window: 200_000, Output: 1000}},
		"half a price is none":  {modelsDev, "anthropic", "half", catalog.Facts{}},
		"billed by the picture": {liteLLM, "openai", "picture", catalog.Facts{}},
	} {
		table, err := catalog.ParseTable([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := table.Lookup(c.provider, c.name); !ok || got != c.want {
			t.Errorf("%s: %+v, want %+v", form, got, c.want)
		}
	}
}

// A file may name its rates in both forms of models.dev: each tier of either counts,
// and where both speak of one length, the dearer rate.
func TestBothNamesOfATierAreRead(t *testing.T) {
	table, err := catalog.ParseTable([]byte(`{"a":{"models":{"m":{"cost":{"input":1,"output":2,"cache_read":0.5,
	"context_over_200k":{"input":2,"output":9,"cache_read":1},
	"tiers":[{"input":3,"output":4,"cache_read":1,"tier":{"type":"context","size":200000}},{"input":5,"output":6,"tier":{"type":"context","size":500000}}]},
	"limit":{"context":1000000}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := catalog.Facts{Window: 1_000_000, Price: budget.Price{Known: true, Input: 1000, Output: 2000, CacheRead: 500, CacheWrite: 1000,
		Long:    budget.Tier{Above: 200_000, Input: 3000, Output: 9000, CacheRead: 1000, CacheWrite: 3000},
		Longest: budget.Tier{Above: 500_000, Input: 5000, Output: 6000, CacheRead: 5000, CacheWrite: 5000}}}
	if f, _ := table.Lookup("a", "m"); f != want {
		t.Errorf("%+v, want %+v", f, want)
	}
}

// A fourth rate is held for as the third, and the window ends where it begins (P22).
func TestAFourthRateIsHeldFor(t *testing.T) {
	table, err := catalog.ParseTable([]byte(`{"gemini/x":{"litellm_provider":"gemini","max_input_tokens":1000000,"input_cost_per_token":1e-6,"output_cost_per_token":1e-6,
	"input_cost_per_token_above_128k_tokens":2e-6,"output_cost_per_token_above_128k_tokens":2e-6,
	"input_cost_per_token_above_256k_tokens":4e-6,"output_cost_per_token_above_256k_tokens":4e-6,
	"input_cost_per_token_above_512k_tokens":8e-6,"output_cost_per_token_above_512k_tokens":8e-6}}`))
	if err != nil {
		t.Fatal(err)
	}
	f, _ := table.Lookup("gemini", "x")
	if held := f.Price.Bound(600_000, 0).Nano; held < 600_000*8000 || f.Window != 512_000 {
		t.Errorf("held %d, window %d", held, f.Window)
	}
	if billed := f.Price.Cost(model.Usage{Input: 200_000}).Nano; billed != 200_000*2000 {
		t.Errorf("between, %d is billed", billed)
	}
}

func TestInvalidCatalogIsRefusedByName(t *testing.T) {
	for name, c := range map[string]struct {
		text, says string
		is         error
	}{
		"nothing":            {``, "", catalog.ErrForm},
		"no model":           {`{}`, "no model", catalog.ErrForm},
		"a list":             {`[]`, "", catalog.ErrForm},
		"prose":              {`{"a": {"models": "none"}}`, "a", catalog.ErrForm},
		"a negative price":   {`{"m": {"litellm_provider": "openai", "input_cost_per_token": -1, "output_cost_per_token": 1e-6}}`, "m: ", catalog.ErrEntry},
		"an absurd price":    {`{"m": {"litellm_provider": "openai", "input_cost_per_token": 1e9, "output_cost_per_token": 1e-6}}`, "m: ", catalog.ErrEntry},
		"a long exponent":    {`{"m": {"litellm_provider": "openai", "input_cost_per_token": 1e-999999999, "output_cost_per_token": 1e999999999}}`, "m: ", catalog.ErrEntry},
		"a price in words":   {`{"a": {"models": {"m": {"cost": {"input": "cheap", "output": 1}}}}}`, "a/m: ", catalog.ErrEntry},
		"half a token":       {`{"a": {"models": {"m": {"limit": {"context": 0.5}}}}}`, "a/m: ", catalog.ErrEntry},
		"a tier of no size":  {`{"a": {"models": {"m": {"cost": {"input": 1, "output": 1, "tiers": [{}]}}}}}`, "a/m: ", catalog.ErrEntry},
		"a tier twice":       {`{"a": {"models": {"m": {"cost": {"input": 1, "output": 1, "tiers": [{"tier": {"type": "context", "size": 9}}, {"tier": {"type": "context", "size": 9}}]}}}}}`, "a/m: ", catalog.ErrEntry},
		"a tier of any form": {`{"a": {"models": {"m": {"cost": {"input": 1, "output": 1, "tiers": 7}}}}}`, "a/m: ", catalog.ErrEntry},
	} {
		if _, err := catalog.ParseTable([]byte(c.text)); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFileIsReadOnceAndDated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "api.json")
	if err := os.WriteFile(file, []byte(modelsDev), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := catalog.LoadFile(file)
	if err != nil || table.File != file || table.Date.IsZero() || table.Len() != 5 {
		t.Errorf("%d models of %s, %s, %v", table.Len(), table.File, table.Date, err)
	}
	if none, err := catalog.LoadFile(""); err != nil || none.Len() != 0 {
		t.Errorf("no file: %v", err)
	}
	if _, err := catalog.LoadFile(file + ".not"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// No text crashes the reader, and no price that it returns exceeds what a pool accepts.
func FuzzParse(f *testing.F) {
	f.Add([]byte(modelsDev))
	f.Add([]byte(liteLLM))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := catalog.ParseTable(text)
		if err != nil {
			return
		}
		for _, name := range []string{"gemini-x", "gemini-y"} {
			facts, _ := table.Lookup("gemini", name)
			if b := facts.Price.Bound(1<<20, 1<<20); b.Nano < 0 {
				t.Errorf("%+v is bounded by %d", facts, b.Nano)
			}
		}
	})
}
