package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
)

func (n *nodeCommand) accessFlags(f *pflag.FlagSet) {
	f.BoolVar(&n.cfg.OpenWatch, "open-watch", false, "on the embedded server: "+embedded.OpenWatchUsage)
	f.BoolVar(&n.cfg.OpenControl, "open-control", false, "on the embedded server: "+embedded.OpenControlUsage)
}

func (n *nodeCommand) checkDurability() error {
	switch n.durability {
	case "sync":
	case "lazy":
		n.cfg.Lazy = true
	default:
		return fmt.Errorf("%w: --durability is sync or lazy, not %q", errConfig, n.durability)
	}
	return nil
}

func (n *nodeCommand) checkAccess() error {
	n.cfg.ConfigHome = embedded.ConfigHome(os.Getenv)
	if (n.cfg.OpenWatch || n.cfg.OpenControl) && n.cfg.Bus.Given() {
		return fmt.Errorf("%w: --open-watch and --open-control are of the embedded server; who may do what on the one of -s is set there", errConfig)
	}
	return nil
}

func (n *nodeCommand) checkPools() error {
	for _, pool := range n.cfg.Pools {
		if err := names.Token(pool); err != nil {
			return fmt.Errorf("%w: --pools: %w", errConfig, err)
		}
	}
	if len(n.cfg.Pools) > 0 && !n.cfg.Bus.Given() {
		return fmt.Errorf("%w: --pools needs a server that nodes share: -s or --context; a node with a server of its own runs every agent", errConfig)
	}
	if n.cfg.PoolPatience < 0 {
		return fmt.Errorf("%w: --pool-patience %s", errConfig, n.cfg.PoolPatience)
	}
	return nil
}

// completeDirs makes directories of a flag absolute.
func completeDirs(flag string, dirs []string) error {
	for i, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", errConfig, flag, err)
		}
		if info, err := os.Stat(abs); err != nil {
			return fmt.Errorf("%w: %s: %w", errConfig, flag, err)
		} else if !info.IsDir() {
			return fmt.Errorf("%w: %s %s is a file", errConfig, flag, dir)
		}
		dirs[i] = abs
	}
	return nil
}
