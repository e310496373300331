package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/bus/names"
)

// ErrOwners says that the tokens of owners cannot be used.
var ErrOwners = errors.New("httpapi: the tokens of owners")

// ParseOwners reads lines of a name and a token. Empty lines and lines that begin with # are left out.
func ParseOwners(text string) (list []Owner, err error) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("%w: line %d has %d words: a line is NAME TOKEN", ErrOwners, number, len(fields))
		}
		if _, err := (names.Names{}).As(fields[0]); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrOwners, number, err)
		}
		list = append(list, Owner{Name: fields[0], Token: fields[1]})
	}
	return list, nil
}

// checkTokens refuses tokens that are no secrets, and one that two have: it would open only the first door.
func checkTokens(cfg Config) error {
	if err := CheckToken(cfg.Token); err != nil {
		return err
	}
	tokens, owners := []string{cfg.Token}, []string{}
	for _, o := range cfg.Owners {
		if err := CheckToken(o.Token); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrOwners, o.Name, err)
		}
		if slices.Contains(tokens, o.Token) || slices.Contains(owners, o.Name) {
			return fmt.Errorf("%w: %s, or the token, is there twice", ErrOwners, o.Name)
		}
		tokens, owners = append(tokens, o.Token), append(owners, o.Name)
	}
	return nil
}

// forOwner is the configuration of the API of an owner.
func (cfg Config) forOwner(o Owner) Config {
	cfg.owner, cfg.Client, cfg.Token, cfg.MCP, cfg.A2A, cfg.Owners = o.Name, o.Client, o.Token, o.MCP, o.A2A, nil
	if cfg.Metrics != nil {
		cfg.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusForbidden, "only an operator may do this: the metrics count the runs of all owners", "use the token of the node")
		})
	}
	return cfg
}
