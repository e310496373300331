package agentfile

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/a2aclient"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// readDelegates reads the names of agents: those of the run, and HARNESS/OWNER/NAME or a2a/NAME of other programs.
func readDelegates(d *decoder, key string, n *yaml.Node) {
	d.def.Delegates = d.readList(n, key)
	for _, name := range d.def.Delegates {
		if err := checkDelegate(name); err != nil {
			d.addProblem(n.Line+1, "%s: %v", key, err)
		}
	}
}

// readHandoffs reads the names of agents of the run. An agent of another program knows nothing of the run, so no
// conversation can be handed off to it.
func readHandoffs(d *decoder, key string, n *yaml.Node) {
	d.def.Handoffs = d.readList(n, key)
	for _, name := range d.def.Handoffs {
		if err := checkHandoff(name); err != nil {
			d.addProblem(n.Line+1, "%s: %v", key, err)
		}
	}
}

// checkHandoff refuses a name that no agent of a run has.
func checkHandoff(name string) error {
	if IsForeignAgent(name) || strings.TrimSpace(name) == "" {
		return fmt.Errorf("%.80q is not the name of an agent of the run; a conversation can be handed off to none of another program, which x-troupe.delegates may name", name)
	}
	return nil
}

// CheckForeignAgent refuses a name that is not that of an agent of another program: such an agent is named by three
// tokens of its subject, HARNESS/OWNER/NAME, or by its name in the operator's settings, a2a/NAME.
func CheckForeignAgent(name string) error {
	if _, err := names.ForeignPrompt(name); err == nil || a2aclient.IsName(name) {
		return nil
	}
	return fmt.Errorf("%.80q names no agent of another program; write HARNESS/OWNER/NAME or a2a/NAME with letters, digits, _ and -, such as cc/derek/reviewer", name)
}

// checkDelegate refuses a name that looks like an agent of another program and cannot be called.
func checkDelegate(name string) error {
	if !IsForeignAgent(name) && !strings.HasPrefix(name, "agents.") {
		return nil
	}
	return CheckForeignAgent(name)
}

// IsForeignAgent reports whether a name is that of an agent of another program: no agent of a
// run has a slash in its name.
func IsForeignAgent(name string) bool { return strings.Contains(name, "/") }

// withoutForeignDelegates removes the agents of other programs. An agent that loses all its delegates keeps an empty
// list.
func (d Definition) withoutForeignDelegates() (less Definition, removed bool) {
	if !slices.ContainsFunc(d.Delegates, IsForeignAgent) {
		return d, false
	}
	d.Delegates = slices.DeleteFunc(slices.Clone(d.Delegates), IsForeignAgent)
	return d, true
}
