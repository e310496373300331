// Command node is built as troupe-node: a node that serves run requests until it receives a
// stop signal. Package internal/cli/serve holds it.
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
