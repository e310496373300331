package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// trial tries mutants on one tree.
type trial struct {
	root, dir string // of the module, and for overlays and binaries
	judge     string // the test that has to notice
	seeds     int
	sites     map[string]*site
	shared    *switched
}

type verdict struct {
	mutant Mutant
	seed   string // that killed it
	why    string
	took   time.Duration
	err    error // it could not be tried
}

// sharedProgram is the name of the binary of all mutants that share one.
const sharedProgram = "shared"

// buildShared builds the program of all mutants that can share one, if there are several.
func (t *trial) buildShared(mutants []Mutant) error {
	if len(mutants) < 2 {
		return nil
	}
	for _, m := range mutants {
		if len(m.Edits) == 0 || len(noticedBy[m.Name]) > 0 {
			continue
		}
		if _, err := t.shared.add(m, t.sites); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	if len(t.shared.names) == 0 {
		return nil
	}
	texts, err := t.shared.texts()
	if err == nil {
		err = t.build(sharedProgram, texts)
	}
	if err != nil {
		return fmt.Errorf("build the program of %d mutants (TestPatchesApply names one that does not compile): %w", len(t.shared.names), err)
	}
	return nil
}

// build compiles the simulator with changed files.
func (t *trial) build(name string, texts map[string][]byte) error {
	dir := filepath.Join(t.dir, name)
	overlay, err := writeOverlay(t.root, dir, texts)
	if err != nil {
		return err
	}
	build := exec.Command("go", "test", "-c", "-ldflags=-s -w", "-overlay", overlay, "-o", t.program(name), "./test/sim")
	build.Dir = t.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("it does not compile: %w\n%s", err, out)
	}
	return nil
}

func (t *trial) program(name string) string { return filepath.Join(t.dir, name, "sim.test") }

// try plays seeds with one mutant until one fails.
func (t *trial) try(m Mutant) (v verdict) {
	v.mutant = m
	begin := time.Now()
	defer func() { v.took = time.Since(begin) }()
	dir := filepath.Join(t.dir, "of-"+m.Name)
	defer func() { v.err = errors.Join(v.err, os.RemoveAll(dir)) }()
	program := sharedProgram
	if !t.shared.names[m.Name] {
		program = filepath.Base(dir)
		texts, err := patch(m, t.sites)
		if err != nil {
			v.err = err
			return v
		}
		if tests := noticedBy[m.Name]; len(tests) > 0 {
			v.seed, v.err = t.askTests(dir, texts, tests)
			return v
		}
		if v.err = t.build(program, texts); v.err != nil {
			return v
		}
	}
	v.seed, v.why, v.err = t.play(dir, program, m.Name)
	return v
}

// prefixRuns is how many runs TestEveryPrefix cuts at each entry, where it is the judge.
const prefixRuns = "60"

// killed matches the line in which the simulator's test reports the failed seed.
var killed = regexp.MustCompile(`seed (\d+), (.*)`)

// play runs a program until a seed fails, and returns that seed with what is wrong, or nothing if all seeds pass.
func (t *trial) play(dir, program, mutant string) (seed, why string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", "", err
	}
	play := exec.Command(t.program(program), "-test.run", t.judge, "-test.failfast", "-sim.seeds", strconv.Itoa(t.seeds), "-sim.any", strconv.Itoa(t.seeds), "-sim.reach=false", "-sim.runs="+prefixRuns)
	play.Dir, play.Env = dir, append(os.Environ(), "TMPDIR="+dir, chosenMutant+"="+mutant)
	out, err := play.CombinedOutput()
	if err == nil {
		return "", "", nil
	}
	found := killed.FindSubmatch(out)
	if found == nil {
		return "", "", fmt.Errorf("the test failed without a seed: %w\n%s", err, out)
	}
	return string(found[1]), string(found[2]), nil
}

// askTests runs the tests that have to notice a mutant, and returns "tests" if each of them fails.
func (t *trial) askTests(dir string, texts map[string][]byte, tests []string) (string, error) {
	overlay, err := writeOverlay(t.root, dir, texts)
	if err != nil {
		return "", err
	}
	for _, named := range tests {
		folder, test, _ := strings.Cut(named, " ")
		var anchored []string
		for part := range strings.SplitSeq(test, "/") {
			anchored = append(anchored, "^"+part+"$")
		}
		cmd := exec.Command("go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-timeout", "5m", "-run", strings.Join(anchored, "/"), folder)
		cmd.Dir, cmd.Env = t.root, append(os.Environ(), "TMPDIR="+dir)
		out, err := cmd.CombinedOutput()
		if err == nil && strings.Contains(string(out), "no tests to run") {
			return "", fmt.Errorf("there is no test %s", named)
		}
		if err == nil {
			return "", nil
		}
		if !strings.Contains(string(out), "--- FAIL: "+test) {
			return "", fmt.Errorf("%s: %w\n%s", named, err, out)
		}
	}
	return "tests", nil
}
