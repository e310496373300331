package request

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/mcpclient"
)

// completeServerFile makes the path of the file of servers absolute.
func (r *Flags) completeServerFile() error {
	if r.Request.MCPConfig == "" {
		return nil
	}
	abs, err := filepath.Abs(r.Request.MCPConfig)
	if err != nil {
		return fmt.Errorf("file %s: %w", r.Request.MCPConfig, err)
	}
	if _, err := mcpclient.Read(abs); err != nil {
		return exit.UsageError("fix the file", "--mcp-config: %v", err)
	}
	if _, err := os.Stat(abs); err != nil {
		return exit.UsageError("name an existing file", "--mcp-config: %v", err)
	}
	r.Request.MCPConfig = abs
	return nil
}
