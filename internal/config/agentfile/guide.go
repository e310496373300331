package agentfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/workdir"
)

// Limits on the text that is read of a Guide; the rest is left out. UserGuideBytesMax is the part of GuideBytesMax
// that the user's own may take: both are in the first entry of a run.
const (
	GuideBytesMax     = 32 << 10
	UserGuideBytesMax = GuideBytesMax / 2
)

// errGuide: instructions are there, and cannot be read.
var errGuide = errors.New("agentfile: the project's instructions cannot be read")

// guideNames are the files that hold a project's instructions, in order of precedence.
var guideNames = []string{"AGENTS.md", claudeGuide}

const claudeGuide = "CLAUDE.md"

// Guide is a project's instructions for the agents that work in it.
type Guide struct {
	Path string // of the file
	Text string
	Size int64 // of the file and its imports; more than Text if it was cut
	// Imports are the files that a CLAUDE.md imports (@docs/style.md), below the top of the tree. Text has their texts.
	Imports []string
	// Own: it is the user's own, for all projects.
	Own bool
}

// FindGuide finds the AGENTS.md that is nearest to a directory, or else the nearest
// CLAUDE.md: in the directory or above it, up to the top of its repository, and never above
// the directory `within`, which contains it. The path of the directory has no links (workdir.Open). ok is false if there
// is none. A link that leads out of that tree is an error: its target was not written for agents.
func FindGuide(dir, within string) (g Guide, ok bool, err error) {
	top := repositoryTop(dir, within)
	root, _, err := workdir.OpenRoot(top)
	if err != nil {
		return g, false, fmt.Errorf("%w: %w", errGuide, err)
	}
	defer func() { _ = root.Close() }()
	for _, name := range guideNames {
		for at := dir; ; at = filepath.Dir(at) {
			rel, err := filepath.Rel(top, filepath.Join(at, name))
			if err != nil {
				return g, false, fmt.Errorf("%w: %w", errGuide, err)
			}
			g, err := readGuide(root, rel)
			if err == nil {
				g.Path = filepath.Join(at, name)
				if name == claudeGuide {
					g.addImports(root, rel)
				}
				return g, true, nil
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return g, false, fmt.Errorf("%w: %s: %w", errGuide, filepath.Join(at, name), err)
			}
			if at == top || at == filepath.Dir(at) {
				break
			}
		}
	}
	return g, false, nil
}

// repositoryTop returns the top of the repository that contains a directory, limited to the
// directory within; without a repository it returns the directory itself.
func repositoryTop(dir, within string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if rel, ok := workdir.Below(within, at); !ok || rel == "." || at == filepath.Dir(at) {
			return dir
		}
	}
}

func readGuide(root *os.Root, path string) (g Guide, err error) {
	f, info, err := safefile.OpenIn(root, path)
	if err != nil {
		return g, reasonWithoutPath(err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, GuideBytesMax))
	if err != nil {
		return g, err
	}
	return Guide{Text: guideText(data), Size: max(info.Size(), int64(len(data)))}, nil
}

func guideText(data []byte) string {
	text := strings.ToValidUTF8(strings.TrimPrefix(string(data), "\uFEFF"), "")
	return strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\x00", ""))
}

// ReadUserGuide reads the user's own CLAUDE.md in ClaudeHome, with the files that it imports there. isProtected reports
// whether no run can have changed the file. ok is false if there is none.
func ReadUserGuide(claudeHome string, isProtected func(path, digest string) bool) (g Guide, ok bool, err error) {
	g.Path = filepath.Join(claudeHome, claudeGuide)
	data, err := safefile.Read(g.Path, FileBytesMax)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return g, false, nil
	case err != nil:
		return g, false, fmt.Errorf("agentfile: %w", err)
	case !isProtected(g.Path, ContentDigest(data)):
		return g, true, nil
	}
	g.Text, g.Size, g.Own = guideText(data), int64(len(data)), true
	root, err := os.OpenRoot(claudeHome)
	if err != nil {
		return g, false, fmt.Errorf("agentfile: %w", err)
	}
	defer func() { _ = root.Close() }()
	g.addImports(root, claudeGuide)
	return g.CutTo(UserGuideBytesMax), true, nil
}

// CutTo returns the guide with at most that many bytes of text.
func (g Guide) CutTo(most int) Guide {
	if len(g.Text) > most {
		g.Text = strings.ToValidUTF8(g.Text[:most], "")
	}
	return g
}
