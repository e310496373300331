package provider

import (
	"context"
	"errors"
	"testing"

	"github.com/troupe-run/troupe/model"
)

// failingClient fails with one error.
type failingClient struct {
	model.Client
	err *model.Error
}

func (c failingClient) Complete(context.Context, model.Request, func(model.Delta)) (model.Reply, error) {
	return model.Reply{}, c.err
}

// The error of a provider says what to do: it names the variable of the address or of the key, or a command.
func TestErrorsOfProvidersNameARemedy(t *testing.T) {
	t.Parallel()
	refused := model.Error{Class: model.Network, Message: "dial tcp 127.0.0.1:9: connect: connection refused"}
	for name, c := range map[string]struct {
		provider string
		err      model.Error
		env      map[string]string
		want     string
	}{
		"gateway":      {"openai", refused, map[string]string{"OPENAI_BASE_URL": "x"}, refused.Message + "; the address is from OPENAI_BASE_URL"},
		"provider":     {"openai", refused, nil, refused.Message},
		"stream":       {"openai", model.Error{Class: model.Network, Message: "the stream ended"}, map[string]string{"OPENAI_BASE_URL": "x"}, "the stream ended"},
		"ollama":       {"ollama", refused, nil, refused.Message + "; start Ollama or set OLLAMA_HOST"},
		"ollama model": {"ollama", model.Error{Class: model.Misconfigured, Status: 404, Message: "no"}, nil, "no; `ollama pull m` fetches the model"},
		"model":        {"anthropic", model.Error{Class: model.Misconfigured, Status: 404, Message: "no"}, map[string]string{"ANTHROPIC_API_KEY": "k"}, "no; `troupe models list` shows the models"},
		"key":          {"gemini", model.Error{Class: model.Auth, Status: 401, Message: "no"}, map[string]string{"GOOGLE_API_KEY": "k"}, "no; the key is from GOOGLE_API_KEY"},
		"quota":        {"openai", model.Error{Class: model.Quota, Status: 429, Message: "no"}, map[string]string{"OPENAI_API_KEY": "k"}, "no; the account of the key in OPENAI_API_KEY has no quota left"},
		"script":       {"script", model.Error{Class: model.Auth, Message: "no"}, nil, "no"},
	} {
		client := ExplainErrors(Choice{Provider: c.provider, Model: "m", Client: failingClient{err: &c.err}}, func(v string) string { return c.env[v] })
		_, err := client.Complete(t.Context(), model.Request{}, nil)
		if e := (*model.Error)(nil); !errors.As(err, &e) || e.Message != c.want || e.Class != c.err.Class {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
