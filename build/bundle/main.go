// Command bundle makes the files of the page from their sources: it installs the packages of web/package-lock.json
// with npm, checks the types, and writes one script and one style sheet. With -check it compares instead.
//
//	go run -C build ./bundle [-check] UI
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// bundled are the packages of npm whose code is part of the script.
var bundled = []string{"preact", "uplot"}

var errStale = errors.New("is not what its sources make: run `make page` and commit it")

func main() {
	check := flag.Bool("check", false, "compare, write nothing")
	flag.Parse()
	if err := run(flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(ui string, check bool) error {
	web := filepath.Join(ui, "web")
	for _, args := range [][]string{{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"}, {"node", "node_modules/typescript/bin/tsc", "-p", "."}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = web, os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
		}
	}
	files, err := bundle(web)
	if err != nil {
		return err
	}
	for name, want := range files {
		path := filepath.Join(ui, "assets", name)
		if !check {
			err = errors.Join(err, os.WriteFile(path, want, 0o644))
			continue
		}
		if got, readErr := os.ReadFile(path); readErr != nil || !bytes.Equal(got, want) {
			err = errors.Join(err, fmt.Errorf("%s %w", path, errStale))
		}
	}
	return err
}

// bundle returns the files of the page by their names.
func bundle(web string) (map[string][]byte, error) {
	abs, err := filepath.Abs(web)
	if err != nil {
		return nil, err
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: abs,
		EntryPoints:   []string{"src/main.tsx", "src/main.css"},
		Outdir:        "out", EntryNames: "page",
		Bundle: true, MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		Target: api.ES2022, Charset: api.CharsetASCII, LegalComments: api.LegalCommentsNone,
		JSX: api.JSXAutomatic, JSXImportSource: "preact",
		LogLevel: api.LogLevelWarning,
	})
	if len(result.Errors) > 0 {
		return nil, errors.New("esbuild: " + result.Errors[0].Text)
	}
	files := map[string][]byte{}
	for _, f := range result.OutputFiles {
		files[filepath.Base(f.Path)] = f.Contents
	}
	if files["index.html"], err = os.ReadFile(filepath.Join(web, "src/index.html")); err != nil {
		return nil, err
	}
	var terms bytes.Buffer
	for _, name := range bundled {
		text, err := os.ReadFile(filepath.Join(web, "node_modules", name, "LICENSE"))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&terms, "%s (npm), part of the page:\n\n%s\n\n", name, strings.TrimSpace(string(text)))
	}
	files["LICENSES.txt"] = terms.Bytes()
	return files, nil
}
