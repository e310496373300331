package skill_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/toolset/skill"
	"github.com/troupe-run/troupe/tool"
)

// putSkill writes a SKILL.md into a place.
func putSkill(t *testing.T, place, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(place, name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(place, name, "SKILL.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func skillText(name, description string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: %s\nlicense: MIT\nmetadata: {a: b}\n---\n\n# %s\n\nDo it.\n", name, description, name)
}

func loadSkill(t *testing.T, p skill.Places, name string) tool.Result {
	t.Helper()
	one, err := skill.Tool(p)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(one)
	if err != nil {
		t.Fatal(err)
	}
	return set.Call(t.Context(), skill.Name, tool.Call{Args: fmt.Appendf(nil, `{"name":%q}`, name)})
}

//behaviour:shows D2
func TestSkillBodyIsLoadedOnDemand(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	p := skill.Places{Dir: dir, User: skill.UserPlaces(home, filepath.Join(home, ".config"), filepath.Join(home, ".claude"))}
	putSkill(t, filepath.Join(dir, ".claude/skills"), "review", skillText("review", "Reads code."))
	putSkill(t, filepath.Join(dir, ".troupe/skills"), "review", skillText("review", "Reads our code. Use it before a merge."))
	putSkill(t, filepath.Join(home, ".claude/skills"), "pdf", skillText("pdf", "Fills forms."))
	putSkill(t, filepath.Join(home, ".config/troupe/skills"), "review", skillText("review", "Another."))
	found, problems := skill.Find(p)
	if len(problems) > 0 {
		t.Error(problems)
	}
	want := "Skills that you can load with the tool skill, before you do what one is about:\n- pdf: Fills forms.\n- review: Reads our code. Use it before a merge."
	if got := skill.Prompt(found); got != want {
		t.Errorf("%s", got)
	}
	if r := loadSkill(t, p, "review"); r.Error || r.Text != "[skill review; its files are in .troupe/skills/review, for read_file]\n# review\n\nDo it." {
		t.Errorf("%+v", r)
	}
	if r := loadSkill(t, p, "pdf"); r.Error || r.Text != "[skill pdf; its files lie outside of the directory and cannot be read]\n# pdf\n\nDo it." {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{"none", "../review", "", "review/../pdf"} {
		if r := loadSkill(t, p, name); !r.Error || !strings.Contains(r.Text, "the skills are: pdf, review") {
			t.Errorf("%+v", r)
		}
	}
	if skill.Prompt(nil) != "" {
		t.Error("nothing is said of no skills")
	}
}

func TestASkillThatIsWrongIsLeftOutAndSaysWhy(t *testing.T) {
	dir := t.TempDir()
	place := filepath.Join(dir, ".agents/skills")
	for name, text := range map[string]string{
		"no-front": "# text", "not-closed": "---\nname: not-closed\n", "no-yaml": "---\nname: [\n---\nx", "other": skillText("another", "x"), "Upper": skillText("Upper", "x"),
		"no-description": "---\nname: no-description\n---\nx", "long": skillText("long", strings.Repeat("x", 1025)), "binary": "---\nname: binary\ndescription: \xff\n---\n",
		"big": skillText("big", "x") + strings.Repeat("x", skill.FileBytesMax), "good": skillText("good", "x"),
		"bomb": "---\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\nname: x\n---\n",
	} {
		putSkill(t, place, name, text)
	}
	if err := os.WriteFile(filepath.Join(place, "README.md"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	found, problems := skill.Find(skill.Places{Dir: dir})
	if len(found) != 1 || found[0].Name != "good" || len(problems) != 10 {
		t.Errorf("%v, %d problems", found, len(problems))
	}
	for _, p := range problems {
		if !errors.Is(p, skill.ErrSkill) || !strings.Contains(p.Error(), "SKILL.md: ") {
			t.Error(p)
		}
	}
}

func TestASkillOfADirectoryIsNotReadOutOfIt(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	putSkill(t, outside, "theirs", skillText("theirs", "Not ours."))
	if err := os.MkdirAll(filepath.Join(dir, ".claude/skills"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "theirs"), filepath.Join(dir, ".claude/skills/theirs")); err != nil {
		t.Fatal(err)
	}
	if found, _ := skill.Find(skill.Places{Dir: dir}); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	if r := loadSkill(t, skill.Places{Dir: dir}, "theirs"); !r.Error {
		t.Errorf("%+v", r)
	}
}

func TestOnlySoManySkillsAreOffered(t *testing.T) {
	dir := t.TempDir()
	for i := range skill.Max + 2 {
		name := fmt.Sprintf("s%03d", i)
		putSkill(t, filepath.Join(dir, ".troupe/skills"), name, skillText(name, "x"))
	}
	found, problems := skill.Find(skill.Places{Dir: dir})
	if len(found) != skill.Max || len(problems) != 2 || !errors.Is(problems[0], skill.ErrMany) {
		t.Errorf("%d, %v", len(found), problems)
	}
}

// Whose agent asks decides whose skill a name means, also where that one is broken.
func TestTheUsersSkillsGoFirstForTheUsersAgents(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	p := skill.Places{Dir: dir, User: skill.UserPlaces(home, "", filepath.Join(home, ".claude"))}
	putSkill(t, filepath.Join(dir, ".claude/skills"), "review", skillText("review", "Theirs."))
	putSkill(t, filepath.Join(dir, ".claude/skills"), "broken", skillText("broken", "Theirs."))
	putSkill(t, filepath.Join(home, ".claude/skills"), "review", skillText("review", "Mine."))
	putSkill(t, filepath.Join(home, ".agents/skills"), "review", skillText("review", "Mine, too."))
	putSkill(t, filepath.Join(home, ".claude/skills"), "broken", "# nothing")
	mine, theirs := filepath.Join(home, ".agents/skills/review"), filepath.Join(".claude", "skills", "review")
	for first, want := range map[bool]string{
		false: "broken Theirs. (.claude/skills/broken, not ); review Theirs. (" + theirs + ", not " + mine + ")",
		true:  "review Mine, too. (" + mine + ", not " + theirs + ")",
	} {
		p.Mine = first
		found, problems := skill.Find(p)
		var got []string
		for _, s := range found {
			got = append(got, fmt.Sprintf("%s %s (%s, not %s)", s.Name, s.Description, s.Dir, s.Hides))
		}
		if strings.Join(got, "; ") != want || len(problems) != 1 {
			t.Errorf("%v: %q %v", first, got, problems)
		}
	}
}
