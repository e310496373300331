package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/toolset/readresult"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// Contributions holds what a program that embeds a node contributes. Another node that takes a run
// over and lacks one of these pauses the run and asks the user.
type Contributions struct {
	// Tools are for every agent whose definition does not exclude them.
	Tools []tool.Tool
	// Agents take precedence over the built-in ones; agent files that a request names take
	// precedence over them.
	Agents []agentfile.Definition
	// Models are clients by PROVIDER/MODEL; they take precedence over the provider of that
	// name.
	Models map[string]model.Client
}

// ErrContribution: a contribution of the program cannot be used.
var ErrContribution = errors.New("node: not usable")

// checkAndComplete checks all fields and fills in the defaults of an agent file.
func (o Contributions) checkAndComplete() (Contributions, error) {
	set, err := tool.NewSet(o.Tools...)
	if err != nil {
		return o, fmt.Errorf("%w: %w", ErrContribution, err)
	}
	for _, s := range set.Specs() {
		if slices.Contains(toolset.LoopTools, s.Name) || s.Name == readresult.Name || agentfile.IsBuiltin(s.Name) {
			return o, fmt.Errorf("%w: the tool %s is built in; give yours another name", ErrContribution, s.Name)
		}
	}
	o.Agents = slices.Clone(o.Agents)
	for i, d := range o.Agents {
		if o.Agents[i], err = agentfile.CompleteDefinition(d); err != nil {
			return o, fmt.Errorf("%w: %w", ErrContribution, err)
		}
		if slices.ContainsFunc(o.Agents[:i], func(other agentfile.Definition) bool { return other.Name == d.Name }) {
			return o, fmt.Errorf("%w: two agents are called %s", ErrContribution, d.Name)
		}
	}
	for name, c := range o.Models {
		if before, rest, ok := strings.Cut(name, "/"); !ok || before == "" || rest == "" || c == nil {
			return o, fmt.Errorf("%w: the model %q needs a client and a name like PROVIDER/MODEL", ErrContribution, name)
		}
	}
	return o, nil
}
