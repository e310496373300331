package models

import (
	"context"

	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/internal/provider"
)

// Choose is the choice that a node on this machine makes.
func Choose(ctx context.Context, sessions *session.Opener, named string) (provider.Choice, error) {
	prices, err := sessions.Prices()
	if err != nil {
		return provider.Choice{}, err
	}
	return provider.Choose(ctx, provider.Config{Model: named, Setting: sessions.Model, Env: sessions.Console.Getenv, Scout: investigator.New(), Prices: prices})
}
