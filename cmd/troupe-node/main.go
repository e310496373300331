// Command troupe-node is what `go install github.com/troupe-run/troupe/cmd/troupe-node@latest` installs: the program
// of cmd/node under its own name.
package main

import (
	"os"

	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/cli/serve"
	"github.com/troupe-run/troupe/internal/pidregistry"
)

func main() {
	pidregistry.ShareOneLockPerMap()
	os.Exit(serve.Run(os.Args[1:], embedded.StartServer))
}
