package agentfile

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// Bounds on the files that a CLAUDE.md imports; together with its own text they have at most GuideBytesMax.
const (
	importsMax     = 20
	importDepthMax = 5
)

// importForm matches an import of Claude Code: a path after an @ that begins a word.
var importForm = lazyregexp.New(`(?:^|[\s(])@((?:~/)?[\w./-]*\w)`)

// codeForm matches code, in which nothing is imported.
var codeForm = lazyregexp.New("(?s)```.*?(?:```|$)|`[^`\n]*`")

// addImports appends the files that a guide imports, each once: those within the tree of root. An @ before anything else
// is text, as in a user's name.
func (g *Guide) addImports(root *os.Root, file string) {
	seen := map[string]bool{filepath.ToSlash(file): true}
	var add func(text, from string, depth int)
	add = func(text, from string, depth int) {
		for _, m := range importForm.FindAllStringSubmatch(codeForm.ReplaceAllString(text, " "), -1) {
			name := path.Join(path.Dir(from), m[1])
			if below, ok := strings.CutPrefix(m[1], "~/.claude/"); ok && g.Own {
				name = path.Clean(below)
			}
			if seen[name] || len(seen) > importsMax || path.IsAbs(m[1]) || !filepath.IsLocal(filepath.FromSlash(name)) {
				continue
			}
			imported, err := readGuide(root, filepath.FromSlash(name))
			if err != nil {
				continue // no file, or one that may not be read: it stays text
			}
			seen[name] = true
			g.Imports = append(g.Imports, name)
			g.Text += "\n\n[" + name + "]\n" + imported.Text
			g.Size += imported.Size
			if depth < importDepthMax {
				add(imported.Text, name, depth+1)
			}
		}
	}
	add(g.Text, filepath.ToSlash(file), 1)
	*g = g.CutTo(GuideBytesMax)
}
