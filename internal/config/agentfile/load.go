package agentfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/workdir"
)

// filesMax bounds the files of one place that Load reads: a place with more does not hide those after it.
const filesMax = 1000

// allFilesBytesMax bounds the bytes of all files that one Load reads: each run that is built holds them.
const allFilesBytesMax = 16 << 20

// localDirs are the places of a working directory, in order of precedence.
var localDirs = []string{".troupe/agents", ".agents/agents", ".claude/agents", ".opencode/agent", ".opencode/agents"}

// LocalDirs are the places of a working directory; "": there are none.
func LocalDirs(workspace string) (dirs []string) {
	for _, place := range localDirs {
		if workspace != "" {
			dirs = append(dirs, filepath.Join(workspace, place))
		}
	}
	return dirs
}

// UserDirs are the places of the user.
func UserDirs() (dirs []string) {
	if config, err := os.UserConfigDir(); err == nil {
		dirs = append(dirs, filepath.Join(config, "troupe", "agents"))
	}
	if home := ClaudeHome(); home != "" {
		dirs = append(dirs, filepath.Join(home, "agents"))
	}
	return dirs
}

// Load reads all definitions of the places, in this order; each place is a file, or a
// directory in which Load finds every *.md file at any depth. If two agents have one name,
// the first takes precedence and a note names the other. Load skips places that do not
// exist; it skips Markdown files without front matter and adds a note.
//
// The error joins the errors of all files that could not be read; Load still returns the
// other definitions. A broken definition keeps its name: a definition of that name
// with lower precedence does not replace it.
func Load(dirs ...string) ([]Definition, []Note, error) {
	l := &definitionLoader{first: map[string]string{}}
	for _, dir := range dirs {
		l.readPlace(dir)
	}
	return l.defs, l.notes, errors.Join(l.problems...)
}

// LoadWorkspace loads the definitions of all places, in order of precedence: the given places
// (--agents), localDirs of the workspace, then UserDirs. Files in the workspace may come from
// anyone, so LoadWorkspace follows no link that leads out of it, nor one in the path of the workspace (workdir.Open).
func LoadWorkspace(workspace string, given ...string) ([]Definition, []Note, error) {
	l := &definitionLoader{first: map[string]string{}}
	for _, dir := range given {
		l.readPlace(dir)
	}
	if workspace != "" {
		l.readPlacesBelow(workspace, localDirs...)
	}
	for _, dir := range UserDirs() {
		l.readPlace(dir)
	}
	return l.defs, l.notes, errors.Join(l.problems...)
}

// LoadBelow is Load for one place below a directory: it follows no link that leads out of
// that directory, nor one in its path (workdir.Open).
func LoadBelow(dir, place string) ([]Definition, []Note, error) {
	l := &definitionLoader{first: map[string]string{}}
	rel, ok := workdir.Below(dir, place)
	if !ok {
		return nil, nil, &Problem{Path: place, Err: safefile.ErrOutside}
	}
	l.readPlacesBelow(dir, rel)
	return l.defs, l.notes, errors.Join(l.problems...)
}

type definitionLoader struct {
	bytes    int      // that were read
	root     *os.Root // that files are read below; nil: anywhere
	top      string   // its path
	defs     []Definition
	notes    []Note
	problems []error
	first    map[string]string // name → path of the definition that counts
	files    int               // of the present place
}

// readPlacesBelow reads the places of a directory.
func (l *definitionLoader) readPlacesBelow(dir string, places ...string) {
	root, _, err := workdir.OpenRoot(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			l.problems = append(l.problems, fmt.Errorf("agentfile: %s: %w", dir, err))
		}
		return
	}
	defer func() { _ = root.Close() }()
	l.root, l.top = root, dir
	for _, place := range places {
		place, l.files = filepath.FromSlash(place), 0
		l.recordWalkError(filepath.Join(dir, place), fs.WalkDir(root.FS(), filepath.ToSlash(place), func(path string, e fs.DirEntry, err error) error {
			return l.visitFile(place, filepath.FromSlash(path), e, err)
		}))
	}
	l.root, l.top = nil, ""
}

func (l *definitionLoader) readPlace(dir string) {
	l.files = 0
	l.recordWalkError(dir, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error { return l.visitFile(dir, path, e, err) }))
}

// recordWalkError records why a place could not be read completely.
func (l *definitionLoader) recordWalkError(dir string, err error) {
	if err != nil {
		l.problems = append(l.problems, fmt.Errorf("agentfile: %s: %w", dir, err))
	}
}

// visitFile reads a file of a place; the place itself may be a file.
func (l *definitionLoader) visitFile(place, path string, e fs.DirEntry, err error) error {
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if e.IsDir() || path != place && !strings.EqualFold(filepath.Ext(path), ".md") {
		return nil
	}
	if l.bytes > allFilesBytesMax { // one file has said so
		return fs.SkipAll
	}
	if l.files++; l.files > filesMax {
		return fmt.Errorf("%w: more than %d files", ErrTooLarge, filesMax)
	}
	l.loadFile(path)
	return nil
}

// readContent reads a file and returns the path by which messages name it.
func (l *definitionLoader) readContent(path string) (data []byte, known string, err error) {
	if l.root == nil {
		data, err = readFile(path)
		return data, path, err
	}
	data, err = safefile.ReadIn(l.root, path, FileBytesMax)
	return data, filepath.Join(l.top, path), err
}

// openDirOf opens the directory of a file. A file that is read below a directory has its own opened through that: by now,
// its path may lead elsewhere.
func (l *definitionLoader) openDirOf(path string) (*os.Root, error) {
	if l.root == nil {
		return os.OpenRoot(filepath.Dir(path))
	}
	return workdir.OpenBelow(l.root, filepath.Dir(path))
}

// addBroken records why a file defines no agent. A file whose name is not known for certain takes each name that its agent
// may have, so that no agent of lower precedence replaces it.
func (l *definitionLoader) addBroken(path string, b *brokenAgent) {
	if !b.uncertain && l.isTaken(path, b.names[0]) {
		return
	}
	for _, name := range b.names {
		if _, taken := l.first[name]; !taken {
			l.first[name] = path
		}
	}
	l.problems = append(l.problems, b)
}

// isTaken reports whether another file defines the agent of that name, and notes it.
func (l *definitionLoader) isTaken(path, name string) bool {
	first, taken := l.first[name]
	if taken {
		l.notes = append(l.notes, Note{Path: path, Text: fmt.Sprintf("skipped: agent %q is defined by %s", name, first), Hidden: name, By: first})
	}
	return taken
}

func (l *definitionLoader) loadFile(path string) {
	place := path
	data, path, err := l.readContent(path)
	if l.bytes += len(data); err == nil && l.bytes > allFilesBytesMax {
		data, err = nil, fmt.Errorf("%w: the agent files have more than %d bytes together", ErrTooLarge, allFilesBytesMax)
	}
	if err != nil {
		l.addBroken(path, newUnreadAgent(path, &Problem{Path: path, Err: reasonWithoutPath(err)}))
		return
	}
	def, notes, err := Parse(path, data)
	def.Digest = ContentDigest(data)
	if errors.Is(err, errNoFrontMatter) {
		l.notes = append(l.notes, Note{Path: path, Text: "skipped: no front matter, so it is not an agent definition"})
		return
	}
	l.notes = append(l.notes, notes...)
	if err != nil {
		l.addBroken(path, newBrokenAgent(def, data, err))
		return
	}
	if l.isTaken(path, def.Name) {
		return
	}
	l.first[def.Name] = path
	if def.Disabled {
		l.notes = append(l.notes, Note{Path: path, Text: "skipped: its file disables it"})
		return
	}
	if def.LoopOptions.Require.Schema, err = answerSchema(path, def.KeyLine(schemaKey, ownKey), def.OutputSchema, func() (*os.Root, error) { return l.openDirOf(place) }); err != nil {
		l.problems = append(l.problems, &brokenAgent{names: []string{def.Name}, problems: []error{err}})
		return
	}
	l.defs = append(l.defs, def)
}

// readFile reads a file that Parse may accept.
func readFile(path string) ([]byte, error) { return safefile.Read(path, FileBytesMax) }

// reasonWithoutPath returns why a file is not read, without its path, which a Problem contains.
func reasonWithoutPath(err error) error {
	err = safefile.WithoutName(err)
	if errors.Is(err, safefile.ErrTooLarge) {
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return err
}

// ContentDigest returns the identity of a file's content.
func ContentDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
