// Package main shows how a run survives a crash: its process is killed in the middle,
// another process resumes the run from its logs, and the tool that has a side
// effect ran once.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/node"
)

// clerk has a tool that leaves a trace each time it runs.
const clerk = `---
name: clerk
description: Counts.
x-troupe:
  tools: [{name: count, description: Count., command: "echo called >> calls; echo counted", effect: effect}]
---
agent: clerk`

// replies is the script: the answer after the tool comes after the given delay.
const replies = `{agents: {clerk: [{calls: [{name: count}]}, {text: "the tool said: {{last}}", delay: %s}]}}`

// dirEnv names the working directory of the process that is going to die.
const dirEnv = "CRASH_DIR"

func main() {
	if dir := os.Getenv(dirEnv); dir != "" {
		live(dir) // until it is killed
	}
	dir := must(os.MkdirTemp("", "crash"))
	defer os.RemoveAll(dir)
	script := filepath.Join(dir, "script.yaml")
	check(os.WriteFile(script, fmt.Appendf(nil, replies, "1h"), 0o600))
	check(os.WriteFile(filepath.Join(dir, "clerk.md"), []byte(clerk), 0o600))

	first := exec.Command(os.Args[0])
	first.Env = append(os.Environ(), dirEnv+"="+dir)
	events := bufio.NewScanner(must(first.StderrPipe()))
	check(first.Start())
	for events.Scan() && events.Text() != event.KindToolFinished {
		continue // until its tool has run, and it waits for its model
	}
	check(first.Process.Kill())
	fmt.Println("the first process:", first.Wait())

	check(os.WriteFile(script, fmt.Appendf(nil, replies, "0s"), 0o600))
	result := live(dir)
	fmt.Printf("the second: %s, %s", result.Reason, result.Text)
	fmt.Printf("the tool ran %d time(s)\n", strings.Count(string(must(os.ReadFile(filepath.Join(dir, "calls")))), "\n"))
}

// live starts a node and requests the run: a new one, or the one that the logs
// hold. It returns once the run is over.
func live(dir string) *event.Result {
	ctx := context.Background()
	h := must(node.Start(ctx, node.Config{StateDir: filepath.Join(dir, "state"), Port: embedded.FreePort, Roots: []string{dir}}))
	defer h.Close()
	c := must(h.NewClient())
	task := client.RunRequest{RunID: "crash", Prompt: "Count once", Agent: "clerk", Agents: dir, Dir: dir,
		Model: "script/" + filepath.Join(dir, "script.yaml")}
	check(h.ApproveRequest(task)) // its agent file defines a command, and is in a directory that the run may write
	must(c.Run(ctx, task))
	check(c.Events(ctx, "crash", nil, true, func(e client.Event, _ []byte) error {
		_, err := fmt.Fprintln(os.Stderr, e.Kind)
		return err
	}))
	return must(c.Get(ctx, "crash")).Result
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
