package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/node"
)

// A node with a short --retain-age, and one with the setting of its user, remove a run that has ended, and no other.
//
//behaviour:shows K17
func TestNodeRemovesOldRuns(t *testing.T) {
	for _, setting := range []bool{false, true} {
		dir := t.TempDir()
		state, script := filepath.Join(dir, "state"), filepath.Join(dir, "model.yaml")
		if err := os.WriteFile(script, []byte("agents: {assistant: [{text: done}]}"), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"--store-dir", state, "--root", dir, "--durability", "lazy", "--nats-port", "-1", "--drain-timeout", "200ms"}
		if !setting {
			args = append(args, "--retain-age", "3s")
		}
		cmd := command(t, args...)
		if setting {
			cmd.Env = append(cmd.Env, "TROUPE_RETAIN_AGE=3s")
		}
		startNode(t, cmd)
		c, err := client.Join(state, func() {})
		if err != nil {
			t.Fatal(err)
		}
		r := client.RunRequest{RunID: client.NewID(), Prompt: "hello", Model: "script/" + script}
		if err := node.ApproveRequest(node.Config{StateDir: state}, r); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Run(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		for late := time.After(patience); ; {
			_, err = c.Get(t.Context(), r.RunID)
			if gone := (*client.Error)(nil); errors.As(err, &gone) && gone.Code == client.CodeGone {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-late:
				t.Fatal("it stays")
			}
		}
		if list, err := c.List(t.Context()); err != nil || len(list) > 0 {
			t.Errorf("listed: %+v %v", list, err)
		}
		c.Close()
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if code := exitOf(t, cmd.Wait()); code != 0 {
			t.Errorf("exit %d\n%s", code, cmd.Stderr)
		}
	}
}
