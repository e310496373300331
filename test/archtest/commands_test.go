package archtest

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// testCommand is a command of a document, a script or a comment that selects tests by
// their names.
type testCommand struct {
	place    string // the file that holds it
	text     string
	packages []string
	patterns map[string][]string // of each flag
}

// selectors are the flags that select functions by name, each with the kinds of functions
// that it selects.
var selectors = map[string]*regexp.Regexp{
	"-run":      regexp.MustCompile(`^(Test|Example|Fuzz)`),
	"-test.run": regexp.MustCompile(`^(Test|Example|Fuzz)`),
	"-skip":     regexp.MustCompile(`^(Test|Example|Fuzz|Benchmark)`),
	"-bench":    regexp.MustCompile(`^Benchmark`),
	"-fuzz":     regexp.MustCompile(`^Fuzz`),
}

// noTest is the pattern that selects no test on purpose, to run benchmarks only.
const noTest = "^$"

// TestCommandsSelectTestsThatExist: `go test -run` passes if its pattern matches nothing,
// so a renamed test would silently drop out of CI, and a documented figure would have no
// command. Each alternative of a pattern must match a function of a named package, under
// whatever build tag.
func TestCommandsSelectTestsThatExist(t *testing.T) {
	sources := readSources(t)
	checked := 0
	for _, c := range testCommands(t, sources) {
		for flag, patterns := range c.patterns {
			for _, pattern := range patterns {
				for _, alternative := range alternatives(pattern) {
					checked++
					if alternative == noTest {
						continue
					}
					matches, err := regexp.Compile(alternative)
					if err != nil {
						t.Errorf("%s: %s %s of %q: %v", c.place, flag, alternative, c.text, err)
						continue
					}
					if !declares(sources, c.packages, selectors[flag], matches) {
						t.Errorf("%s: %s %s matches no function in %s: %s", c.place, flag, alternative, strings.Join(c.packages, " "), c.text)
					}
				}
			}
		}
	}
	if checked < 60 {
		t.Errorf("only %d patterns found: has the form of commands changed?", checked)
	}
}

// declares reports whether a test file of the packages has a function of the kind that the
// pattern matches.
func declares(sources []sourceFile, packages []string, kind, pattern *regexp.Regexp) bool {
	for _, f := range sources {
		if !f.test || !slices.ContainsFunc(packages, func(p string) bool { return isOfPackage(f.dir, p) }) {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Recv == nil && kind.MatchString(fn.Name.Name) && pattern.MatchString(fn.Name.Name) {
				return true
			}
		}
	}
	return false
}

// isOfPackage reports whether a folder is meant by an argument like ./actors or ./model/...
func isOfPackage(dir, argument string) bool {
	folder, below := strings.CutSuffix(argument, "...")
	folder = path.Clean(folder)
	return dir == folder || below && (folder == "." || strings.HasPrefix(dir, folder+"/"))
}

// alternatives splits a pattern for names of functions at each | that is in no nested
// parentheses. What follows a / selects subtests and is left out.
func alternatives(pattern string) []string {
	pattern, _, _ = strings.Cut(pattern, "/")
	if strings.Count(pattern, "(") == 1 {
		prefix, rest, _ := strings.Cut(pattern, "(")
		inner, suffix, closed := strings.Cut(rest, ")")
		if closed && !strings.ContainsAny(prefix+suffix, "|") {
			var all []string
			for _, a := range strings.Split(inner, "|") {
				all = append(all, prefix+a+suffix)
			}
			return all
		}
	}
	if strings.ContainsAny(pattern, "()") {
		return []string{pattern}
	}
	return strings.Split(pattern, "|")
}

// commandStart matches the beginning of a command that selects tests.
var commandStart = regexp.MustCompile("`?(go test |go run \\./test/sim/mutants )")

// binaryRun matches a test binary that a Go file starts, which is its own.
var binaryRun = regexp.MustCompile(`-test\.run(?:", "| '|=)([\w^$|()]+)`)

// testCommands returns the commands of the scripts, the documents and the Go files.
func testCommands(t *testing.T, sources []sourceFile) []testCommand {
	t.Helper()
	var all []testCommand
	for _, name := range documentsWithCommands(t) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, commandsOf(name, string(text))...)
	}
	for _, f := range sources {
		if f.dir == "test/archtest" {
			continue // its own examples
		}
		all = append(all, commandsOf(f.path, f.text)...)
		for _, m := range binaryRun.FindAllStringSubmatch(f.text, -1) {
			all = append(all, testCommand{place: f.path, text: m[0], packages: []string{f.dir}, patterns: map[string][]string{"-test.run": {m[1]}}})
		}
	}
	return all
}

// documentsWithCommands are the files that are no Go code and tell people or CI what to run.
func documentsWithCommands(t *testing.T) []string {
	t.Helper()
	names := []string{".ci/run", "Makefile"}
	for _, pattern := range []string{"*.md", "docs/*"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range found {
			rel, err := filepath.Rel(root, p)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, filepath.ToSlash(rel))
		}
	}
	return names
}

// commandsOf returns the commands of a text that select tests. A command between backticks
// ends at the second one, even on a later line; another ends with its line.
func commandsOf(place, text string) []testCommand {
	text = strings.NewReplacer("\\\n", " ", "$$", "$", `\|`, "|").Replace(text)
	var all []testCommand
	for {
		at := commandStart.FindStringIndex(text)
		if at == nil {
			return all
		}
		command := text[at[0]:]
		text = text[at[1]:]
		end := "\n"
		if command[0] == '`' {
			command, end = command[1:], "`"
		}
		command, _, _ = strings.Cut(command, end)
		if c := parseCommand(place, command); len(c.patterns) > 0 {
			all = append(all, c)
		}
	}
}

// parseCommand reads the packages and the patterns from the words of a command.
func parseCommand(place, command string) testCommand {
	c := testCommand{place: place, text: command, patterns: map[string][]string{}}
	words := shellWords(command)
	for i, w := range words {
		flag, value, joined := strings.Cut(w, "=")
		switch {
		case selectors[flag] != nil && joined:
			c.patterns[flag] = append(c.patterns[flag], value)
		case selectors[flag] != nil && i+1 < len(words):
			c.patterns[flag] = append(c.patterns[flag], words[i+1])
		case strings.HasPrefix(w, "./"), w == ".":
			c.packages = append(c.packages, w)
		}
	}
	if len(c.packages) == 1 && c.packages[0] == "./test/sim/mutants" && strings.HasPrefix(command, "go run") {
		c.packages[0] = "./test/sim" // whose test binary it runs
	}
	return c
}

// shellWords splits a command at blanks outside of quotes and ends it at an operator of the
// shell. Line starts of a comment are no words.
func shellWords(command string) []string {
	var words []string
	word, inWord, quote := "", false, rune(0)
	flush := func() {
		if inWord && word != "//" {
			words = append(words, word)
		}
		word, inWord = "", false
	}
	for _, r := range command {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == '|' || r == ';' || r == '&' || r == '`':
			flush()
			return words
		case r == ' ' || r == '\t' || r == '\n':
			flush()
		default:
			word, inWord = word+string(r), true
		}
	}
	flush()
	return words
}

// TestCommandsAreParsed shows the forms of commands that the rule reads.
func TestCommandsAreParsed(t *testing.T) {
	for text, want := range map[string]string{
		"go test ./a -run 'X|Y' -v | tail":                            "./a X,Y",
		"| a | `go test ./a ./b/... -run 'X\\|Y' -v` |":               "./a ./b/... X,Y",
		"x: ; go test ./a -run '^TestX$$' -count=1 && go test ./a -v": "./a ^TestX$",
		"// see `go test -count=1\n// ./a -run=X` for more":           "./a X",
		"go test . -run '^(A|B)$' \\\n  ./c":                          ". ./c ^A$,^B$",
		"go test ./a -run TestScripts/limits":                         "./a TestScripts",
	} {
		got := ""
		for _, c := range commandsOf("", text) {
			got = strings.Join(c.packages, " ")
			for _, patterns := range c.patterns {
				got += " " + strings.Join(alternatives(patterns[0]), ",")
			}
		}
		if got != want {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
}
