package mcpclient

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/safefile"
)

// ScriptBytesMax is the most that is read of one file that a command names.
const ScriptBytesMax = 256 << 20

// endings are the suffixes that interpreters add to the name of a script.
var endings = []string{"", ".js", ".mjs", ".cjs", ".ts", ".py", "/index.js", "/index.mjs", "/package.json", "/__main__.py"}

// implied are files that programs read where they are started.
var implied = map[string][]string{"npm": {"package.json", ".npmrc"}, "npx": {"package.json", ".npmrc"}, "pnpm": {"package.json", ".npmrc"}, "yarn": {"package.json", ".yarnrc.yml"},
	"bun": {"package.json", "bunfig.toml"}, "bunx": {"package.json", "bunfig.toml"}, "deno": {"deno.json"}, "make": {"GNUmakefile", "makefile", "Makefile"}, "uv": {"pyproject.toml", "uv.toml"}, "uvx": {"pyproject.toml", "uv.toml"}}

// loaders are variables whose values are code for programs, whatever it is called.
var loaders = []string{"LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "ENV", "NODE_OPTIONS", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT", "JAVA_TOOL_OPTIONS"}

// codeForm is the name of a file of code within a text.
var codeForm = lazyregexp.New(`\.(?:[mc]?[jt]s|py|sh|bash|rb|pl|php|lua|so|dylib|jar|wasm)\b`)

// NamedFiles returns the regular files that the command of a server names by a path, with the
// SHA-256 of each: a change of one of them changes what runs. Files that these load
// in turn are not included. dir is where the server runs if it does not set a directory.
func (s Server) NamedFiles(dir string, getenv func(string) string) (map[string]string, error) {
	if s.URL != "" {
		return nil, nil
	}
	if full, err := s.expandVariables(getenv); err == nil { // without its variables it does not start
		s = full
	}
	if s.Dir != "" {
		dir = s.Dir
	}
	files := map[string]string{}
	for _, name := range s.candidatePaths() {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if _, known := files[name]; known {
			continue
		}
		switch sum, err := digestOf(name); {
		case errors.Is(err, safefile.ErrTooLarge):
			return nil, fmt.Errorf("%w: %s: a file that its command names has more than %d bytes, and cannot be pinned", ErrConfig, s.Name, int64(ScriptBytesMax))
		case err == nil:
			files[name] = sum
		}
	}
	return files, nil
}

// candidatePaths are the words that may be paths of files.
func (s Server) candidatePaths() []string {
	var words []string
	texts := slices.Clone(s.Args)
	if strings.ContainsRune(s.Command, '/') || strings.ContainsRune(s.Command, filepath.Separator) {
		texts = append(texts, s.Command)
	}
	for name, v := range s.Env { // others name data, which a server may write itself
		if code := codeForm.MatchString(v); code || slices.Contains(loaders, name) {
			texts = append(texts, v)
		}
	}
	separates := func(r rune) bool { return strings.ContainsRune(" \t\n\"'`;|&<>()=,:$", r) }
	for _, text := range texts {
		words = append(words, text)
		words = append(words, strings.FieldsFunc(text, separates)...)
	}
	if i := slices.Index(s.Args, "-m"); i >= 0 && i+1 < len(s.Args) { // python -m a.b
		words = append(words, strings.ReplaceAll(s.Args[i+1], ".", "/"))
	}
	var list []string
	for _, w := range words {
		if w == "" || w == "/" || strings.ContainsRune(w, 0) {
			continue
		}
		for _, end := range endings {
			list = append(list, w+end)
		}
	}
	return append(list, implied[filepath.Base(s.Command)]...)
}

func digestOf(path string) (string, error) {
	f, info, err := safefile.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	if info.Size() > ScriptBytesMax {
		return "", safefile.ErrTooLarge
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(f, ScriptBytesMax)); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// checkUnchanged checks, right before a start, that the files are those that were
// allowed.
func (s Server) checkUnchanged(dir string, getenv func(string) string) error {
	if s.Own || s.Files == nil {
		return nil
	}
	now, err := s.NamedFiles(dir, getenv)
	if err != nil {
		return err
	}
	if path := firstDifference(s.Files, now); path != "" {
		return fmt.Errorf("%w: the file %s that the server %s runs has changed; `%s` allows what there is now", ErrChanged, path, s.Name, s.Remedy("allow"))
	}
	return nil
}

// firstDifference returns a path whose content differs between the two; "" if there is none.
func firstDifference(a, b map[string]string) string {
	for _, m := range []map[string]string{a, b} {
		for path := range m {
			if a[path] != b[path] {
				return path
			}
		}
	}
	return ""
}
