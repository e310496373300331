package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli"
	"github.com/troupe-run/troupe/internal/cli/serve"
	"github.com/troupe-run/troupe/internal/cluster"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/logstore/local"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/pidregistry"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
)

// mainOnSlowMachine is main on a machine so slow that an owner of the state directory may not
// answer for long.
func mainOnSlowMachine() { os.Exit(cli.Run(os.Args[1:], embedded.StartServer, 2*patience)) }

// Exit codes of the contract that tests of the binary expect.
const (
	exitUsage       = 2
	exitNoNode      = 6
	exitInterrupted = 130
	exitTerminated  = 143
)

// atOnce is how many tests run at the same time. Most of them wait for processes, timers
// and the disk, so there are more than the two cores of a small machine.
const atOnce = 4

func TestMain(m *testing.M) {
	pidregistry.ShareOneLockPerMap()                                        // as main does
	if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil { // -parallel on the command line takes precedence
		log.Fatal(err)
	}
	testscript.Main(m, map[string]func(){"troupe": mainOnSlowMachine, "testnode": testNode, "half-run": halfRun, "upnode": upNode, "mcpserver": mcpServer, "olden": olden,
		"troupe-node": func() { os.Exit(serve.Run(os.Args[1:], embedded.StartServer)) }})
}

// shortLived is the GOGC of the programs that tests start. Most of them end after a moment with a heap of a few
// megabytes; without it each collects its garbage four times before that, a tenth of all that it computes.
const shortLived = "400"

// testEnv is a home of its own, without keys and without an Ollama to be asked.
func testEnv(home string) []string {
	env := []string{"GOGC=" + shortLived, "HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state"), "XDG_CONFIG_HOME=" + filepath.Join(home, "config"),
		"OLLAMA_HOST=127.0.0.1:1", "TZ=UTC", "TERM=xterm"}
	for _, name := range []string{"NATS_URL", "NATS_CONTEXT", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL",
		"OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "NO_COLOR", "CLICOLOR_FORCE", "TRACEPARENT",
		"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"} {
		env = append(env, name+"=")
	}
	return env
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, testEnv(e.WorkDir)...)
			e.Values[nodesOfScript{}] = map[string]func(){}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "json": jsonAt, "node": startNode, "until": until},
	})
}

// exits CODE COMMAND... runs a command that must end with a code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if args[0] != strconv.Itoa(code) {
		ts.Fatalf("exit %d, want %s", code, args[0])
	}
}

// jsonAt is the command json FILE PATH VALUE: it compares a place in the last JSON document of a file.
func jsonAt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH VALUE")
	}
	text := strings.TrimSpace(ts.ReadFile(args[0]))
	if text[0] == '{' && strings.Contains(text, "}\n{") {
		text = text[strings.LastIndex(text, "\n")+1:]
	}
	var v any
	ts.Check(json.Unmarshal([]byte(text), &v))
	for part := range strings.SplitSeq(args[1], ".") {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[part]
			if !ok {
				ts.Fatalf("no %q in %v", part, at)
			}
			v = next
		case []any:
			i, err := strconv.Atoi(part)
			if part == "len" {
				v = float64(len(at))
				continue
			}
			if err != nil || i >= len(at) {
				ts.Fatalf("no %q in %d elements", part, len(at))
			}
			v = at[i]
		default:
			ts.Fatalf("no %q in %v", part, v)
		}
	}
	if got := fmt.Sprint(v); got != args[2] {
		ts.Fatalf("%s is %s, want %s", args[1], got, args[2])
	}
}

// startNode is the command node [DIR]: it starts a node that runs until the script ends, or until "! node" ends it. A
// script that is not about who starts a run begins with it: a command that finds a node computes half as long as one that
// starts its own. The node owns the state directory DIR, by default that of the user. With the word troupe-node for DIR it
// is that program, which reads the settings of its user.
func startNode(ts *testscript.TestScript, neg bool, args []string) {
	nodes := ts.Value(nodesOfScript{}).(map[string]func()) // Setup makes it
	dir, program := "state/troupe", "testnode"
	switch {
	case slices.Contains(args, "troupe-node"):
		program = args[0]
	case len(args) > 0:
		dir = args[0]
	}
	if neg {
		nodes[dir]()
		return
	}
	cmd := exec.Command(program, ts.MkAbs(dir), ts.MkAbs("."))
	if program == "troupe-node" {
		cmd = exec.Command(program, "--store-dir", ts.MkAbs(dir), "--root", ts.MkAbs("."), "--durability", "lazy", "--nats-port", strconv.Itoa(embedded.FreePort), "--http", "off")
	}
	cmd.Env = append(os.Environ(), testEnv(ts.MkAbs("."))...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	nodes[dir] = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it was told to stop
	})
	ts.Defer(nodes[dir])
	if _, err := out.Read(make([]byte, 1)); err != nil {
		ts.Fatalf("the node did not start: %v", err)
	}
}

// nodesOfScript is the key of the ends of a script's nodes, by state directory.
type nodesOfScript struct{}

// until PATTERN COMMAND... runs a command again until its output has a text.
func until(ts *testscript.TestScript, neg bool, args []string) {
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(processPollPause) {
		if err := ts.Exec(args[1], args[2:]...); err == nil && strings.Contains(ts.ReadFile("stdout"), args[0]) {
			return
		}
	}
	ts.Fatalf("no %q in %s", args[0], ts.ReadFile("stdout"))
}

// testNode is a node that owns a state directory: testnode DIR ROOT.
func testNode() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	h, err := node.Start(context.Background(), node.Config{StartServer: embedded.StartServer, StateDir: os.Args[1], Roots: os.Args[2:], Name: "test", Lazy: true, ResumeAll: true})
	check(err)
	fmt.Println("ready")
	<-stop
	check(h.Close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// halfRun leaves a run whose tool was under way when its process ended, and
// which may not be called again: half-run DIR RUN SCRIPT.
func halfRun() {
	ctx := context.Background()
	dir, run, path := os.Args[1], os.Args[2], os.Args[3]
	e, err := embedded.Start(embedded.Config{StateDir: dir, Lazy: true, LogStore: statedir.LogsInFiles})
	check(err)
	nc, err := e.Connect(bus.RoleNode)
	check(err)
	post, err := local.Open(ctx, local.Config{Dir: statedir.LogsDir(dir), Lazy: true})
	check(err)
	buckets, err := bus.ConnectBuckets(ctx, nc, bus.BucketConfig{})
	check(err)
	runs := runindex.Open(buckets)
	lease, err := cluster.RecordOwner(ctx, buckets, "half")
	check(err)
	choice, err := provider.Choose(ctx, provider.Config{Model: "script/" + path})
	check(err)
	inside := make(chan struct{}, 1)
	deploy, err := tool.New("deploy", "Deploy.", model.Effect, func(ctx context.Context, _ struct{}, _ tool.Call) (string, error) {
		inside <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	})
	check(err)
	node, err := actors.Start(ctx, actors.Config{Post: post, Lease: lease,
		Model: func(string) (model.Client, string, error) { return choice.Client, "m", nil },
		Tools: func(spec.Task) (*tool.Set, error) { return tool.NewSet(deploy) }})
	check(err)
	check(node.Open(ctx, supervisor.Opened{Run: run, Goal: "deploy it", Root: "coordinator",
		Definitions: []supervisor.Definition{{Name: "coordinator", System: "You are the coordinator."}},
		Tools:       []model.ToolSpec{deploy.Spec()}, Commands: []spec.Command{{Name: "deploy", Line: "true"}},
		Model: spec.Model{Name: choice.Name(), Price: choice.Price}, Limits: spec.RunLimits{Tokens: 100_000}}))
	_, err = runs.Add(ctx, client.RunInfo{RunID: run, State: "live", Title: "deploy it", Started: "2026-01-02T03:04:05Z"})
	check(err)
	select {
	case <-inside:
	case <-time.After(time.Minute):
		check(errors.New("the model did not call deploy: does the script name the coordinator?"))
	}
	node.Stop()
	check(post.Close())
	nc.Close()
	check(e.Close())
}
