package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// plan is what one run of the benchmark measures.
type plan struct {
	workloads []workload
	columns   []column
	rounds    int
	least     time.Duration          // of one measurement
	profiles  string                 // directory; "": none
	only      func(w, c string) bool // reports whether a column is measured in a workload
	troupe    string                 // the program, for newProcess
	progress  io.Writer
}

// cell identifies one number of the table.
type cell struct {
	workload, column string
	figure           figure
}

// results are the samples of all rounds.
type results map[cell][]float64

// measureInto adds a sample of each workload in each column once a round, so that what else the
// machine does falls on all columns alike.
func (p plan) measureInto(all results) error {
	server, err := startModelServer()
	if err != nil {
		return err
	}
	defer server.stop()
	if slices.ContainsFunc(p.workloads, func(w workload) bool { return w.shape == newProcess && p.only(w.name, columnEntry) }) {
		dir, err := os.MkdirTemp("", "troupe-bench-")
		if err != nil {
			return fmt.Errorf("bench: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }() // holds only what was built
		if p.troupe, err = buildTroupe(dir); err != nil {
			return err
		}
	}
	for round := range p.rounds {
		for _, w := range p.workloads {
			for _, c := range p.columns {
				if !c.supports(w) || !p.only(w.name, c.name) {
					continue
				}
				began := time.Now()
				s, err := p.measureInChild(w, c, server.url)
				if err != nil {
					return fmt.Errorf("%s in %s: %w", w.name, c.name, err)
				}
				for _, f := range w.figures {
					key := cell{w.name, c.name, f}
					all[key] = append(all[key], s[f])
				}
				fmt.Fprintf(p.progress, "round %d/%d %-14s %-17s %6.1f s\n", round+1, p.rounds, w.name, c.name, time.Since(began).Seconds())
			}
		}
	}
	return nil
}

// errChild: a measurement failed in its process.
var errChild = errors.New("bench: the measurement failed")

// measureInChild measures in a process of its own, so that no column inherits the heap, the
// goroutines or the connections of another.
func (p plan) measureInChild(w workload, c column, server string) (sample, error) {
	scratch, err := os.MkdirTemp("", "troupe-bench-")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }() // the figures are taken
	if w.shape == newProcess {
		return p.measureFirst(c, scratch)
	}
	child, err := selfCommand("-child", w.name+"/"+c.name, "-duration", p.least.String(), "-scratch", scratch, "-server", server, "-profiles", p.profiles)
	if err != nil {
		return nil, err
	}
	child.Env = append(os.Environ(), "TMPDIR="+scratch)
	var out, notes bytes.Buffer
	child.Stdout, child.Stderr = &out, &notes
	if err := child.Run(); err != nil {
		return nil, fmt.Errorf("%w: %w\n%s", errChild, err, notes.String())
	}
	var s sample
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		return nil, fmt.Errorf("%w: %w: %s", errChild, err, out.String())
	}
	return s, nil
}

// runChild is a measurement in its own process.
func runChild(name, server, scratch, profiles string, least time.Duration) error {
	work, col, _ := strings.Cut(name, "/")
	w, err := findWorkload(work)
	if err != nil {
		return err
	}
	c, err := findColumn(col)
	if err != nil {
		return err
	}
	played, err := parseScript(w.script)
	if err != nil {
		return err
	}
	s := setup{script: played, store: w.store, dir: scratch, agents: w.agents}
	if w.http {
		s.url = server
	}
	taken, err := measure(w, c, s, least, &profiler{dir: profiles, name: w.name + "-" + c.name})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(taken)
}

// selfCommand is this program with other arguments.
func selfCommand(args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return exec.Command(self, args...), nil
}

// modelServer is the process of serveModel.
type modelServer struct {
	url   string
	stdin io.Closer
	cmd   *exec.Cmd
}

func startModelServer() (*modelServer, error) {
	cmd, err := selfCommand("-serve")
	if err != nil {
		return nil, err
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("bench: model server: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("bench: model server: %w", err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: model server: %w", err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	s := &modelServer{url: strings.TrimSpace(line), stdin: stdin, cmd: cmd}
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("bench: model server: %w", err)
	}
	return s, nil
}

func (s *modelServer) stop() {
	_ = s.stdin.Close() // the server ends when its standard input does
	_ = s.cmd.Wait()    // how it ended says nothing about the figures
}

// selectNamed returns the entries of all that a list of names selects, in the order of all. An
// empty list selects those that byDefault reports.
func selectNamed[T any](all []T, nameOf func(T) string, byDefault func(T) bool, list string, unknown error) ([]T, error) {
	var selected []T
	if list == "" {
		for _, v := range all {
			if byDefault(v) {
				selected = append(selected, v)
			}
		}
		return selected, nil
	}
	for _, name := range strings.Split(list, ",") {
		i := slices.IndexFunc(all, func(v T) bool { return nameOf(v) == name })
		if i < 0 {
			return nil, fmt.Errorf("%w %q", unknown, name)
		}
		selected = append(selected, all[i])
	}
	return selected, nil
}

// profileDir makes the directory of the profiles.
func profileDir(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	return filepath.Abs(dir)
}
