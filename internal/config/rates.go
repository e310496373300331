package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/suggest"
	"github.com/troupe-run/troupe/internal/throttle"
)

// Usages of the flags that set rates.
const (
	RequestRatesUsage = "most requests a minute to each model of a provider, or to one model, of all nodes together: openai=500,openai/gpt-6-sol=60"
	TokenRatesUsage   = "most tokens a minute of prompts and replies, in the same form"
)

// rateProviders are the providers that a setting may name.
var rateProviders = []string{"anthropic", "openai", "gemini", "ollama", "builtin", "script"}

// parseRates reads the value of a setting, or of a flag.
func parseRates(text string) (throttle.RateTable, error) {
	table, err := throttle.ParseRateTable(text)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		p, _, _ := strings.Cut(name, "/")
		if slices.Contains(rateProviders, p) {
			continue
		}
		end := "the providers are " + strings.Join(rateProviders, ", ")
		if near := suggest.Nearest(p, rateProviders); near != "" {
			end = "did you mean " + near + "?"
		}
		return nil, fmt.Errorf("%w: %q is not a provider; %s", throttle.ErrRates, p, end)
	}
	return table, nil
}

// joinRates writes a mapping of rates as throttle.ParseRateTable reads them.
func joinRates(n *yaml.Node) (joined string, ok bool) {
	items := make([]string, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, number := n.Content[i], n.Content[i+1]
		if name.Kind != yaml.ScalarNode || number.Kind != yaml.ScalarNode || strings.ContainsAny(name.Value+number.Value, ",=") {
			return "", false
		}
		items = append(items, name.Value+"="+number.Value)
	}
	return strings.Join(items, ","), true
}

// refuseHigherRates refuses rates of a directory that are higher than the user's own.
func (s Setting) refuseHigherRates(userFile string, user Setting) error {
	theirs, err := parseRates(s.Value)
	if err != nil {
		return s.Error(err.Error())
	}
	mine, err := parseRates(user.Value)
	if err != nil {
		return user.Error(err.Error())
	}
	if name := mine.RaisedBy(theirs); name != "" {
		return s.Error(fmt.Sprintf("the directory of the run may not raise the rate of %s: it is above yours, %s of %s; for more, %s", name, user.Value, user.From, s.whereToSet(userFile)))
	}
	return nil
}

// loweredRates returns the rates of a directory together with the user's own: the lower ones count. It returns the
// setting as it is if either cannot be read: checkValue and refuseHigherRates report that.
func (s Setting) loweredRates(user Setting) Setting {
	theirs, err := parseRates(s.Value)
	mine, err2 := parseRates(user.Value)
	if err == nil && err2 == nil {
		s.Value, s.Raised = mine.LoweredBy(theirs).String(), false
	}
	return s
}

// ParseRates parses the settings requests_per_minute and tokens_per_minute. "" has no rates.
func ParseRates(requests, tokens string) (byRequest, byToken throttle.RateTable, err error) {
	if byRequest, err = parseRates(requests); err != nil {
		return nil, nil, fmt.Errorf("%w requests_per_minute: %w", ErrSetting, err)
	}
	if byToken, err = parseRates(tokens); err != nil {
		return nil, nil, fmt.Errorf("%w tokens_per_minute: %w", ErrSetting, err)
	}
	return byRequest, byToken, nil
}
