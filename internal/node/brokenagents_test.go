package node

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/supervisor"
)

// buildWithBroken builds a run of an agent with files in a directory that the request names; the directory of the run has a
// reviewer and a lead.
func buildWithBroken(t *testing.T, agent string, files map[string]string) (supervisor.Opened, client.RunAccepted, error) {
	t.Helper()
	dir, team := t.TempDir(), t.TempDir()
	writeText(t, agentText("reviewer", "", "anyone's"), dir, ".claude", "agents", "reviewer.md")
	writeText(t, agentText("chief", "x-troupe: {delegates: [auditor]}\n", "p"), dir, ".claude", "agents", "chief.md")
	for name, text := range files {
		writeText(t, text, team, name)
	}
	return newBuildOnlyNode(dir, func(c *Config) { c.Roots = append(c.Roots, team) }).buildRun(newRequest(func(r *client.RunRequest) {
		r.Dir, r.Agents, r.Agent = dir, team, agent
	}))
}

// No agent from elsewhere, which may have more rights, replaces one whose file in the named directory is broken: the run is
// refused if it reaches the agent by name, also if the name is not known for certain.
func TestBrokenAgentOfTheNamedDirectoryIsNotReplaced(t *testing.T) {
	t.Parallel()
	unclosed := "---\nname: other\ndescription: d\n"
	utf16 := "\xff\xfe-\x00-\x00-\x00\n\x00n\x00a\x00m\x00e\x00:\x00 \x00r\x00e\x00v\x00i\x00e\x00w\x00e\x00r\x00"
	typo := "---\nname: auditor\ndescription: d\ntools: [Read\n---\np\n"
	lead := agentText("lead", "x-troupe: {delegates: [auditor]}\n", "p")
	for what, c := range map[string]struct {
		agent, wrong string // wrong: a file that the refusal names
		files        map[string]string
	}{
		"two that are not closed":      {"reviewer", "reviewer.md", map[string]string{"a.md": unclosed, "reviewer.md": unclosed}},
		"not closed, of any name":      {"reviewer", "a.md", map[string]string{"a.md": unclosed}},
		"in UTF-16":                    {"reviewer", "a.md", map[string]string{"a.md": utf16}},
		"named in a file with a typo":  {"reviewer", "a.md", map[string]string{"a.md": strings.Replace(typo, "auditor", "reviewer", 1)}},
		"too large":                    {"reviewer", "a.md", map[string]string{"a.md": "---\n" + strings.Repeat("#\n", 1<<20)}},
		"a name of another type":       {"reviewer", "a.md", map[string]string{"a.md": "---\nname: [reviewer]\ndescription: d\n---\np\n"}},
		"a delegate":                   {"lead", "b.md", map[string]string{"lead.md": lead, "b.md": typo}},
		"a delegate of a found agent":  {"chief", "b.md", map[string]string{"b.md": typo}},
		"a delegate of any name":       {"lead", "b.md", map[string]string{"lead.md": lead, "b.md": unclosed}},
		"the root that nobody names":   {"", "coordinator.md", map[string]string{"coordinator.md": "---\ntools: [Read\n---\np\n"}},
		"a taken name, and not closed": {"reviewer", "b.md", map[string]string{"a.md": agentText("b", "", "p"), "b.md": unclosed}},
	} {
		_, _, err := buildWithBroken(t, c.agent, c.files)
		if err == nil || !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// An agent that the run does not name goes without the broken one: no other of that name is in its team.
func TestBrokenAgentIsLeftOutOfTheTeam(t *testing.T) {
	t.Parallel()
	whole := agentText("lead", "", "p")
	for broken, files := range map[string]map[string]string{
		"auditor":  {"lead.md": whole, "auditor.md": agentText("auditor", "maxTurns: many\n", "p")},
		"surveyor": {"lead.md": whole, "x.md": "---\nname: surveyor\ndescription: d\ntools: [Read\n---\np\n"},
		"reviewer": {"lead.md": whole, "reviewer.md": "---\ndescription: d\n"},
	} {
		o, a, err := buildWithBroken(t, "lead", files)
		if err != nil {
			t.Errorf("%s: %v", broken, err)
			continue
		}
		if slices.ContainsFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == broken }) {
			t.Errorf("another %s takes its place", broken)
		}
		if !slices.ContainsFunc(a.Notes, func(n string) bool { return strings.HasPrefix(n, "left out: ") }) {
			t.Errorf("%s: %q", broken, a.Notes)
		}
	}
}

// A place that cannot be read completely has no path that a command could check.
func TestAPlaceThatCannotBeReadIsNotNamedAsAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 1001 {
		writeText(t, "x", dir, ".claude", "agents", "n"+strconv.Itoa(i)+".md")
	}
	_, a, err := newBuildOnlyNode(dir).buildRun(newRequest(func(r *client.RunRequest) { r.Dir = dir }))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(a.Notes, "\n")
	if !strings.Contains(all, "left out: ") || strings.Contains(all, "validate ` shows") {
		t.Errorf("%s: %q", filepath.Base(dir), a.Notes)
	}
}
