package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/node"
)

// lastFlags are the flags that bound the runs of the node, and those of TLS.
func (n *nodeCommand) lastFlags(f *pflag.FlagSet, o *bus.Options) {
	tlsFlags(f, o)
	f.IntVar(&n.cfg.MaxLiveRuns, "max-live-runs", 0, fmt.Sprintf("most runs that are live on this node at once; later ones are queued in their logs (default %d)", node.MaxLiveRuns))
	f.IntVar(&n.cfg.MaxQueuedRuns, "max-queued-runs", 0, fmt.Sprintf("most runs that wait for that; beyond them a run is refused (default %d)", node.MaxQueuedRuns))
}

// settleRuns applies the settings about runs.
func (n *nodeCommand) settleRuns(c *cobra.Command, found map[string]config.Setting) (err error) {
	if s, ok := found["max_live_runs"]; ok && !c.Flags().Changed(s.Flag()) {
		if n.cfg.MaxLiveRuns, err = strconv.Atoi(s.Value); err != nil {
			return s.Error(err.Error())
		}
	}
	if n.cfg.MaxLiveRuns < 0 || n.cfg.MaxQueuedRuns < 0 {
		return fmt.Errorf("%w: --max-live-runs and --max-queued-runs must not be negative: 0 is the default", errConfig)
	}
	return nil
}
