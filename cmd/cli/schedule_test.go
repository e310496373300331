package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// awaitRun waits until a schedule has begun so many runs, and returns the newest one.
func (s testHome) awaitRun(schedule string, fired int) client.ScheduleInfo {
	s.t.Helper()
	var info client.ScheduleInfo
	for end := time.Now().Add(2 * patience); info.Fired < fired; <-time.After(processPollPause) {
		out, err := s.command("schedules", "show", schedule, "-o", "json").Output()
		if err == nil {
			err = json.Unmarshal(out, &info)
		}
		if err == nil && info.Fired >= fired { // a trigger names a run before it opens it
			if err = s.command("describe", info.LastRun).Run(); err != nil {
				info.Fired = 0
			}
		}
		if time.Now().After(end) {
			s.t.Fatalf("the schedule %s has begun %d runs: %v", schedule, info.Fired, err)
		}
	}
	return info
}

// Runs begin on the nodes of troupe up when they are due, and with messages of another program, also after a node was
// killed.
func TestUpBeginsScheduledRuns(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"talk.yaml": talk})
	bin, err := exec.LookPath("upnode")
	if err != nil {
		t.Fatal(err)
	}
	up := s.command("up", "--nodes", "2", "--lazy", "--node-binary", bin, "--root", s.home)
	out, err := up.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	defer up.Process.Kill()
	log := watchOutput(out)
	log.until(t, "NATS at")
	nodes := s.waitForNodes(2)
	make1 := func(id string, args ...string) {
		t.Helper()
		args = append([]string{"run", "-q", "--run-id", id, "-m", "script/" + filepath.Join(s.home, "talk.yaml"), "--dir", s.home}, args...)
		if out, code := s.outputOf(append(args, "hello")...); code != 0 || strings.TrimSpace(out) != id {
			t.Fatalf("%s: %d, %s", id, code, out)
		}
	}
	make1("at", "--at", "+1s")
	make1("every", "--every", "1s", "--overlap", "parallel")
	make1("on", "--on", "deploys")
	if out, code := s.outputOf("result", "--wait", s.awaitRun("at", 1).LastRun); code != 0 || out != "one: hello\n" {
		t.Errorf("the run at a time: %d, %q", code, out)
	}
	before := s.awaitRun("every", 2)
	if err := syscall.Kill(nodes[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.publish("troupe.trigger.deploys", "shop 1.2")
	if out, code := s.outputOf("result", "--wait", s.awaitRun("on", 1).LastRun); code != 0 || !strings.HasPrefix(out, "one: hello\n") || !strings.Contains(out, "\nshop 1.2\n") {
		t.Errorf("the run by a message: %d, %q", code, out)
	}
	s.awaitRun("every", before.Fired+2)
	if err := up.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	log.end()
	if err := up.Wait(); err != nil {
		t.Errorf("it was told to stop, and ended with %v", err)
	}
}

// publish sends a message as another program of the user does, with the credential in the state directory.
func (s testHome) publish(subject, text string) {
	s.t.Helper()
	file, err := statedir.ReadNodeFile(filepath.Join(s.home, "state", "troupe"))
	if err != nil {
		s.t.Fatal(err)
	}
	nc, err := nats.Connect(file.Address, nats.UserInfo(file.User, file.Password), nats.CustomInboxPrefix("_INBOX_client"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.Publish(subject, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		s.t.Fatal(err)
	}
}
