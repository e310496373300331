package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A question about a long write shows its beginning and its true end, says how much is between, and names the command
// that shows all of it before one answers.
//
//behaviour:shows E3
func TestAttackTheEndOfALongWriteIsShown(t *testing.T) {
	t.Parallel()
	var content strings.Builder
	for i := range 320 {
		fmt.Fprintf(&content, "line %d of a harmless file\n", i)
	}
	content.WriteString("hidden \u3164at the end\n")
	args, err := json.Marshal(map[string]string{"path": "src/long.txt", "content": content.String()})
	if err != nil {
		t.Fatal(err)
	}
	s := newTestHome(t, map[string]string{"hand.md": "---\nname: hand\ndescription: Works.\ntools: Write\n---\nWork.\n", "work/note.md": "",
		"work.yaml": "default:\n  - calls: [{name: write_file, args: " + string(args) + "}]\n  - text: \"{{last}}\"\n"})
	if out, code := s.outputOf("run", "-m", "script/work.yaml", "--dir", "work", "--agents", ".", "--agent", "hand", "work"); code != 5 {
		t.Fatalf("exit %d: %s", code, out)
	}
	out, code := s.outputOf("questions", "-o", "json")
	var asked []struct{ Question string }
	if err := json.Unmarshal([]byte(out), &asked); err != nil || code != 0 || len(asked) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"+line 0 of", "[… 224 lines, 6468 bytes are not shown here …]", `+hidden \u3164at the end`, "(the whole: troupe transcript "} {
		if !strings.Contains(asked[0].Question, want) {
			t.Errorf("the question lacks %q:\n%s", want, asked[0].Question)
		}
	}
	_, named, _ := strings.Cut(asked[0].Question, "(the whole: troupe ")
	named, _, _ = strings.Cut(named, ")")
	out, code = s.outputOf(strings.Fields(named)...)
	if lines := strings.Split(strings.TrimSpace(out), "\n"); code != 0 || len(lines) != 322 || lines[0] != "write src/long.txt" || lines[200] != "+line 199 of a harmless file" || lines[321] != `+hidden \u3164at the end` {
		t.Errorf("troupe %s: exit %d, %d lines:\n%s", named, code, len(lines), out)
	}
	if said, code := s.errorOf(append(strings.Fields(named), "--call", "9-9")...); code != 2 || !strings.Contains(said, `has no call "9-9"`) {
		t.Errorf("exit %d: %s", code, said)
	}
}

// A question that expires while the command looks whether the run waits for a person is no end of the run.
func TestAQuestionThatExpiresWhileItIsLookedAt(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"hand.md": "---\nname: hand\ndescription: Works.\ntools: Bash\n---\nWork.\n", "work/note.md": "", "work.yaml": `
default:
  - calls: [{name: shell, args: {command: touch one}}]
  - calls: [{name: shell, args: {command: touch two}}]
  - text: "[done] {{last}}"
`})
	for i := range 6 {
		out, code := s.outputOf("run", "-m", "script/work.yaml", "--dir", "work", "--agents", ".", "--agent", "hand", "--question-timeout", fmt.Sprintf("%dms", 1+i%3), "work")
		if code != 5 && (code != 0 || !strings.Contains(out, "nobody answered within")) {
			t.Errorf("exit %d: %s", code, out)
		}
	}
}
