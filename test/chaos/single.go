package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/troupe-run/troupe/client"
)

// killedRun is one killed run.
type killedRun struct {
	killed   time.Duration
	last     string // the last entry before the resume
	outcome  string
	expected int
	counted  int
	doubles  int
	problem  string
}

func runKills(o options) error { return inTestDir(o, playKills) }

func playKills(o options, p *provider, dir string, whole time.Duration) error {
	fmt.Printf("seed %d; a run that nobody kills takes %v\n", o.seed, whole.Round(time.Millisecond))
	fmt.Println("  # | killed at | last entry                     | outcome       | ledger | doubles | problem")
	random := rand.New(rand.NewPCG(o.seed, 0))
	completed, doubles, problems := 0, 0, 0
	verified := &verifiedRuns{keep: o.keptRuns(dir)}
	for i := range o.kills {
		at := time.Duration(random.Int64N(int64(whole)))
		r := killOne(o, p, filepath.Join(dir, fmt.Sprintf("run%d", i)), at, verified)
		fmt.Printf("%3d | %9v | %-30s | %-13s | %2d/%-3d | %7d | %s\n", i+1, r.killed.Round(time.Millisecond), r.last, r.outcome,
			r.counted, r.expected, r.doubles, r.problem)
		if r.outcome == "completed" {
			completed++
		}
		if r.problem != "" {
			problems++
		}
		doubles += r.doubles
	}
	p.mu.Lock()
	bad := len(p.bad)
	p.mu.Unlock()
	fmt.Println(verified)
	fmt.Printf("%d kills: %d completed, %d doubles, %d problems; %d requests, %d malformed\n", o.kills, completed, doubles, problems, p.requests, bad)
	if o.control {
		if doubles == 0 {
			return fmt.Errorf("the control found no double: this test cannot see any")
		}
		return nil
	}
	if doubles+problems+bad > 0 {
		return fmt.Errorf("a promise was broken: %v", p.bad)
	}
	return nil
}

// inTestDir runs a scenario in a directory of its own, with a built program, a provider for its
// models, and the duration of a run that is left in peace. The directory is removed unless
// the options keep it or the scenario fails.
func inTestDir(o options, execute func(o options, p *provider, dir string, whole time.Duration) error) (err error) {
	dir, err := os.MkdirTemp("", "troupe-chaos-")
	if err != nil {
		return err
	}
	defer cleanOnSignal(dir, o.keep)()
	defer func() {
		if o.keep || err != nil {
			fmt.Println("kept:", dir)
			return
		}
		err = os.RemoveAll(dir)
	}()
	if o.troupe, err = givenOrBuilt(o.troupe, dir, "troupe", "cli"); err != nil {
		return err
	}
	p := newProvider(o.turns)
	defer p.Close()
	whole, err := measureRun(o, p, filepath.Join(dir, "whole"))
	if err != nil {
		return err
	}
	return execute(o, p, dir, whole)
}

// givenOrBuilt is the given binary, or one built in dir.
func givenOrBuilt(given, dir, name, from string, flags ...string) (string, error) {
	return buildCommand(given, dir, name, "github.com/troupe-run/troupe/cmd/"+from, flags...)
}

// buildCommand builds any command of the module or of its dependencies.
func buildCommand(given, dir, name, path string, flags ...string) (string, error) {
	if given != "" {
		return given, nil
	}
	bin := filepath.Join(dir, name)
	args := append(append([]string{"build"}, flags...), "-o", bin, path)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return bin, nil
}

// testDir is the directory, the agent files and the ledger of a scenario.
type testDir struct {
	dir, ledger, run string
	o                options
	url              string
}

// How long the tool works. In the control it must be long enough that some kills hit it: only then
// can an effect happen twice.
const (
	toolTime    = 10 * time.Millisecond
	clusterTime = 100 * time.Millisecond
	controlTime = 150 * time.Millisecond
	// In a cluster a kill hits one of many runs at random, and not at a chosen entry.
	clusterControlTime = 600 * time.Millisecond
)

func newTestDir(o options, p *provider, dir string) (testDir, error) {
	s := testDir{dir: dir, ledger: filepath.Join(dir, "ledger"), run: client.NewID(), o: o, url: p.URL}
	for _, place := range []string{s.agentsDir(), s.workDir()} {
		if err := os.MkdirAll(place, 0o755); err != nil {
			return s, err
		}
	}
	return s, s.writeAgents()
}

// workDir is where runs write. Everything else is outside of it: a run must not reach files that
// define commands, nor the state of the nodes.
func (s testDir) workDir() string { return filepath.Join(s.dir, "work") }

// agentsDir is where the agent files are. Nodes trust it.
func (s testDir) agentsDir() string { return filepath.Join(s.dir, "agents") }

// agentFile is one agent file.
func (s testDir) agentFile(name string) string { return filepath.Join(s.agentsDir(), name+".md") }

// caller is, in the command line of a tool, the process id of the node that called it. On Linux a
// keeper process is between the two.
const caller = "$(awk '/^PPid/{print $2}' /proc/$PPID/status 2>/dev/null || echo $PPID)"

// writeAgents writes the agent files.
func (s testDir) writeAgents() error {
	effect, work, struck := "effect", toolTime, ""
	if s.o.nodes > 0 {
		work, struck = clusterTime, s.struckFrom()
	}
	if s.o.control {
		effect, work = "idempotent", controlTime
		if s.o.nodes > 0 {
			work = clusterControlTime
		}
	}
	for name, delegates := range map[string]string{"boss": "[helper]", "helper": "[]"} {
		file := fmt.Sprintf(`---
name: %s
description: counts
tools: count, delegate, ask_human
x-troupe:
  delegates: %s
  tools:
    - name: count
      description: counts once
      effect: %s
      command: "%secho $TROUPE_KEY >> %s; %s sleep %.3f; echo counted"
      input_schema: {type: object, properties: {n: {type: integer}}}
---
You are %s. Count.
`, name, delegates, effect, s.noteCommand(), s.ledger, struck, work.Seconds(), name)
		if err := os.WriteFile(s.agentFile(name), []byte(file), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (s testDir) newCommand(args ...string) *exec.Cmd {
	return s.commandOf("run", args...)
}

// commandOf is a command of the CLI with the store of the directory.
func (s testDir) commandOf(verb string, args ...string) *exec.Cmd {
	all := append([]string{verb, "--store-dir", filepath.Join(s.dir, "state"), "-o", "json"}, args...)
	cmd := exec.Command(s.o.troupe, all...)
	cmd.Env = append(os.Environ(), "ANTHROPIC_BASE_URL="+s.url, "ANTHROPIC_API_KEY=none", "TROUPE_MODEL=", "NATS_URL=", "NATS_CONTEXT=")
	cmd.SysProcAttr = dieTogether()
	return cmd
}

func (s testDir) startRun() *exec.Cmd {
	return s.newCommand("--dir", s.workDir(), "--agents", s.agentsDir(), "--agent", "boss", "--run-id", s.run,
		"-m", "anthropic/double", "--max-tokens", "2000000", "count")
}

// measureRun runs once without a kill.
func measureRun(o options, p *provider, dir string) (time.Duration, error) {
	s, err := newTestDir(o, p, dir)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	out, err := s.startRun().CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("a run without a kill: %w\n%s", err, out)
	}
	return time.Since(began), nil
}

// resumeTimeout is how long a resumed run may take.
const resumeTimeout = 60 * time.Second

// killOne kills one run and resumes it.
func killOne(o options, p *provider, dir string, at time.Duration, verified *verifiedRuns) (r killedRun) {
	r.killed, r.expected = at, o.turns-1+4
	s, err := newTestDir(o, p, dir)
	if err != nil {
		r.problem = err.Error()
		return r
	}
	cmd := s.startRun()
	if err := cmd.Start(); err != nil {
		r.problem = err.Error()
		return r
	}
	time.Sleep(at)
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended already
	_ = cmd.Wait()
	entries, err := readLogs(s)
	if err != nil {
		r.problem = "logs: " + err.Error()
		return r
	}
	r.last = entries.lastEntry()
	if !entries.isOpened() {
		// Nothing was accepted before the kill: the client repeats the request with the same id.
		cmd = s.startRun()
	} else {
		cmd = s.newCommand("--dir", s.workDir(), "--agents", s.agentsDir(), "--resume", s.run)
	}
	ctx, cancel := context.WithTimeout(context.Background(), resumeTimeout)
	defer cancel()
	reason, problem := awaitResult(ctx, cmd)
	r.outcome, r.problem = reason, problem
	r.counted, r.doubles = s.countLedger()
	if r.problem == "" {
		r.problem = s.describeProblem(r)
	}
	problems, err := verified.judgeStored(s)
	if err != nil {
		problems = append(problems, "logs: "+err.Error())
	}
	r.problem = strings.Join(append(slices.DeleteFunc([]string{r.problem}, func(p string) bool { return p == "" }), problems...), "; ")
	return r
}

// awaitResult waits for the one result of the resumed run.
func awaitResult(ctx context.Context, cmd *exec.Cmd) (reason, problem string) {
	type answer struct {
		out []byte
		err error
	}
	done := make(chan answer, 1)
	go func() {
		out, err := cmd.Output()
		done <- answer{out, err}
	}()
	var a answer
	select {
	case a = <-done:
	case <-ctx.Done():
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		return "hung", "no result after the resume"
	}
	var result struct {
		Reason string `json:"stop_reason"`
	}
	if err := json.Unmarshal(a.out, &result); err != nil {
		stderr := ""
		if exit, ok := a.err.(*exec.ExitError); ok {
			stderr = string(exit.Stderr)
		}
		return "none", fmt.Sprintf("no result: %v %q %s", a.err, a.out, stderr)
	}
	return result.Reason, ""
}

// countLedger reads the ledger: its lines, and the keys that it has twice.
func (s testDir) countLedger() (lines, doubles int) {
	data, err := os.ReadFile(s.ledger)
	if err != nil {
		return 0, 0
	}
	seen := map[string]int{}
	for _, key := range strings.Fields(string(data)) {
		lines++
		if seen[key]++; seen[key] > 1 {
			doubles++
		}
	}
	return lines, doubles
}

// describeProblem describes the problem with the end of a run; "" means that there is none.
func (s testDir) describeProblem(r killedRun) string {
	switch r.outcome {
	case "completed":
		if r.counted != r.expected && !s.o.control {
			return fmt.Sprintf("completed with %d of %d effects", r.counted, r.expected)
		}
		return ""
	case "needs_human", "resume_unsafe":
		entries, err := readLogs(s)
		if err != nil {
			return "logs: " + err.Error()
		}
		if !entries.hasUnknown() {
			return "asks for a person, and no call was started without a return"
		}
		return ""
	}
	return "unexpected end"
}
