package gemini

import (
	"strings"

	"github.com/troupe-run/troupe/model"
)

// budgets maps an effort to the thinking budget that Google itself uses for it, for
// models that take a number of tokens.
var budgets = map[string]int64{"low": 1024, "medium": 8192, "high": 24576}

// leastBudget is the smallest budget that every such model accepts.
const leastBudget = 512

// plain lists the models, by prefix, that do not think, or ignore the setting.
var plain = []string{"gemini-1", "gemini-2.0"}

// renderEffort renders an effort: as a budget for the models of 2.5, as a level for
// later ones. A model that is not a Gemini model gets none.
func renderEffort(req model.Request) *thinkingConfig {
	name := req.Model
	if _, known := budgets[req.Effort]; !known || !strings.HasPrefix(name, "gemini-") {
		return nil
	}
	for _, prefix := range plain {
		if strings.HasPrefix(name, prefix) {
			return nil
		}
	}
	switch {
	case strings.HasPrefix(name, "gemini-2.5"):
		// Thinking counts as output: half of the output is left for the answer.
		return &thinkingConfig{Budget: max(leastBudget, min(budgets[req.Effort], req.MaxOutput/2))}
	case strings.HasPrefix(name, "gemini-3-pro") && req.Effort == "medium":
		return &thinkingConfig{Level: "high"} // it knows two levels
	}
	return &thinkingConfig{Level: req.Effort}
}
