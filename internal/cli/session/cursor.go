package session

import (
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/exit"
)

// ParseCursor reads the cursor of a run that a user passed; "" is the beginning.
func ParseCursor(run, text string) (client.Positions, error) {
	p, err := client.ParsePositions(run, text)
	if err != nil {
		return nil, exit.UsageError("use the cursor that troupe events -o json printed for this run", "--from: %w", err)
	}
	return p, nil
}
