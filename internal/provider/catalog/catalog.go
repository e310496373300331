// Package catalog reads facts about models from files in the formats of models.dev
// (api.json) and LiteLLM (model_prices_and_context_window.json): their prices and how many
// tokens they take in one call. A fact that a file does not state stays unknown, and is
// never zero.
package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/safefile"
)

// FileBytesMax is the maximum size of a file; both catalogs have about 2 MB.
const FileBytesMax = 32 << 20

// Errors of LoadFile.
var (
	// ErrForm: the file has neither form.
	ErrForm = errors.New("not in the form of models.dev (api.json) or LiteLLM (model_prices_and_context_window.json)")
	// ErrEntry: the file states an impossible fact about a model.
	ErrEntry = errors.New("an entry that cannot be")
)

// Facts are the known facts about a model; zero is unknown.
type Facts struct {
	Price budget.Price
	// Window is how many tokens of prompt and output one call may have at these
	// prices, Output how many of output.
	Window, Output int64
}

// Merge returns f, with unknown fields taken from g.
func (f Facts) Merge(g Facts) Facts {
	if f.Price.Known {
		g.Price = f.Price
	}
	if f.Window > 0 {
		g.Window = f.Window
	}
	if f.Output > 0 {
		g.Output = f.Output
	}
	return g
}

// FactTable holds the facts of one source.
type FactTable struct {
	File  string    // where it was read from
	Date  time.Time // when the file was written
	facts map[string]Facts
}

// Lookup returns the facts about a model of one of troupe's providers.
func (t FactTable) Lookup(provider, name string) (Facts, bool) {
	f, ok := t.facts[provider+"/"+name]
	return f, ok
}

// Len returns the number of models in the table.
func (t FactTable) Len() int { return len(t.facts) }

// LoadFile reads a file in either form; "" is an empty table.
func LoadFile(file string) (FactTable, error) {
	if file == "" {
		return FactTable{}, nil
	}
	fail := func(err error) (FactTable, error) { return FactTable{}, fmt.Errorf("catalog: %s: %w", file, err) }
	data, err := safefile.Read(file, FileBytesMax)
	if err != nil {
		return FactTable{}, fmt.Errorf("catalog: %w", err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return fail(err)
	}
	t, err := ParseTable(data)
	if err != nil {
		return fail(err)
	}
	t.File, t.Date = file, info.ModTime()
	return t, nil
}

// ParseTable reads the text of a file in either form.
func ParseTable(data []byte) (FactTable, error) {
	var top map[string]map[string]json.RawMessage
	if err := json.Unmarshal(data, &top); err != nil {
		return FactTable{}, fmt.Errorf("%w: %w", ErrForm, err)
	}
	t := FactTable{facts: map[string]Facts{}}
	for _, read := range []func(map[string]map[string]json.RawMessage) error{t.readModelsDev, t.readLiteLLM} {
		if err := read(top); err != nil {
			return FactTable{}, err
		}
	}
	if len(t.facts) == 0 {
		return FactTable{}, fmt.Errorf("%w: no model is in it", ErrForm)
	}
	return t, nil
}

// providerAliases are troupe's names of providers that the catalogs name otherwise.
var providerAliases = map[string]string{"google": "gemini"}

// addFacts stores the facts about a model.
func (t FactTable) addFacts(provider, name string, f Facts) {
	if as, ok := providerAliases[provider]; ok {
		provider = as
	}
	t.facts[provider+"/"+name] = f
}
