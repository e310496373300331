package deploy_test

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"troupe": func() { os.Exit(cli.Run(os.Args[1:], embedded.StartServer, patience)) }})
}

// The commands of owners reach their runs, and no others.
func TestOwnersUseTheCommands(t *testing.T) {
	s := startOwnerSite(t)
	runs := []string{"RUN=" + s.run}
	for _, name := range []string{"SECOND", "THIRD", "FOURTH"} {
		runs = append(runs, name+"="+s.begin("alice", client.RunRequest{}))
	}
	testscript.Run(t, testscript.Params{Files: []string{"testdata/owners.txt"}, Setup: func(e *testscript.Env) error {
		e.Vars = append(e.Vars, runs...)
		e.Vars = append(e.Vars, "SITE="+s.url, "ALICE="+s.seeds["alice"], "BOB="+s.seeds["bob"],
			"HOME="+e.WorkDir, "XDG_STATE_HOME="+e.WorkDir, "XDG_CONFIG_HOME="+e.WorkDir)
		return nil
	}})
}
