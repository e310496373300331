//go:build unix

package command_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/toolset/command"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

func commandSet(t *testing.T, cfg command.Config) *tool.Set {
	t.Helper()
	cfg.Name = "cmd"
	one, err := command.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(one)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestACommandReadsItsArgumentsFromStdinInTheDirectoryOfTheRun(t *testing.T) {
	dir := t.TempDir()
	set := commandSet(t, command.Config{Command: "pwd; cat", Dir: dir, Schema: `{"type":"object","required":["q"]}`})
	r := set.Call(t.Context(), "cmd", tool.Call{Args: []byte(`{"q":"; rm -rf /"}`)})
	if r.Error || r.Text != dir+"\n"+`{"q":"; rm -rf /"}` {
		t.Errorf("%+v", r)
	}
	if r := set.Call(t.Context(), "cmd", tool.Call{Args: []byte(`{}`)}); !r.Error || !strings.Contains(r.Text, `missing properties: ["q"]`) {
		t.Errorf("%+v", r)
	}
}

func TestCommandIsAnEffectByDefault(t *testing.T) {
	if spec := commandSet(t, command.Config{Command: "true"}).Specs()[0]; spec.Class != model.Effect || spec.Schema != `{"type":"object"}` {
		t.Errorf("%+v", spec)
	}
	if _, err := command.New(command.Config{Name: "a", Command: " "}); !errors.Is(err, tool.ErrSpec) {
		t.Error(err)
	}
}

func TestACommandSeesOnlyTheEnvironmentItIsGiven(t *testing.T) {
	t.Setenv("API_KEY_OF_THE_NODE", "x")
	t.Setenv("HOME", "/home/of/node")
	set := commandSet(t, command.Config{Command: `/usr/bin/env | grep -E '^(TROUPE_|TRACEPARENT|HOME|EXTRA|API)' | sort`, Env: []string{"EXTRA=1"}})
	r := set.Call(t.Context(), "cmd", tool.Call{Run: "r", Agent: "a", Turn: 1, ID: "1-0", Key: "r.a.1-0", Attempt: 2, Trace: "00-x"})
	want := "EXTRA=1\nHOME=/home/of/node\nTRACEPARENT=00-x\nTROUPE_AGENT=a\nTROUPE_ATTEMPT=2\nTROUPE_CALL=1-0\nTROUPE_DEADLINE=…\nTROUPE_KEY=r.a.1-0\n" +
		"TROUPE_METRICS=…\nTROUPE_RUN=r\nTROUPE_TURN=1\n"
	if got := regexp.MustCompile(`(?m)^(TROUPE_DEADLINE|TROUPE_METRICS)=.+`).ReplaceAllString(r.Text, "$1=…"); r.Error || got != want {
		t.Errorf("%+v", r)
	}
}

// A command writes figures of its call to a file, which is removed with the call. Lines that are no figures are counted as lost,
// and a command that puts something else in the place of the file harms nothing.
//
//behaviour:shows C6
func TestACommandReportsFigures(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for line, want := range map[string]string{
		`echo rows 12 >> "$TROUPE_METRICS"; echo rows 40 >> "$TROUPE_METRICS"; echo seconds 0.5 >> "$TROUPE_METRICS"; exit 3`: "map[rows:40 seconds:0.5], lost 0",
		`printf 'rows\nrows x\n\na b 1\nrows 2' > "$TROUPE_METRICS"`:                                                          "map[rows:2], lost 4",
		`head -c 100000 /dev/zero > "$TROUPE_METRICS"`:                                                                        "map[], lost 1",
		`rm "$TROUPE_METRICS"; mkfifo "$TROUPE_METRICS"`:                                                                      "map[], lost 0",
		`rm "$TROUPE_METRICS"; ln -s /etc/passwd "$TROUPE_METRICS"`:                                                           "map[], lost 0",
		`true`: "map[], lost 0",
	} {
		r := commandSet(t, command.Config{Command: line}).Call(t.Context(), "cmd", tool.Call{})
		if got := fmt.Sprintf("%v, lost %d", r.Metrics.Map(), r.MetricsLost); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestAFailedCommandSaysHowAndWhy(t *testing.T) {
	set := commandSet(t, command.Config{Command: `echo partly; echo "no such table" >&2; exit 4`})
	if r := set.Call(t.Context(), "cmd", tool.Call{}); !r.Error || r.Text != "partly\ncmd failed: exit code 4; stderr: no such table" {
		t.Errorf("%+v", r)
	}
	set = commandSet(t, command.Config{Command: `kill -9 $$`})
	if r := set.Call(t.Context(), "cmd", tool.Call{}); !r.Error || r.Text != "cmd failed: ended by a signal" {
		t.Errorf("%+v", r)
	}
}

//behaviour:shows C5
func TestACommandSaysByExitCode75ThatItsFailureMayPass(t *testing.T) {
	for exit, want := range map[string]bool{"75": true, "1": false, "74": false} {
		set := commandSet(t, command.Config{Command: `echo "the lock is taken" >&2; exit ` + exit})
		if r := set.Call(t.Context(), "cmd", tool.Call{}); !r.Error || r.Transient != want || r.Text != "cmd failed: exit code "+exit+"; stderr: the lock is taken" {
			t.Errorf("%+v", r)
		}
	}
}

func TestACommandIsKilledAtItsTimeout(t *testing.T) {
	t.Parallel()
	// On a busy machine a short timeout ends before the command has begun.
	for timeout := 250 * time.Millisecond; ; timeout *= 2 {
		set := commandSet(t, command.Config{Command: `echo begun; exec sleep 300`, Timeout: timeout})
		r := set.Call(t.Context(), "cmd", tool.Call{})
		said := fmt.Sprintf("cmd timed out after %s", timeout)
		if r.Error && r.Text == "begun\n"+said {
			return
		}
		if !r.Error || r.Text != said || timeout > 10*time.Second {
			t.Fatalf("%+v", r)
		}
	}
}

func TestACanceledCommandEndsBeforeItWouldBeAbandoned(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	up := filepath.Join(t.TempDir(), "up")
	set := commandSet(t, command.Config{Command: `trap '' TERM; touch ` + up + `; while :; do sleep 0.05; done`})
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := os.Stat(up); err == nil {
				cancel()
				return
			}
		}
	}()
	if r := set.Call(ctx, "cmd", tool.Call{}); !r.Error || r.Text != "cmd was canceled" {
		t.Errorf("%+v", r)
	}
}

func TestTheOutputOfACommandIsBoundedAndItsEndIsKept(t *testing.T) {
	set := commandSet(t, command.Config{Command: `echo first; yes | head -c 20000000; echo last`, Output: 2000})
	r := set.Call(t.Context(), "cmd", tool.Call{})
	if r.Error || len(r.Text) > 2000 || len(r.Whole) > tool.WholeBytesMax || !strings.HasPrefix(r.Text, "first\ny\n") || !strings.HasSuffix(r.Text, "y\nlast\n") {
		t.Errorf("%d bytes, whole %d", len(r.Text), len(r.Whole))
	}
	if !strings.Contains(r.Text, "[clipped: 20000011 bytes, showing the first ") {
		t.Errorf("the size is not told: %s", r.Text)
	}
}

// TestAttackCommandRunsInNoOtherDirectory: a script of the directory is run, and another one is put in its place.
func TestAttackCommandRunsInNoOtherDirectory(t *testing.T) {
	for name, exact := range map[string]bool{"as named": false, "exact": true} {
		t.Run(name, func(t *testing.T) {
			above := t.TempDir()
			dir, other := filepath.Join(above, "w"), filepath.Join(above, "other")
			for at, text := range map[string]string{dir: "echo mine\n", other: "echo theirs\n"} {
				if err := os.Mkdir(at, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(at, "script"), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			one, err := command.New(command.Config{Name: "a", Command: "pwd; . ./script", Dir: dir, Exact: exact})
			if err != nil {
				t.Fatal(err)
			}
			if r, err := one.Call(t.Context(), tool.Call{}); err != nil || r.Text != dir+"\nmine\n" {
				t.Errorf("%q %v", r.Text, err)
			}
			if err := os.Rename(dir, filepath.Join(above, "aside")); err != nil {
				t.Fatal(err)
			}
			for _, put := range []func() error{func() error { return os.Symlink(other, dir) }, func() error { return errors.Join(os.Remove(dir), os.Rename(other, dir)) }} {
				if err := put(); err != nil {
					t.Fatal(err)
				}
				if r, err := one.Call(t.Context(), tool.Call{}); err == nil || strings.Contains(r.Text, "theirs") {
					t.Errorf("%q %v", r.Text, err)
				}
			}
		})
	}
}
