//go:build e2e

package readme

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// commandMax is how long one command may take, with what it has to build.
	commandMax = 5 * time.Minute
	// nodeReady is in the line that `troupe up` prints for each node that serves, and nodes is how many the README starts.
	nodeReady = "| ready"
	nodes     = 3
)

// notRun are commands of the README that this test does not run, with the reason.
var notRun = map[string]string{
	"go test ./...": "it takes minutes, and is a step of .ci/run of its own",
}

// outputs are what commands must print, by their beginning.
var outputs = map[string]string{
	"go run ./cmd/cli run":  "findings",
	"troupe nodes list":     "node-3",
	"go run ./cmd/cli demo": "9 of 9 orders shipped, each once",
}

// inline are commands in the text of the README that a new user tries: they must be there as they are written here.
var inline = []string{"go run ./cmd/cli demo"}

// A new user pastes each command of the README, and it works.
func TestCommandsOfTheReadmeWorkAsWritten(t *testing.T) {
	tree, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(tree, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := readCommands(string(text))
	if len(commands) < 7 {
		t.Fatalf("only %d commands are found: %q", len(commands), commands)
	}
	for _, c := range inline {
		if !strings.Contains(string(text), "`"+c+"`") {
			t.Errorf("the README does not name `%s`", c)
		}
		at := slices.IndexFunc(commands, func(c string) bool { return strings.HasPrefix(c, "go test") })
		commands = slices.Insert(commands, at, c)
	}
	for begin := range outputs {
		if !slices.ContainsFunc(commands, func(c string) bool { return strings.HasPrefix(c, begin) }) {
			t.Errorf("no command of the README begins with %q, whose output is checked", begin)
		}
	}
	p := newPerson(t, tree)
	skipped := 0
	for _, c := range commands {
		if notRun[c] != "" {
			skipped++
			continue
		}
		p.run(c)
	}
	if skipped != len(notRun) {
		t.Errorf("%d commands were left out; the table of those has %d", skipped, len(notRun))
	}
}

// A line fails if any part of it does.
func TestAFailureBeforeAnotherCommandIsSeen(t *testing.T) {
	p := newPerson(t, t.TempDir())
	began := p.dir
	for _, line := range []string{"false && cd /", "false | cat", "cd missing && true", "exit 3"} {
		if out, err := p.shell(line); err == nil || p.dir != began {
			t.Errorf("%s: no error, in %s: %s", line, p.dir, out)
		}
	}
	if out, err := p.shell("mkdir a && cd a"); err != nil || p.dir != filepath.Join(began, "a") {
		t.Errorf("%v, in %s: %s", err, p.dir, out)
	}
}

// readCommands returns the lines of indented blocks and of fenced blocks in a shell's language.
func readCommands(text string) (commands []string) {
	fence, shell := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		language, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence:
			fence = !fence
			shell = fence && slices.Contains([]string{"sh", "bash", "shell", "console"}, language)
		case fence && shell, !fence && strings.HasPrefix(line, "    "):
			command, _, _ := strings.Cut(strings.TrimSpace(line), "  #")
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	return commands
}

// person is a new user at a shell.
type person struct {
	t    *testing.T
	home string
	dir  string // the working directory
	tree string
}

func newPerson(t *testing.T, tree string) *person {
	t.Helper()
	p := &person{t: t, home: t.TempDir(), tree: tree}
	p.dir = p.home
	app := filepath.Join(p.home, "src", "app")
	if err := errors.Join(os.MkdirAll(app, 0o755), os.WriteFile(filepath.Join(app, "main.py"), []byte("# TODO: begin\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	return p
}

// environment is the one of a fresh account without a key, with the caches of Go of this one.
func (p *person) environment() []string {
	env := []string{"HOME=" + p.home, "PATH=" + filepath.Join(p.home, "go", "bin") + ":" + os.Getenv("PATH"), "TERM=dumb",
		"OLLAMA_HOST=127.0.0.1:1", "GOPATH=" + filepath.Join(p.home, "go")}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GOFLAGS", "CGO_ENABLED", "GOTOOLCHAIN"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			p.t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	return env
}

// run runs one command in a shell. One that serves until it is interrupted goes on in the background until the test
// ends.
func (p *person) run(command string) {
	p.t.Helper()
	line := strings.ReplaceAll(command, "<this repository>", p.tree)
	if strings.HasPrefix(line, "troupe up ") {
		p.serve(line)
		return
	}
	began := time.Now()
	out, err := p.shell(line)
	p.t.Logf("%5.1f s  %s", time.Since(began).Seconds(), command)
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	for begin, want := range outputs {
		if strings.HasPrefix(command, begin) && !bytes.Contains(out, []byte(want)) {
			p.t.Errorf("%s does not print %q:\n%s", command, want, out)
		}
	}
}

// shell runs a line in a shell and goes to the directory in which the shell was at its end. The status is that of the
// whole line: set -e would not see a failure before an &&, and without pipefail nothing sees one before a pipe.
func (p *person) shell(line string) (out []byte, err error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), commandMax)
	defer cancel()
	where := filepath.Join(p.home, "where")
	shell := exec.CommandContext(ctx, "bash", "-c", "set -o pipefail\n"+line+"\nstatus=$?\npwd > "+where+"\nexit $status")
	shell.Dir, shell.Env = p.dir, p.environment()
	if out, err = shell.CombinedOutput(); err != nil {
		return out, err
	}
	dir, err := os.ReadFile(where)
	p.dir = strings.TrimSpace(string(dir))
	return out, err
}

// serve starts a command and waits until it serves.
func (p *person) serve(line string) {
	p.t.Helper()
	shell := exec.Command("bash", "-c", "exec "+line)
	shell.Dir, shell.Env = p.dir, p.environment()
	read, write := io.Pipe()
	shell.Stdout, shell.Stderr = write, write
	began := time.Now()
	if err := shell.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- shell.Wait()
		_ = write.Close()
	}()
	p.t.Cleanup(func() {
		_ = shell.Process.Signal(syscall.SIGINT)
		if err := <-ended; err != nil {
			p.t.Logf("%s ended: %v", line, err)
		}
	})
	ready := make(chan bool, 1)
	go func() { // it reads on, so that the nodes never wait for a reader
		serve := 0
		for in := bufio.NewScanner(read); in.Scan(); {
			if strings.Contains(in.Text(), nodeReady) {
				if serve++; serve == nodes {
					ready <- true
				}
			}
		}
		if serve < nodes {
			ready <- false
		}
	}()
	select {
	case serves := <-ready:
		if !serves {
			p.t.Fatalf("%s ended before it served", line)
		}
	case <-time.After(commandMax):
		p.t.Fatalf("%s does not serve after %s", line, commandMax)
	}
	p.t.Logf("%5.1f s  %s", time.Since(began).Seconds(), line)
}
