// Package main shows how a run survives a crash: its process is killed in the middle,
// another process resumes the run from its logs, and the tool that has a side
// effect ran once. Tests of a program do the same within one process: see package troupetest.
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

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/tool"
)

// replies is the script: the answer after the tool comes after the given delay.
const replies = `{agents: {clerk: [{calls: [{name: count}]}, {text: "the tool said: {{last}}", delay: %s}]}}`

// dirEnv names the directory of the process that is going to die.
const dirEnv = "CRASH_DIR"

func main() {
	if dir := os.Getenv(dirEnv); dir != "" {
		live(dir, "1h") // until it is killed
	}
	dir := must(os.MkdirTemp("", "crash"))
	defer os.RemoveAll(dir)
	crash(dir)
}

// crash kills the first process of a run and ends the run in this one. The logs are in the directory.
func crash(dir string) {
	first := exec.Command(os.Args[0])
	first.Env = append(os.Environ(), dirEnv+"="+dir)
	events := bufio.NewScanner(must(first.StderrPipe()))
	check(first.Start())
	for events.Scan() && events.Text() != event.KindToolFinished {
		continue // until its tool has run, and it waits for its model
	}
	check(first.Process.Kill())
	fmt.Println("the first process:", first.Wait())

	result := live(dir, "0s")
	fmt.Printf("the second: %s, %s\n", result.Reason, result.Text)
	fmt.Printf("the tool ran %d time(s)\n", strings.Count(string(must(os.ReadFile(ledger(dir)))), "\n"))
}

// live starts a node and requests the run: a new one, or the one that the logs
// hold. It returns once the run is over.
func live(dir, delay string) (result event.Result) {
	count := tool.Func("count", "Counts.", model.Effect, func(context.Context, struct{}) (string, error) {
		f, err := os.OpenFile(ledger(dir), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		if _, err := fmt.Fprintln(f, "called"); err != nil {
			return "", err
		}
		return "counted", f.Close()
	})
	ctx := context.Background()
	scripted := must(script.Parse(fmt.Appendf(nil, replies, delay)))
	node := must(troupe.Start(ctx, troupe.Config{
		StateDir: stateDir(dir),
		Tools:    []tool.Tool{count},
		Agents:   []troupe.Agent{{Name: "clerk", Description: "Counts."}},
		Models:   map[string]model.Client{"script/crash": scripted.Client("")},
		Model:    "script/crash",
	}))
	defer func() { check(node.Close()) }()
	for e, err := range node.Stream(ctx, troupe.Task{RunID: "crash", Prompt: "Count once"}) {
		check(err)
		fmt.Fprintln(os.Stderr, e.Kind)
		if r, ok := e.Data.(event.Result); ok {
			result = r
		}
	}
	return result
}

// stateDir has the logs.
func stateDir(dir string) string { return filepath.Join(dir, "state") }

// ledger is the file to which the tool writes a line each time it runs.
func ledger(dir string) string { return filepath.Join(dir, "calls") }

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
