package agentfile

import (
	"os"
	"strings"
	"testing"
)

func TestCutSlashCommand(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]string{
		"/review": "review|", "/review a  b\n": "review|a  b", "/git:commit -m x": "git:commit|-m x", "/a.b_c-d": "a.b_c-d|",
		"/review\nsecond line": "review|second line",
		"/etc/hosts":           "", "/etc/hosts is empty": "", "/tmp is full": "", "/": "", "/ x": "", " /review": "", "//x": "", "/re?view": "", "see /review": "", "/a:": "", "/:a": "",
	} {
		name, args, ok := CutSlashCommand(prompt)
		if ok != (want != "") || ok && name+"|"+args != want {
			t.Errorf("%q: %q %q %v", prompt, name, args, ok)
		}
	}
}

// Nothing that a file says runs or is read here, and what the user types is no template.
func TestSlashCommandsExpand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir+"/in.md", "x")
	writeFile(t, dir+"/.env", "KEY=hunter2")
	if err := os.Symlink("/etc/passwd", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, args, want, lines, files string }{
		{"Do $1 of $ARGUMENTS.", "a b", "Do a of a b.", "", ""},
		{"Do $1.", "!`id` $2", "Do !`id`.", "", ""},
		{"Do $2.", "x $1", "Do $1.", "", ""},
		{"No place.", "", "No place.", "", ""},
		{"No place.", "x", "No place.\n\nARGUMENTS: x", "", ""},
		{"!`id`", "", "[run `id` first and use its output here]", "id", ""},
		{"See @in.md, @/etc/passwd, @../x, @link, @.git, `@in.md` and me@in.md.", "", "", "", "in.md"},
		{"See @$1", ".env", "", "", ".env"}, // its tool masks it, and rules may deny it
	} {
		text, lines, files := SlashCommand{Text: c.text}.Expand(c.args, dir)
		if c.want != "" && text != c.want || strings.Join(lines, ";") != c.lines || strings.Join(files, ";") != c.files || strings.Contains(text, "hunter2") {
			t.Errorf("%q %q: %q %q %q", c.text, c.args, text, lines, files)
		}
	}
	text, _, _ := SlashCommand{Text: strings.Repeat("$ARGUMENTS ", 10_000)}.Expand(strings.Repeat("x", 10_000), "")
	if len(text) > 2*expandedMax {
		t.Errorf("%d bytes", len(text))
	}
}

// No link leads out of a directory, whatever its files are called.
func TestAttackSlashCommandsAreThoseOfTheDirectory(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	dir, other := t.TempDir(), t.TempDir()
	writeFile(t, other+"/secret.md", "hunter2")
	writeFile(t, dir+"/.claude/commands/a\x1b[31m.md", "x")
	writeFile(t, dir+"/.claude/commands/bin.md", "---\n\x00\n---\nx")
	if err := os.Symlink(other+"/secret.md", dir+"/.claude/commands/link.md"); err != nil {
		t.Fatal(err)
	}
	list, notes, err := LoadSlashCommands(dir)
	if len(list) != 0 || len(notes) != 1 || err == nil || strings.Contains(err.Error(), "hunter2") || len(SplitProblems(err)) != 2 {
		t.Errorf("%+v %v %v", list, notes, err)
	}
	if err := os.Symlink(other, dir+"/away"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir + "/.claude/commands"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, dir+"/.claude/commands"); err != nil {
		t.Fatal(err)
	}
	if list, _, err = LoadSlashCommands(dir); len(list) != 0 || err == nil {
		t.Errorf("%+v %v", list, err)
	}
}

func FuzzSlashCommands(f *testing.F) {
	f.Add("---\nallowed-tools: [a, {b: c}]\n---\n$1 @x !`y`", "a 'b")
	f.Fuzz(func(_ *testing.T, text, args string) {
		c := SlashCommand{Path: "c.md"}
		if c.parse([]byte(text)) == nil {
			c.Expand(args, "/nonexistent")
		}
		CutSlashCommand(text)
	})
}
