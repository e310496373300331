package eval

import (
	"context"
	"encoding/json"

	"github.com/troupe-run/troupe/internal/runfile"
)

// Record runs a case and returns its logs as a run file.
func (c *Case) Record(ctx context.Context, writtenBy string) (runfile.File, error) {
	run, err := c.runToEnd(ctx)
	if err != nil {
		return runfile.File{}, err
	}
	f := runfile.File{Header: runfile.Header{Run: runName, WrittenBy: writtenBy, State: "parked"}}
	if f.Entries, err = run.readLog(); err != nil || run.reported == nil {
		return f, err
	}
	f.Header.State = "finished"
	f.Header.Result, err = json.Marshal(run.reported)
	return f, err
}
