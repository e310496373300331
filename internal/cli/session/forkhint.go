package session

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/assistant"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/workdir"
)

// ForkCommand returns the command that begins a run with the history of a run, and with the directory, agent files,
// agent and model that the run has; "": no command line can name its model.
func (s *Session) ForkCommand(run string) string {
	words := "run --fork " + run
	if info, err := s.Describe(s.Context, run); err == nil && info.Description != nil {
		d := *info.Description
		if d.Model.Why == provider.DefinedByProgram {
			return ""
		}
		words += forkFlags(d, agentfile.UserDirs())
	}
	return s.Command(words + ` "go on"`)
}

// forkFlags are the flags, each behind a space, with which a run begins as a described one did.
func forkFlags(d client.Description, places []string) string {
	var b strings.Builder
	add := func(flag, value string) {
		if value != "" {
			b.WriteString(" " + flag + " " + QuoteForShell(value))
		}
	}
	add("--dir", d.Workspace)
	add("--agents", givenAgents(d, append(places, agentfile.LocalDirs(d.Workspace)...)))
	if isScout := d.Model.Name == provider.Builtin+"/"+provider.ScoutModel; d.Root != assistant.Name && !(isScout && d.Root == "coordinator") {
		add("--agent", d.Root)
	}
	add("-m", d.Model.Name)
	return b.String()
}

// givenAgents is the directory that holds the agent files of a run which are in none of the places where a run finds
// them by itself: that of --agents; "": there are none.
func givenAgents(d client.Description, places []string) (dir string) {
	for _, def := range d.Definitions {
		if def.Source == "" || slices.ContainsFunc(places, func(place string) bool { return workdir.IsBelow(place, def.Source) }) {
			continue
		}
		for dir = cmp.Or(dir, filepath.Dir(def.Source)); !workdir.IsBelow(dir, def.Source); {
			dir = filepath.Dir(dir)
		}
	}
	return dir
}
