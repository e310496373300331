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
	"sync"
	"syscall"
	"time"
)

// Runs of this scenario may work for absenceLimit. They are left alone for longer than that
// plus the minute of grace in which a run sums up; a frozen run for another minute, because a
// timer may be late on a busy machine.
const (
	absenceLimit  = 5 * time.Second
	killedAbsence = absenceLimit + 70*time.Second
	frozenAbsence = killedAbsence + 60*time.Second
)

// absence is one way in which no process works on a run.
type absence struct {
	name   string
	parked bool // a child of it waits for the user meanwhile
	leave  func(group int) error
	away   time.Duration
	back   func(group int) error // nil: its process has ended
}

func drawAbsences() []absence {
	signal := func(s syscall.Signal) func(int) error {
		return func(group int) error { return syscall.Kill(-group, s) }
	}
	return []absence{
		{name: "killed at work", leave: signal(syscall.SIGKILL), away: killedAbsence},
		{name: "frozen at work", leave: signal(syscall.SIGSTOP), away: frozenAbsence, back: signal(syscall.SIGCONT)},
		{name: "a child asks, no node", parked: true, away: killedAbsence},
	}
}

// runAbsences leaves runs alone for longer than they may work: o.absences of each kind, all at
// the same time. Their limits count time at work, so each must complete afterwards, or ask the
// user about a call that the kill interrupted.
func runAbsences(o options) error { return inTestDir(o, playAbsences) }

func playAbsences(o options, p *provider, dir string, whole time.Duration) error {
	fmt.Printf("seed %d; a run that is not left alone takes %v; each may work for %v\n", o.seed, whole.Round(time.Millisecond), absenceLimit)
	fmt.Println("  # | what was done         | for      | outcome       | problem")
	rows := leaveAlone(o, p, dir, whole)
	ends, problems, atWork := map[string]int{}, 0, 0
	for i, r := range rows {
		if kinds := drawAbsences(); !kinds[i%len(kinds)].parked {
			atWork++
		}
		fmt.Printf("%3d | %-21s | %-8v | %-13s | %s\n", i+1, r.last, r.killed.Round(time.Second), r.outcome, r.problem)
		ends[r.outcome]++
		if r.problem != "" || r.doubles > 0 {
			problems++
		}
	}
	fmt.Printf("%d runs left alone: %v, %d problems\n", len(rows), ends, problems)
	switch {
	case o.control && problems < atWork:
		return fmt.Errorf("the control ended %d runs by their limit, and %d work longer than it: the others could not be seen", problems, atWork)
	case o.control:
		return nil
	case problems > 0:
		return errBroken
	}
	return nil
}

// leaveAlone runs all of them at the same time.
func leaveAlone(o options, p *provider, dir string, whole time.Duration) []killedRun {
	kinds := drawAbsences()
	rows := make([]killedRun, o.absences*len(kinds))
	var all sync.WaitGroup
	for i := range rows {
		random := rand.New(rand.NewPCG(o.seed, uint64(i)))
		at := time.Duration(random.Int64N(int64(whole)))
		all.Go(func() {
			rows[i] = absentOne(o, p, filepath.Join(dir, fmt.Sprintf("run%d", i)), kinds[i%len(kinds)], at)
		})
	}
	all.Wait()
	return rows
}

// asking is a model whose child asks the user.
const asking = `agents:
  boss: [{calls: [{name: delegate, args: {agent: helper, task: ask}}]}, {text: "{{last}}"}]
  helper: [{calls: [{name: ask_human, args: {question: "Red?"}}]}, {text: "{{last}}"}]
`

// absentOne starts one run, leaves it alone and waits for its end.
func absentOne(o options, p *provider, dir string, kind absence, at time.Duration) (r killedRun) {
	r.last, r.killed = kind.name, kind.away
	limit := absenceLimit
	if o.control {
		limit = time.Millisecond // those at work need more than that
	}
	s, err := newTestDir(o, p, dir)
	if err != nil {
		r.problem = err.Error()
		return r
	}
	model := "anthropic/double"
	if kind.parked {
		script := filepath.Join(s.agentsDir(), "asking.yaml")
		if err := os.WriteFile(script, []byte(asking), 0o600); err != nil {
			r.problem = err.Error()
			return r
		}
		model = "script/" + script
	}
	begin := func() *exec.Cmd {
		return s.newCommand("--dir", s.workDir(), "--agents", s.agentsDir(), "--agent", "boss", "--run-id", s.run, "-m", model,
			"--max-tokens", "2000000", "--timeout", limit.String(), "count")
	}
	cmd := begin()
	if kind.parked {
		outcome, problem := awaitResult(context.Background(), cmd)
		if r.outcome = outcome; outcome != "needs_human" {
			r.problem = "it was to ask a person: " + problem
			return r
		}
		time.Sleep(kind.away)
		if r.problem = s.answerOnly(); r.problem != "" {
			return r
		}
		return s.resumeRun(r, begin)
	}
	if err := cmd.Start(); err != nil {
		r.problem = err.Error()
		return r
	}
	time.Sleep(at)
	err = kind.leave(cmd.Process.Pid)
	time.Sleep(kind.away)
	if kind.back != nil && err == nil {
		err = kind.back(cmd.Process.Pid)
	}
	if err != nil && err != syscall.ESRCH { // it may have ended before it was left
		r.problem = err.Error()
	}
	_ = cmd.Wait() // its store tells how it ended
	return s.resumeRun(r, begin)
}

// answerOnly answers the one question that is open in a store.
func (s testDir) answerOnly() (problem string) {
	var open []struct {
		Query string `json:"query"`
	}
	out, err := s.commandOf("questions").Output()
	if err == nil {
		err = json.Unmarshal(out, &open)
	}
	if err != nil || len(open) != 1 {
		return fmt.Sprintf("questions: %v: %s", err, out)
	}
	if out, err := s.commandOf("answer", s.run, open[0].Query, "blue").CombinedOutput(); err != nil {
		return fmt.Sprintf("answer: %v: %s", err, out)
	}
	return ""
}

// resumeRun resumes a run, or starts it if it was not accepted, and returns how it ends.
func (s testDir) resumeRun(r killedRun, begin func() *exec.Cmd) killedRun {
	if r.problem != "" {
		return r
	}
	entries, err := readLogs(s)
	if err != nil {
		r.problem = "logs: " + err.Error()
		return r
	}
	cmd := s.newCommand("--dir", s.workDir(), "--agents", s.agentsDir(), "--resume", s.run)
	if !entries.isOpened() {
		cmd = begin()
	}
	ctx, cancel := context.WithTimeout(context.Background(), resumeTimeout)
	defer cancel()
	r.outcome, r.problem = awaitResult(ctx, cmd)
	_, r.doubles = s.countLedger()
	if r.problem == "" && !slices.Contains([]string{"completed", "needs_human", "resume_unsafe"}, r.outcome) {
		r.problem = "its limits counted the time without work"
	}
	return r
}
