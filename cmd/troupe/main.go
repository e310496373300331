// Command troupe is what `go install github.com/troupe-run/troupe/cmd/troupe@latest` installs: the program of
// cmd/cli under its own name.
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
