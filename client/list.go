package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/troupe-run/troupe/internal/bus/names"
)

// ErrAmbiguous says that several runs begin with what was given as a run id.
var ErrAmbiguous = errors.New("client: ambiguous run id")

const (
	// lastRun names the newest run: see FindRun.
	lastRun = "last"
	// candidatesMax is how many runs the error for an ambiguous id names.
	candidatesMax = 4
)

// List returns the known runs, newest first.
func (c *Client) List(ctx context.Context) ([]RunInfo, error) {
	return c.ListRuns(ctx, ListRequest{})
}

// ListRuns returns the runs that a request selects, newest first. It asks for as many pages as it
// needs, so the reply may show runs at different times.
func (c *Client) ListRuns(ctx context.Context, r ListRequest) ([]RunInfo, error) {
	all, most, seen := []RunInfo{}, r.Limit, map[string]bool{}
	for {
		var page []RunInfo
		err := c.askNode(ctx, "list", r, &page)
		switch {
		case err != nil:
			return nil, err
		case len(page) == 0 || seen[page[0].RunID] || page[0].RunID == r.Before: // it ignores Before
			return all, nil
		}
		for _, run := range page {
			seen[run.RunID] = true
		}
		all = append(all, page...)
		if most > 0 && len(all) >= most {
			return all, nil
		}
		r.Before, r.Limit = page[len(page)-1].RunID, max(0, most-len(all))
	}
}

// IsRunID reports whether a text is as long as the ids that NewID makes, so that it is the beginning
// of no other.
func IsRunID(text string) bool { return len(text) == ulid.EncodedSize }

// FindRun returns the id of the run that a person means: a whole id, the beginning of exactly one,
// or "last". If there is no such run, it returns the text: a run without a row may have logs. The
// error is an ErrAmbiguous with the newest of the runs.
func (c *Client) FindRun(ctx context.Context, text string) (string, error) {
	text = strings.ToLower(text)
	if IsRunID(text) || names.CheckToken(text) != nil { // no run has such an id
		return text, nil
	}
	r := ListRequest{Prefix: text, Limit: candidatesMax + 1}
	if text == lastRun {
		r = ListRequest{Limit: 1}
	}
	var found []RunInfo
	if err := c.askNode(ctx, "list", r, &found); err != nil {
		return "", err
	}
	switch {
	case len(found) == 0:
		return text, nil
	case len(found) == 1:
		return found[0].RunID, nil
	}
	isWhole := slices.ContainsFunc(found, func(info RunInfo) bool { return info.RunID == text })
	if !isWhole {
		_, err := c.State(ctx, text)
		isWhole = err == nil
	}
	if isWhole { // others begin with it
		return text, nil
	}
	ids := make([]string, len(found))
	for i, info := range found {
		ids[i] = info.RunID
	}
	if len(ids) > candidatesMax {
		ids[candidatesMax] = "…"
	}
	return "", fmt.Errorf("%w: %q is the beginning of %s", ErrAmbiguous, text, strings.Join(ids, ", "))
}
