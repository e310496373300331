package runspec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/trust"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/supervisor"
)

// registerFiles adds the agents of agent files: those of the directory that the client names, and
// those of the user's agent directories. A broken file of the named directory is left out with a note, unless the run
// names its agent; no other agent takes its name. Command hooks count only in the named directory: a working directory
// must not supply command lines of its own.
func (r *agentResolver) registerFiles(t agentSet) (agentSet, error) {
	given, place, err := r.cfg.Trust.CheckNamed(r.req.RunRequest, "agents", r.req.Agents, r.cfg.Trust.NameablePlaces())
	if err != nil {
		return t, err
	}
	var notes []agentfile.Note
	if given != "" {
		t.files, notes, t.broken = agentfile.LoadBelow(place, given)
		if err := refuseBroken(r.cfg.Trust, t, r.req); err != nil {
			return t, err
		}
		isBroken := func(d supervisor.Definition) bool { return t.isBroken(d.Name) }
		t.definitions = slices.DeleteFunc(slices.Clone(t.definitions), isBroken)
		if err := r.checkApproved(t.files); err != nil {
			return t, err
		}
	}
	found, err := r.findFiles(t)
	if err != nil {
		return t, err
	}
	if err := refuseBroken(r.cfg.Trust, t, r.req, found.definitions...); err != nil {
		return t, err
	}
	t.warnings = slices.Concat(t.warnings, found.warnings, brokenNotes(r.cfg.Trust, t.broken), fileNotes(notes, t.files, r.req.agents))
	for _, d := range t.files {
		if t, err = r.registerFile(t, d); err != nil {
			return t, err
		}
	}
	return r.registerTeam(t, found)
}

// isBroken reports whether a broken file of the directory that the request names may define the agent.
func (t agentSet) isBroken(name string) bool { return agentfile.ErrorsFor(t.broken, name) != nil }

// refuseBroken refuses a run whose directory of agents has a broken file of an agent that the run reaches by name: by the
// request, or as a delegate of these agents. Another agent of that name could have more rights. If a file's name
// cannot be read, the file may define any agent that no other file of the directory defines.
func refuseBroken(policy trust.Policy, t agentSet, req acceptedRequest, found ...agentfile.Definition) error {
	const hint = "`troupe agents validate DIR` shows all that is wrong"
	named := namedAgents(append(slices.Clone(req.agents), t.root), slices.Concat(t.files, found))
	names := slices.Sorted(maps.Keys(named))
	if err := agentfile.ErrorsFor(t.broken, names...); err != nil {
		return refuse.Bad(hint, "agents: %s", policy.DescribeErrors(err))
	}
	err := agentfile.ErrorsWithoutName(t.broken)
	if err == nil {
		return nil
	}
	for _, name := range names {
		isGiven := slices.ContainsFunc(t.files, func(d agentfile.Definition) bool { return d.Name == name })
		if !isGiven && !agentfile.IsForeignAgent(name) {
			return refuse.Bad(hint, "agents: %s; this file may define the agent %s, because its name cannot be read", policy.DescribeErrors(err), name)
		}
	}
	return nil
}

// registerFile adds the agent of a file. It leaves out an agent that is not requested and whose model
// cannot be reached.
func (r *agentResolver) registerFile(t agentSet, d agentfile.Definition) (agentSet, error) {
	d, aliases := r.expandAliases(d)
	for _, text := range aliases {
		if !slices.Contains(t.warnings, text) {
			t.warnings = append(t.warnings, text)
		}
	}
	if err := r.checkCredentials(d); err != nil && !slices.Contains(r.req.agents, d.Name) {
		t.addWarning("%s: left out: %v", d.Path, err)
		return t, nil
	}
	return r.registerAgent(t, d)
}

// foundAgents are the agents of the directory and of the user.
type foundAgents struct {
	definitions []agentfile.Definition
	warnings    []string // about agents that the request names
	notes       []string // about others
}

// findFiles finds the agents of the directory and of the user, unless they are built in or in a
// file that the request names. A note names each file that is broken, or hidden by another one; if the request
// names the agent of a broken file, findFiles refuses it.
func (r *agentResolver) findFiles(t agentSet) (f foundAgents, err error) {
	given := func(name string) bool { // a broken file keeps its name
		return slices.ContainsFunc(t.files, func(d agentfile.Definition) bool { return d.Name == name }) || t.isBroken(name)
	}
	all, notes, broken := agentfile.LoadWorkspace(r.req.workspace)
	for _, d := range all {
		switch {
		case given(d.Name):
		case !t.hasAgent(d.Name):
			f.definitions = append(f.definitions, d)
		case slices.Contains(r.req.agents, d.Name):
			f.warnings = append(f.warnings, fmt.Sprintf("%s: ignored: the built-in agent %s takes precedence; name its directory with --agents", d.Path, d.Name))
		}
	}
	hidden := hiddenByDirectory(notes, r.req.workspace)
	for _, name := range r.req.agents {
		isFound := slices.ContainsFunc(f.definitions, func(d agentfile.Definition) bool { return d.Name == name })
		switch text, isHidden := hidden[name]; {
		case isFound && isHidden:
			f.warnings = append(f.warnings, text)
		case isFound || given(name) || t.hasAgent(name):
		case isHidden:
			return f, refuse.UnknownAgent("fix or remove the file of the directory, or name the other with --agents",
				"there is no agent %q that can be used: %s", name, text)
		case broken != nil:
			hint := "fix the file, or name another agent"
			if near := t.nearestAgent(name, f.definitions...); near != "" {
				hint = "did you mean " + near + "? Otherwise fix the file"
			}
			return f, refuse.UnknownAgent(hint, "there is no agent %q that can be read: %s", name, r.cfg.Trust.DescribeErrors(broken))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(hidden)) {
		if !slices.Contains(r.req.agents, name) && !given(name) && !t.hasAgent(name) {
			f.notes = append(f.notes, hidden[name])
		}
	}
	warnings, more := splitFoundNotes(notes, f.definitions, namedAgents(r.req.agents, slices.Concat(t.files, f.definitions)))
	f.warnings = append(f.warnings, toolset.LimitNotes(warnings, filesNotedMax, "notes on agent files; `troupe agents validate` shows them")...)
	f.notes = slices.Concat(f.notes, more, brokenNotes(r.cfg.Trust, broken))
	return f, nil
}

// splitFoundNotes returns what the files of found agents have without effect, such as tools and keys of other programs:
// of agents that the request or their files name, and of others.
func splitFoundNotes(notes []agentfile.Note, found []agentfile.Definition, named map[string]bool) (warnings, others []string) {
	for _, n := range notes {
		i := slices.IndexFunc(found, func(d agentfile.Definition) bool { return d.Path == n.Path })
		switch {
		case i < 0 || n.Hidden != "":
		case named[found[i].Name]:
			warnings = append(warnings, n.String())
		default:
			others = append(others, n.String())
		}
	}
	return warnings, others
}

// brokenNotes returns a note for each problem of files that are left out.
func brokenNotes(policy trust.Policy, broken error) (notes []string) {
	for _, wrong := range agentfile.SplitProblems(broken) {
		text := "left out: " + policy.DescribeErrors(wrong)
		if wrong.Path != "" { // a place that cannot be read has none
			text += fmt.Sprintf(" (`troupe agents validate %s` shows all that is wrong)", wrong.Path)
		}
		notes = append(notes, text)
	}
	return toolset.LimitNotes(notes, filesNotedMax, "problems of agent files; `troupe agents validate` with the directory shows them")
}

// hiddenByDirectory returns, by agent, the text about a file of the user that is not used because the
// directory has an agent of that name: the user may not know about the other.
func hiddenByDirectory(notes []agentfile.Note, workspace string) map[string]string {
	hidden := map[string]string{}
	for _, n := range notes {
		if n.Hidden != "" && workspace != "" && workdir.IsBelow(workspace, n.By) && !workdir.IsBelow(workspace, n.Path) {
			hidden[n.Hidden] = fmt.Sprintf("%s: ignored: the agent %s of the directory takes precedence: %s", n.Path, n.Hidden, n.By)
		}
	}
	return hidden
}

// checkApproved refuses agents that a request names and whose files define commands to
// execute, if a run may have written the files and the user has not approved them. A hook
// may be what keeps a run safe, so checkApproved does not silently drop one.
func (r *agentResolver) checkApproved(files []agentfile.Definition) error {
	for _, d := range files {
		_, off := trust.StripExecutable(d)
		if len(off) == 0 || r.cfg.Trust.TrustsNamed(d.Path, d.Digest, r.req.workspace) {
			continue
		}
		return refuse.Forbidden("keep it outside of the roots and start the node with --trust, or use `troupe run --agents` on its machine",
			"agents: %s brings %s, and the user of this node has not approved it", d.Path, strings.Join(off, ", "))
	}
	return nil
}

// filesNotedMax is how many notes on agent files a run shows.
const filesNotedMax = 8

// fileNotes returns the notes about files. For a large directory it shows only those about
// requested agents.
func fileNotes(notes []agentfile.Note, files []agentfile.Definition, requested []string) (warnings []string) {
	about := func(path string) bool {
		return slices.ContainsFunc(files, func(d agentfile.Definition) bool { return d.Path == path && slices.Contains(requested, d.Name) })
	}
	more := 0
	for _, n := range notes {
		if len(notes) > filesNotedMax && !about(n.Path) {
			more++
			continue
		}
		warnings = append(warnings, n.String())
	}
	if more > 0 {
		warnings = append(warnings, fmt.Sprintf("%d notes on agent files: `troupe agents validate` with the directory shows them", more))
	}
	return warnings
}

// checkCredentials returns an error if no setting says how to reach a model that a file
// names by its provider. An agent that is not requested can be left out then.
func (r *agentResolver) checkCredentials(d agentfile.Definition) error {
	for _, route := range append([]string{d.Model}, d.Fallback...) {
		if route == "" {
			continue
		}
		if _, err := r.cfg.Routes.ChooseNamed(route); errors.Is(err, provider.ErrCredentials) {
			return err
		}
	}
	return nil
}

// expandAliases replaces the model of an agent file by PROVIDER/MODEL: a rank (haiku), or a
// name without its provider. If it matches no model here, or one that cannot be reached,
// the agent uses the run's model, and a warning says so.
func (r *agentResolver) expandAliases(d agentfile.Definition) (agentfile.Definition, []string) {
	var warnings []string
	expand := func(name string) string {
		route, warning := r.expandAlias(name)
		if warning != "" {
			warnings = append(warnings, warning)
		}
		return route
	}
	d.Model = expand(d.Model)
	fallback := d.Fallback
	d.Fallback = nil
	for _, name := range fallback {
		if route := expand(name); route != "" {
			d.Fallback = append(d.Fallback, route)
		}
	}
	return d, warnings
}

func (r *agentResolver) expandAlias(name string) (route, warning string) {
	if name == "" || strings.Contains(name, "/") {
		return name, ""
	}
	preferred, _, _ := strings.Cut(r.models.choice.Name(), "/")
	route, ok := provider.ResolveRoute(name, preferred)
	if ok {
		if _, err := r.cfg.Routes.ChooseNamed(route); err != nil {
			ok = false
		}
	}
	switch {
	case !ok:
		return "", fmt.Sprintf("agent files name the model %q, which is not available on this node; the run's model is used", name)
	case provider.IsAlias(name):
		return route, fmt.Sprintf("model %s of agent files is %s", name, route)
	}
	return route, ""
}

// definitionIndex finds a definition by its name.
func definitionIndex(list []supervisor.Definition, name string) int {
	return slices.IndexFunc(list, func(d supervisor.Definition) bool { return d.Name == name })
}
