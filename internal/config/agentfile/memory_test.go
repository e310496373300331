package agentfile

import "testing"

// The scopes are those of Claude Code; a file with a value of another tool loads without memory.
func TestMemoryOfAnAgentFile(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"user": "user", "project": "project", "local": "project", "'project'": "project"} {
		if def, notes := mustParse(t, "---\nname: a\ndescription: d\nmemory: "+value+"\n---\np"); def.Memory != want || len(notes) > 0 {
			t.Errorf("%s: %q %v", value, def.Memory, notes)
		}
	}
	const note = "agents/auditor.md:4: memory is not user, project or local: the agent has no memory"
	for _, value := range []string{"planet", "true", "7", "[user]", "{scope: user}", "''"} {
		if def, notes := mustParse(t, "---\nname: a\ndescription: d\nmemory: "+value+"\n---\np"); def.Memory != "" || len(notes) != 1 || notes[0].String() != note {
			t.Errorf("%s: %q %v", value, def.Memory, notes)
		}
	}
}

// Whoever wrote a file of a directory must not read what the user's agents note elsewhere.
func TestUntrustedFileHasNoNotesOfTheUser(t *testing.T) {
	t.Parallel()
	for scope, lost := range map[string]int{"user": 1, "project": 0, "": 0} {
		want := scope
		if lost > 0 {
			want = "project"
		}
		if less, off := (Definition{Memory: scope}).WithoutTrust(); less.Memory != want || len(off) != lost {
			t.Errorf("%q: %q %v", scope, less.Memory, off)
		}
	}
}
