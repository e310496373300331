// Package skill reads skills: directories with a SKILL.md, by the conventions of
// agentskills.io. A prompt has only their names and descriptions; the tool skill
// gives the text of one when it is wanted.
package skill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// Limits of skills.
const (
	FileBytesMax     = 256 << 10 // of a SKILL.md
	DescriptionBytes = 1024
	Max              = 64 // of one run; further ones are left out
	entriesMax       = 1024
)

// Name of the tool.
const Name = "skill"

// fileName is the file that makes a directory a skill.
const fileName = "SKILL.md"

// Errors of a skill that is left out.
var (
	ErrSkill = errors.New("skill: bad SKILL.md")
	ErrMany  = errors.New("skill: too many")
)

// Skill is one that was found.
type Skill struct {
	Name, Description string
	// Dir is its directory: relative to the directory of the run if it is below
	// that, else absolute.
	Dir string
	// Hides is the directory of the first skill of the same name that this one hides:
	// a user's own one if this one is the directory's, or the other way
	// round; "" is none.
	Hides string
	local bool
}

// Places are where Find looks for skills: in a directory, then in a user's own places.
// The first skill of a name counts, even if it is left out: a broken skill of the user
// is not replaced by one of the directory, nor the other way round.
type Places struct {
	Dir  string // "" is none
	User []string
	// Mine: the user's own skills come first, because the caller is the user.
	Mine bool
}

var localPlaces = []string{".troupe/skills", ".agents/skills", ".claude/skills"}

// UserPlaces returns the places of a user with this home, configuration directory, and directory of Claude Code.
func UserPlaces(home, config, claude string) []string {
	var list []string
	if config != "" {
		list = append(list, filepath.Join(config, "troupe", "skills"), filepath.Join(config, "agents", "skills"))
	}
	if home != "" {
		list = append(list, filepath.Join(home, ".agents", "skills"))
	}
	if claude != "" {
		list = append(list, filepath.Join(claude, "skills"))
	}
	return list
}

// Find returns the skills of all places, by name, and the reasons why other skills
// are left out.
func Find(p Places) (found []Skill, problems []error) {
	broken := map[string]bool{} // by name, whether it is the directory's
	add := func(s Skill, err error) {
		local, known := broken[s.Name]
		i := slices.IndexFunc(found, func(other Skill) bool { return other.Name == s.Name })
		switch {
		case err != nil:
			problems = append(problems, err)
			if !known {
				broken[s.Name] = s.local
			}
		case i >= 0:
			if found[i].local != s.local && found[i].Hides == "" {
				found[i].Hides = s.Dir
			}
		case known && local != s.local:
		case len(found) == Max:
			problems = append(problems, fmt.Errorf("%w: %s is left out, at most %d are offered", ErrMany, s.Name, Max))
		default:
			found = append(found, s)
		}
	}
	if !p.Mine {
		p.readLocal(add)
	}
	for _, place := range p.User {
		scanSkills(os.DirFS(place), func(file string) ([]byte, error) {
			return safefile.Read(filepath.Join(place, filepath.FromSlash(file)), FileBytesMax)
		}, ".", place, false, add)
	}
	if p.Mine {
		p.readLocal(add)
	}
	slices.SortFunc(found, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	return found, problems
}

// readLocal reads the skills of the directory.
func (p Places) readLocal(add func(Skill, error)) {
	if p.Dir == "" {
		return
	}
	if root, _, err := workdir.OpenRoot(p.Dir); err == nil { // no link leads out of it
		for _, place := range localPlaces {
			scanSkills(root.FS(), readBelow(root), place, place, true, add)
		}
		_ = root.Close()
	}
}

// readBelow reads files of an opened directory.
func readBelow(root *os.Root) func(string) ([]byte, error) {
	return func(file string) ([]byte, error) {
		return safefile.ReadIn(root, filepath.FromSlash(file), FileBytesMax)
	}
}

// scanSkills reads the skills of one place. A missing place has none.
func scanSkills(dir fs.FS, read func(string) ([]byte, error), at, shown string, local bool, add func(Skill, error)) {
	entries, err := fs.ReadDir(dir, at)
	if err != nil {
		return
	}
	for _, e := range entries[:min(len(entries), entriesMax)] {
		file := path.Join(at, e.Name(), fileName)
		data, err := read(file)
		if errors.Is(err, fs.ErrNotExist) || err != nil && !e.IsDir() {
			continue
		}
		where := filepath.Join(shown, e.Name())
		s := Skill{Dir: where, local: local}
		if err == nil {
			s.Name, s.Description, _, err = parseSkill(data)
		}
		if err == nil && s.Name != e.Name() {
			err = fmt.Errorf("its name is %.80q; it must be that of its directory", s.Name)
		}
		if err != nil {
			s.Name = e.Name()
			err = fmt.Errorf("%w: %s: %w", ErrSkill, filepath.Join(where, fileName), err)
		}
		add(s, err)
	}
}

var nameForm = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// parseSkill reads the front matter; the rest is the body.
func parseSkill(data []byte) (name, description, body string, err error) {
	text := string(bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\uFEFF")), []byte("\r\n"), []byte("\n")))
	rest, ok := strings.CutPrefix(text, "---\n")
	front, body, closed := strings.Cut("\n"+rest, "\n---\n")
	if !closed {
		front, closed = strings.CutSuffix("\n"+rest, "\n---")
	}
	if !ok || !closed || !utf8.ValidString(text) {
		return "", "", "", errors.New("it must be text that begins with front matter between two lines ---")
	}
	var head struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	}
	if err := yaml.Unmarshal([]byte(front), &head); err != nil {
		return "", "", "", fmt.Errorf("its front matter is no YAML: %w", err)
	}
	description = strings.Join(strings.Fields(head.Description), " ")
	switch {
	case !nameForm.MatchString(head.Name) || len(head.Name) > 64:
		return "", "", "", fmt.Errorf("its name is %.80q; write up to 64 lower-case letters, digits and -", head.Name)
	case description == "":
		return "", "", "", errors.New("it has no description; describe what it does and when to use it")
	case len(description) > DescriptionBytes:
		return "", "", "", fmt.Errorf("its description has %d bytes, at most %d are allowed", len(description), DescriptionBytes)
	}
	return head.Name, description, strings.Trim(body, "\n"), nil
}

// Prompt returns the prompt text that lists the skills for an agent; "" if there are none.
func Prompt(list []Skill) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Skills that you can load with the tool skill, before you do what one is about:")
	for _, s := range list {
		fmt.Fprintf(&b, "\n- %s: %s", s.Name, s.Description)
	}
	return b.String()
}

type skillArgs struct {
	Name string `json:"name"`
}

// Tool makes the tool skill. Every call searches again, so the tool offers the skills that
// exist then.
func Tool(p Places) (tool.Tool, error) {
	return tool.New(Name, "Load a skill: instructions for a kind of work.", model.Read, func(_ context.Context, in skillArgs, _ tool.Call) (string, error) {
		found, _ := Find(p)
		i := slices.IndexFunc(found, func(s Skill) bool { return s.Name == in.Name })
		if i < 0 {
			known := make([]string, len(found))
			for i, s := range found {
				known[i] = s.Name
			}
			return "", fmt.Errorf("there is no skill %.80q; the skills are: %s", in.Name, strings.Join(known, ", "))
		}
		return found[i].loadText(p)
	})
}

// loadText is the text of a skill, and where its files are.
func (s Skill) loadText(p Places) (string, error) {
	read := func(string) ([]byte, error) { return safefile.Read(filepath.Join(s.Dir, fileName), FileBytesMax) }
	where, at := "its files lie outside of the directory and cannot be read", "."
	if s.local {
		root, _, err := workdir.OpenRoot(p.Dir)
		if err != nil {
			return "", fmt.Errorf("skill %s: %w", s.Name, err)
		}
		defer func() { _ = root.Close() }()
		read, at = readBelow(root), filepath.ToSlash(s.Dir)
		where = "its files are in " + at + ", for read_file"
	}
	data, err := read(path.Join(at, fileName))
	if err != nil {
		return "", fmt.Errorf("skill %s: %w", s.Name, err)
	}
	_, _, body, err := parseSkill(data)
	if err != nil {
		return "", fmt.Errorf("skill %s: %w", s.Name, err)
	}
	return fmt.Sprintf("[skill %s; %s]\n%s", s.Name, where, body), nil
}
