package investigator_test

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/investigator"
)

// TestAForeignReportIsTheReason: the first line of the answer, which is the reason of the stop, names the file that is
// in the way and what to do about it.
func TestAForeignReportIsTheReason(t *testing.T) {
	for prompt, name := range map[string]string{task: "report.md", "Investigate this repository and write audit.md": "audit.md"} {
		dir := sampleRepository(t)
		writeFile(t, dir, name, "notes of a person\n")
		text := newDriver(t, directoryTools(t, dir)).runAgent("coordinator", prompt)
		first, _, _ := strings.Cut(text, "\n")
		if want := "[failed] " + name + " was not written: it exists and was not made by troupe; delete or rename it, or name another file in the prompt"; first != want {
			t.Errorf("%q, want %q", first, want)
		}
		if readFile(t, dir, name) != "notes of a person\n" {
			t.Errorf("%s was overwritten", name)
		}
	}
}

func TestOnlyANamedReportMayBeWrittenWithoutAQuestion(t *testing.T) {
	for prompt, want := range map[string]string{
		"Investigate this repository": "",
		task:                          "report.md",
		"Investigate this repository and write audit.md":            "audit.md",
		"Investigate this repository and write it to docs/audit.md": "docs/audit.md",
		"Investigate this repository and write CLAUDE.md":           "",
		"Investigate this and write .claude/agents/boss.md":         "",
		"Investigate this and write ../audit.md":                    "report.md",
		"Investigate this and write main.go":                        "",
	} {
		if got := investigator.NamedReport(prompt); got != want {
			t.Errorf("%q: %q, want %q", prompt, got, want)
		}
	}
}

// TestAPartThatIsMissingIsSaidFirstAndLast: a reader of the report, and one of the last line of the run, cannot miss it.
func TestAPartThatIsMissingIsSaidFirstAndLast(t *testing.T) {
	dir := sampleRepository(t)
	tools := directoryTools(t, dir)
	tools["delegate"] = func(args map[string]any) (string, bool) {
		switch args["agent"] {
		case "auditor":
			return "[stopped early: token_budget — this result is partial]\nauditor: 0 claims", false
		case "historian":
			return "no child could be had: depth 3", true
		}
		return "ok: 1 claim\nfact: x: y", false
	}
	text := newDriver(t, tools).runAgent("coordinator", task)
	lines := strings.Split(text, "\n")
	md := readFile(t, dir, "report.md")
	for where, got := range map[string]string{"the second line": lines[1], "the last line": lines[len(lines)-1], "the report": strings.Split(md, "\n**What it is")[0]} {
		if !strings.Contains(got, "Incomplete: ") || !strings.Contains(got, "auditor stopped early (token_budget)") || !strings.Contains(got, "historian: could not be had") {
			t.Errorf("%s: %q", where, got)
		}
	}
}
