package provider

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/anthropic"
	"github.com/troupe-run/troupe/model/gemini"
	"github.com/troupe-run/troupe/model/openai"
)

// ExplainErrors returns the client of a choice whose errors say what to do about them. env is the environment that the
// choice was made in.
func ExplainErrors(c Choice, env func(string) string) model.Client {
	return explainingClient{c.Client, c, Config{Env: env}}
}

type explainingClient struct {
	model.Client
	choice Choice
	cfg    Config
}

// Complete implements model.Client.
func (c explainingClient) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	reply, err := c.Client.Complete(ctx, req, emit)
	var known *model.Error
	if errors.As(err, &known) {
		if remedy := c.cfg.remedyOf(c.choice, known); remedy != "" {
			explained := *known
			explained.Message += "; " + remedy
			err = &explained
		}
	}
	return reply, err
}

// remedyOf says which variable an address or a key came from, or which command helps; "": nothing is known.
func (cfg Config) remedyOf(c Choice, e *model.Error) string {
	address, key := cfg.variablesOf(c.Provider)
	switch {
	case e.Class == model.Network && e.Status == 0 && isUnreachable(e.Message):
		switch {
		case c.Provider == Ollama:
			return "start Ollama or set OLLAMA_HOST"
		case address != "":
			return "the address is from " + address
		}
	case e.Class == model.Misconfigured && e.Status == http.StatusNotFound:
		switch {
		case c.Provider == Ollama:
			return "`ollama pull " + c.Model + "` fetches the model"
		case address != "":
			return "look at the model's name and at " + address
		case key != "":
			return "`troupe models list` shows the models"
		}
	case e.Class == model.Auth && key != "":
		return "the key is from " + key
	case e.Class == model.Quota && key != "":
		return "the account of the key in " + key + " has no quota left"
	}
	return ""
}

// isUnreachable reports whether no connection came about.
func isUnreachable(message string) bool {
	return strings.Contains(message, "dial ") || strings.Contains(message, "connection refused") || strings.Contains(message, "no such host")
}

// variablesOf returns the variables that are set for the address and the key of a provider.
func (cfg Config) variablesOf(name string) (address, key string) {
	switch name {
	case anthropic.Provider:
		return cfg.firstSetVariable("ANTHROPIC_BASE_URL"), cfg.firstSetVariable("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
	case openai.Provider:
		return cfg.firstSetVariable("OPENAI_BASE_URL"), cfg.firstSetVariable("OPENAI_API_KEY")
	case gemini.Provider:
		return cfg.firstSetVariable(geminiBase), cfg.firstSetVariable(geminiKeys...)
	}
	return "", ""
}
