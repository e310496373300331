package provider

import "slices"

// KeyVariables returns the variables that hold a secret of a provider. A choice depends only on
// these and on AddressVariables.
func KeyVariables() []string {
	return append([]string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"}, geminiKeys...)
}

// AddressVariables returns the variables that hold a provider's address or select its API.
func AddressVariables() []string {
	return []string{"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", openAIAPI, geminiBase, "OLLAMA_HOST"}
}

// UsesHTTP reports whether the model of a choice is called over HTTP, so that there is an
// exchange to record.
func (c Choice) UsesHTTP() bool { return !slices.Contains([]string{Builtin, Script}, c.Provider) }
