package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestOperatorsDay runs each command of the section of docs/operating.md as it is written there.
func TestOperatorsDay(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	setup, err := os.ReadFile("testdata/day/setup.txtar")
	if err != nil {
		t.Fatal(err)
	}
	commands := dayCommands(string(text))
	if len(commands) < 30 {
		t.Fatalf("only %d commands are found: %q", len(commands), commands)
	}
	var script strings.Builder
	script.WriteString("[!unix] stop\nenv TROUPE_MODEL=script/$WORK/day.yaml\nnode\n")
	for _, c := range commands {
		line := "exec"
		if strings.HasSuffix(c, "# exit code 5") {
			line = "exits 5"
		}
		fmt.Fprintf(&script, "%s sh -c '%s'\n", line, strings.ReplaceAll(c, "'", "''"))
	}
	script.WriteString("exec troupe result production\nstdout deployed\nexec troupe audit production\nstdout ann\nstdout bob\nexec troupe result site\nstdout 'use the staging server'\nexec troupe result scan\nstdout 'Only the main program'\n")
	file := filepath.Join(t.TempDir(), "day.txt")
	if err := os.WriteFile(file, []byte(script.String()+"# "+string(setup)), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: []string{file},
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, testEnv(e.WorkDir)...)
			e.Values[nodesOfScript{}] = map[string]func(){}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "node": startNode},
	})
}

// dayCommands returns the indented lines of the section about an operator's day.
func dayCommands(text string) (commands []string) {
	_, section, _ := strings.Cut(text, "\n## An operator's day\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if command, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "    "); ok {
			commands = append(commands, command)
		}
	}
	return commands
}
