package node

import (
	"os"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/telemetry"
)

// NewMasker returns a masker for the secrets of a node with this configuration, for code that
// prints messages outside the node.
func NewMasker(c Config) *redact.Masker { return c.withDefaults().newMasker() }

// newMasker masks the keys and addresses of providers, the credentials of servers, and the
// values of variables with names that suggest secrets. more are further known secrets.
func (c Config) newMasker(more ...string) *redact.Masker {
	find := redact.Config{Values: more, Environ: slices.Concat(c.Environ, c.CommandEnv)}
	for _, name := range provider.KeyVariables() {
		find.Credentials = append(find.Credentials, c.Env(name))
	}
	for _, name := range provider.AddressVariables() {
		find.Addresses = append(find.Addresses, c.Env(name))
	}
	for _, a := range c.A2AAgents {
		if a.TokenEnv != "" {
			find.Credentials = append(find.Credentials, c.Env(a.TokenEnv))
		}
	}
	find.Credentials = append(find.Credentials, telemetry.SecretsOf(c.Env)...)
	find.Addresses = append(find.Addresses, c.Telemetry.Endpoint)
	for _, o := range []bus.Options{c.Bus, c.ServiceBus, c.System} {
		find.Credentials = append(find.Credentials, o.Password, o.Token)
		if o.Password == "" {
			find.Credentials = append(find.Credentials, o.User) // a token, as the nats CLI has it
		}
		find.Addresses = append(find.Addresses, strings.Split(o.Servers, ",")...)
	}
	return redact.New(find)
}

// resolveEnviron returns the whole environment of a node that uses the real one.
func resolveEnviron(c Config) []string {
	if c.Environ == nil && c.Env == nil {
		return os.Environ()
	}
	return c.Environ
}
