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
)

// GuideBytesMax is the most that is read of a Guide; the rest is left out.
const GuideBytesMax = 32 << 10

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
}

// FindGuide finds the AGENTS.md that is nearest to a directory, or else the nearest
// CLAUDE.md: in the directory or above it, up to the top of its repository, and never above
// the directory `within`, which contains it. ok is false if there is none. A link that
// leads out of that tree is an error: its target was not written for agents.
func FindGuide(dir, within string) (g Guide, ok bool, err error) {
	top := repositoryTop(dir, within)
	root, err := os.OpenRoot(top)
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
		if rel, err := filepath.Rel(within, at); err != nil || rel == "." || !filepath.IsLocal(rel) || at == filepath.Dir(at) {
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
	text := strings.ToValidUTF8(strings.TrimPrefix(string(data), "\uFEFF"), "")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\x00", "")
	return Guide{Text: strings.TrimSpace(text), Size: max(info.Size(), int64(len(data)))}, nil
}
