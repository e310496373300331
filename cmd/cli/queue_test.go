package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
)

// TestARunBeyondTheLimitWaitsForItsTurn: the process that has the node was started with
// --max-live-runs 1. The second run says its place in the queue, and runs once the first
// one has ended.
func TestARunBeyondTheLimitWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"slow.yaml": slowScript, "quick.yaml": "default: [{text: at last}]"})
	first := s.command("run", "-o", "json", "-m", "script/slow.yaml", "--max-live-runs", "1", "wait")
	second := s.command("run", "-o", "json", "-m", "script/quick.yaml", "wait")
	heard := make([]*watchedOutput, 2)
	var stdout bytes.Buffer
	second.Stdout = &stdout
	for i, cmd := range []struct {
		start func() error
		pipe  func() (*watchedOutput, error)
		ready string
	}{
		{first.Start, func() (*watchedOutput, error) { r, err := first.StderrPipe(); return watchOutput(r), err }, "root-1-0 historian"},
		{second.Start, func() (*watchedOutput, error) { r, err := second.StderrPipe(); return watchOutput(r), err }, "the run is queued at position 1"},
	} {
		w, err := cmd.pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.start(); err != nil {
			t.Fatal(err)
		}
		heard[i] = w
		w.until(t, cmd.ready)
	}
	if strings.Contains(stdout.String(), "at last") {
		t.Error("the second run did not wait")
	}
	if err := first.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	heard[0].end()
	if exitOf(t, first.Wait()) == 0 {
		t.Error("the first run was canceled and exits 0")
	}
	heard[1].end()
	var r event.Result
	if code := exitOf(t, second.Wait()); code != 0 || json.Unmarshal(stdout.Bytes(), &r) != nil || r.Text != "at last" {
		t.Errorf("exit %d\n%s\n%s", code, &stdout, heard[1])
	}
}
