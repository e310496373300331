package agentfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// filesMax bounds the files that one Load reads.
const filesMax = 1000

// Dirs is where definitions are looked for, what counts most first: the given
// places (--agents), then .troupe/agents, .agents/agents, .claude/agents,
// .opencode/agent and .opencode/agents of the workspace, then those of the user.
// Nothing is checked to exist.
func Dirs(workspace string, given ...string) []string {
	dirs := append([]string{}, given...)
	if workspace != "" {
		for _, name := range []string{".troupe/agents", ".agents/agents", ".claude/agents", ".opencode/agent", ".opencode/agents"} {
			dirs = append(dirs, filepath.Join(workspace, filepath.FromSlash(name)))
		}
	}
	if config, err := os.UserConfigDir(); err == nil {
		dirs = append(dirs, filepath.Join(config, "troupe", "agents"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, filepath.Join(home, ".claude", "agents"))
	}
	return dirs
}

// Load reads all definitions of the places, in this order; each is a directory,
// searched with all below it for *.md, or a file. Of two agents with one name
// the first counts and the other is noted. Places that do not exist are skipped,
// and Markdown files without front matter are noted and skipped.
//
// The error joins those of all files that could not be read; what could be read
// is returned all the same. A broken definition keeps its name: a lesser one of
// that name does not take its place.
func Load(dirs ...string) ([]Definition, []Note, error) {
	l := &loader{first: map[string]string{}}
	for _, dir := range dirs {
		l.place(dir)
	}
	return l.defs, l.notes, errors.Join(l.problems...)
}

type loader struct {
	defs     []Definition
	notes    []Note
	problems []error
	first    map[string]string // name → path of the definition that counts
	files    int
}

func (l *loader) place(dir string) {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if e.IsDir() || path != dir && !strings.EqualFold(filepath.Ext(path), ".md") {
			return nil
		}
		if l.files++; l.files > filesMax {
			return fmt.Errorf("%w: more than %d files", ErrTooLarge, filesMax)
		}
		l.file(path)
		return nil
	})
	if err != nil {
		l.problems = append(l.problems, fmt.Errorf("agentfile: %s: %w", dir, err))
	}
}

func (l *loader) file(path string) {
	data, err := read(path)
	if err != nil {
		l.problems = append(l.problems, fmt.Errorf("agentfile: %w", err))
		return
	}
	def, notes, err := Parse(path, data)
	if errors.Is(err, ErrNoFrontMatter) {
		l.notes = append(l.notes, Note{Path: path, Text: "skipped: no front matter, so it is no agent definition"})
		return
	}
	l.notes = append(l.notes, notes...)
	if first, taken := l.first[def.Name]; taken {
		l.notes = append(l.notes, Note{Path: path, Text: fmt.Sprintf("skipped: agent %q is defined by %s", def.Name, first)})
		return
	}
	l.first[def.Name] = path
	if err != nil {
		l.problems = append(l.problems, err)
		return
	}
	if def.Disabled {
		l.notes = append(l.notes, Note{Path: path, Text: "skipped: its file disables it"})
		return
	}
	if def.Manners.Require.Schema, err = answerSchema(path, def.Line(schemaKey, ownKey), def.OutputSchema); err != nil {
		l.problems = append(l.problems, err)
		return
	}
	l.defs = append(l.defs, def)
}

// read reads a regular file, a little more than Parse accepts at most.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: not a regular file", path, fs.ErrInvalid)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, FileBytesMax+1))
}
