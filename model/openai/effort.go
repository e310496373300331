package openai

import (
	"path"
	"slices"
	"strings"
)

// effortRule is what Chat Completions takes as reasoning effort from a family
// of models, which are known by their prefix.
type effortRule struct {
	prefix string
	// plain is false for models that have no effort.
	plain bool
	// tools is what to send beside function tools: effortAsked, effortAbsent or effortNone.
	tools string
}

// OpenAI's newer models reason beside tools only in another API. In this one
// some want the effort left out when tools are listed, and some refuse the
// request unless it says "none" (each error message says which).
const (
	effortAsked  = "asked"
	effortAbsent = "absent"
	effortNone   = "none"
)

// effortRules are searched in order; a model that is not listed gets what was asked.
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

// effort is the reasoning effort to send; "" sends none.
func effort(name, asked string, tools bool) string {
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

// reasons reports whether a model may reason, as far as its name tells.
func reasons(name string) bool { return ruleOf(name).plain }

// What reasons refuses a temperature, but for the calm, who reason only if asked.
var (
	reasoning = []string{"gpt-5", "gpt-6", "o1", "o3", "o4"}
	calm      = []string{"gpt-5.1", "gpt-5.2", "gpt-5.4"}
)

// tempered reports whether a model takes a temperature beside the effort that is sent.
func tempered(name, effort string) bool {
	name = bare(name)
	return effort == effortNone || !begins(name, reasoning) || effort == "" && begins(name, calm)
}

func begins(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// bare is the name of a model without what gateways put before it, a provider,
// and OpenAI, the mark of a fine-tuned one.
func bare(name string) string { return strings.TrimPrefix(path.Base(name), "ft:") }

// ruleOf is the rule of a model by its name.
func ruleOf(name string) effortRule {
	name = bare(name)
	for _, r := range effortRules {
		if strings.HasPrefix(name, r.prefix) {
			return r
		}
	}
	return effortRule{plain: true, tools: effortAsked}
}
