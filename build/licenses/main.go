// Command licenses writes, or with -check compares, what the module graph of the
// binaries asks for: THIRD_PARTY_LICENSES, the texts that have to be shipped with them,
// and .ci/modules.txt, the modules that are linked, for a look at their advisories
// where no database can be asked. It reads the module cache and no network.
//
//	go run -C build ./licenses [-check] ROOT
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Files that are written, below the root.
const (
	textsFile   = "THIRD_PARTY_LICENSES"
	modulesFile = ".ci/modules.txt"
	// pageTextsFile has the terms of what the page of a node contains; build/bundle writes it.
	pageTextsFile = "internal/ui/assets/LICENSES.txt"
)

// systems are those the binaries are built for.
var systems = []string{"linux", "darwin", "windows"}

var binaries = []string{"./cmd/cli", "./cmd/node"}

// texts are the names of files with terms.
var texts = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-._].*)?$`)

var errStale = errors.New("is not what the module graph asks for: run `make licenses` and commit it")

func main() {
	check := flag.Bool("check", false, "compare, write nothing")
	flag.Parse()
	if err := run(flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	modules, err := linked(root)
	if err != nil {
		return err
	}
	all, err := terms(modules)
	if err != nil {
		return err
	}
	page, err := os.ReadFile(filepath.Join(root, pageTextsFile))
	if err != nil {
		return err
	}
	all = strings.TrimRight(all, "\n") + "\n\n" + string(page)
	var list strings.Builder
	for _, m := range modules {
		fmt.Fprintf(&list, "%s %s\n", m.path, m.version)
	}
	head := fmt.Sprintf("# The modules linked into the binaries, recorded %s.\n", time.Now().UTC().Format(time.DateOnly))
	return errors.Join(keep(filepath.Join(root, textsFile), all, check), keep(filepath.Join(root, modulesFile), head+list.String(), check))
}

// keep writes a file, or compares it without its comments.
func keep(path, want string, check bool) error {
	if !check {
		return os.WriteFile(path, []byte(want), 0o644)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if body(string(got)) != body(want) {
		return fmt.Errorf("%s %w", path, errStale)
	}
	return nil
}

func body(text string) string {
	if strings.HasPrefix(text, "# ") {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

type module struct{ path, version, dir string }

// linked returns the modules that have a package in a binary, Go's own library first.
func linked(root string) ([]module, error) {
	goroot, err := goTool(root, "", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	seen := map[module]bool{}
	for _, system := range systems {
		out, err := goTool(root, system, append([]string{"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}"}, binaries...)...)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(out) {
			if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 3 {
				seen[module{f[0], f[1], f[2]}] = true
			}
		}
	}
	list := []module{{"std", "the Go standard library", strings.TrimSpace(goroot)}}
	for m := range seen {
		list = append(list, m)
	}
	slices.SortFunc(list[1:], func(a, b module) int { return strings.Compare(a.path, b.path) })
	return list, nil
}

func goTool(dir, system string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH=")
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, wrong.String())
	}
	return string(out), nil
}

// terms joins the texts of all modules; a text that several have stands once.
func terms(modules []module) (string, error) {
	var order []string
	users := map[string][]string{}
	for _, m := range modules {
		entries, err := fs.ReadDir(os.DirFS(m.dir), ".")
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.path, err)
		}
		found := false
		for _, e := range entries {
			if e.IsDir() || !texts.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			data, err := os.ReadFile(filepath.Join(m.dir, e.Name()))
			if err != nil {
				return "", fmt.Errorf("%s: %w", m.path, err)
			}
			found = true
			text := strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n"))
			if users[text] == nil {
				order = append(order, text)
			}
			users[text] = append(users[text], fmt.Sprintf("%s %s (%s)", m.path, m.version, e.Name()))
		}
		if !found {
			return "", fmt.Errorf("%s %s has no license in its root: it must not be shipped as it is", m.path, m.version)
		}
	}
	var b strings.Builder
	b.WriteString("Software of others that is part of the binaries troupe and troupe-node, and its terms.\nMade by build/licenses from the module graph.\n")
	for _, text := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(users[text], "\n"), text)
	}
	return b.String(), nil
}
