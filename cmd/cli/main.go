// Command cli is built as troupe: it starts runs and follows them, with a node in its
// own process if there is none. Package internal/cli holds its commands.
package main

import (
	"os"

	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/cli"
	"github.com/troupe-run/troupe/internal/firstcollection"
	"github.com/troupe-run/troupe/internal/pidregistry"
)

func main() {
	pidregistry.ShareOneLockPerMap()
	firstcollection.Delay()
	os.Exit(cli.Run(os.Args[1:], embedded.StartServer, cli.JoinTimeout))
}
