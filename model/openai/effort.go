package openai

import (
	"path"
	"strings"

	"github.com/troupe-run/troupe/internal/modelhttp"
)

// effortRule is the reasoning effort that Chat Completions accepts from a family
// of models, which is identified by a prefix.
type effortRule struct {
	prefix string
	// plain is false for models that have no effort.
	plain bool
	// tools is the effort to send along with function tools: effortAsked, effortAbsent or effortNone.
	tools string
}

// Ways to send the effort along with tools. OpenAI's newer models combine reasoning with tools
// only in the Responses API. In Chat Completions some models require no effort when tools are
// listed, and some reject the request unless the effort is "none" (each error message says which).
const (
	effortAsked  = "asked"
	effortAbsent = "absent"
	effortNone   = "none"
)

// effortRules are searched in order; a model that is not listed gets the requested effort.
var effortRules = []effortRule{
	{"gpt-3", false, effortAbsent},
	{"gpt-4", false, effortAbsent},
	{"chatgpt-4", false, effortAbsent},
	{"o1-mini", false, effortAbsent},
	{"o1-preview", false, effortAbsent},
	{"gpt-5.2", true, effortAbsent},
	{"gpt-5.3", true, effortAbsent},
	{"gpt-5.4", true, effortAbsent},
	{"gpt-5.5", true, effortAbsent},
	{"gpt-5.6", true, effortNone},
	{"gpt-6-", true, effortNone},
}

// requestEffort is the reasoning effort to send; "" sends none.
func requestEffort(name, asked string, tools bool) string {
	r := ruleOf(name)
	switch {
	case !r.plain:
		return ""
	case !tools || r.tools == effortAsked:
		return asked
	case r.tools == effortNone:
		return effortNone
	}
	return ""
}

// mayReason reports whether a model may reason, judging by its name.
func mayReason(name string) bool { return ruleOf(name).plain }

// Models in reasoning reject a temperature, except those in calm, which reason only on request.
var (
	reasoning = []string{"gpt-5", "gpt-6", "o1", "o3", "o4"}
	calm      = []string{"gpt-5.1", "gpt-5.2", "gpt-5.4"}
)

// takesTemperature reports whether a model accepts a temperature along with the effort.
func takesTemperature(name, effort string) bool {
	name = bareName(name)
	return effort == effortNone || !modelhttp.IsOfFamily(name, reasoning) || effort == "" && modelhttp.IsOfFamily(name, calm)
}

// bareName returns the name of a model without the provider that gateways put before it,
// and without OpenAI's mark of a fine-tuned model.
func bareName(name string) string { return strings.TrimPrefix(path.Base(name), "ft:") }

// ruleOf returns the rule of a model by its name.
func ruleOf(name string) effortRule {
	name = bareName(name)
	for _, r := range effortRules {
		if strings.HasPrefix(name, r.prefix) {
			return r
		}
	}
	return effortRule{plain: true, tools: effortAsked}
}
