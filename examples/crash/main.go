// Package main shows what a run survives: its process is killed in the middle,
// another one takes the run up from its logs, and the tool that has a side
// effect ran once.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/supervisor"
)

// replies: the answer after the tool takes as long as it is told to.
const replies = `{agents: {clerk: [{calls: [{name: count}]}, {text: "the tool said: {{last}}", delay: %s}]}}`

// stateEnv tells the process that is going to die where to work.
const stateEnv = "CRASH_STATE_DIR"

func main() {
	err := error(nil)
	if dir := os.Getenv(stateEnv); dir != "" {
		err = life1(dir)
	} else {
		err = twice()
	}
	if err != nil {
		log.Fatal(err)
	}
}

// life1 says when the tool has run, and then waits for an answer that never comes.
func life1(dir string) error {
	node, err := open(dir, "1h", func(e life.Event) {
		if e.Kind == "tool.finished" {
			fmt.Println(e.Kind)
		}
	}, nil)
	if err != nil {
		return err
	}
	if err := node.Open(context.Background(), node.run); err != nil {
		return err
	}
	select {}
}

// twice kills the first process and goes on in this one.
func twice() error {
	dir, err := os.MkdirTemp("", "crash")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	first := exec.Command(os.Args[0])
	first.Env, first.Stderr = append(os.Environ(), stateEnv+"="+dir), os.Stderr
	out, err := first.StdoutPipe()
	if err != nil {
		return err
	}
	if err := errors.Join(first.Start(), heard(out, "tool.finished"), first.Process.Kill()); err != nil {
		return err
	}
	fmt.Println("the first process:", first.Wait())

	over := make(chan supervisor.Result, 1)
	node, err := open(dir, "0s", nil, func(_ string, r supervisor.Result) { over <- r })
	if err != nil {
		return err
	}
	defer node.close()
	if err := node.Resume(context.Background(), node.run.Run); err != nil {
		return err
	}
	r := <-over
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	fmt.Printf("%s: %s\nthe tool ran %d time(s)\n", r.Reason, r.Text, strings.Count(string(calls), "\n"))
	return err
}
