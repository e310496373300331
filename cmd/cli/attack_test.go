//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// heldMax is how long a command may take that should refuse at once.
const heldMax = 30 * time.Second

// checkRefusal runs a command that must end with code 2 and say these words.
func (s testHome) checkRefusal(t *testing.T, args []string, words ...string) {
	t.Helper()
	cmd := s.command(args...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(heldMax, func() { _ = cmd.Process.Kill() }) // it may have ended meanwhile
	err := cmd.Wait()
	if !late.Stop() {
		t.Errorf("%v was held up: %s", args, &said)
		return
	}
	if code := exitOf(t, err); code != exitUsage {
		t.Errorf("%v: exit %d: %s", args, code, &said)
	}
	for _, w := range words {
		if !strings.Contains(said.String(), w) {
			t.Errorf("%v: %q is not in: %s", args, w, &said)
		}
	}
	if strings.Contains(said.String(), "hunter2") {
		t.Errorf("%v quotes a file: %s", args, &said)
	}
}

// A repository names what only its user may: a scripted model, a file elsewhere.
func TestAttackADirectoryCannotGiveItselfTrust(t *testing.T) {
	s := newTestHome(t, map[string]string{"play.yaml": "default: [{text: hi}]\n", "secret.json": `{"auths":{"x":{"auth":"hunter2"}}}`,
		"schema/troupe.yaml": "json_schema: ../secret.json\n", "link/troupe.yaml": "json_schema: inside.json\n", "script/troupe.yaml": "color: never\nmodel: script/../play.yaml\n",
		"chain/troupe.yaml": "fallback: [builtin/scout, script/../play.yaml]\n", "context/troupe.yaml": "context: {model: script/../play.yaml}\n"})
	at := func(name ...string) string { return filepath.Join(append([]string{s.home}, name...)...) }
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(at(filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("absolute/troupe.yaml", "json_schema: "+at("secret.json")+"\n")
	put("whole/x", "")
	for link, to := range map[string]string{"link/inside.json": "secret.json", "whole/troupe.yaml": "secret.json"} {
		if err := os.Symlink(at(to), at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for dir, words := range map[string][]string{
		"schema": {"troupe.yaml:1: json_schema", "--json-schema"}, "link": {"troupe.yaml:1: json_schema"}, "absolute": {"troupe.yaml:1: json_schema"},
		"script": {"troupe.yaml:2: model", "TROUPE_MODEL"}, "chain": {"troupe.yaml:1: fallback"}, "context": {"troupe.yaml", "context.model"}, "whole": {"troupe.yaml", "leads out"},
	} {
		s.checkRefusal(t, []string{"run", "--dir", at(dir), "hello"}, words...)
	}
	for _, c := range [][]string{{"config", "validate", at("script", "troupe.yaml")}, {"config", "view", "--dir", at("link")}} {
		s.checkRefusal(t, c, "troupe.yaml")
	}
}

// What is no file holds no command up, wherever it is named.
func TestAttackPipesAndDevicesHoldNoCommandUp(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"pipes/x": "", "zero/x": ""})
	at := func(name ...string) string { return filepath.Join(append([]string{s.home}, name...)...) }
	for _, name := range []string{"pipe", "pipes/troupe.yaml", "agent.md"} {
		if err := syscall.Mkfifo(at(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/dev/zero", at("zero", "troupe.yaml")); err != nil {
		t.Fatal(err)
	}
	for _, odd := range []string{at("pipe"), "/dev/zero"} {
		for _, args := range [][]string{{"--json-schema", odd}, {"--attach", odd}, {"--history", odd}, {"--mcp-config", odd}, {"-m", "script/" + odd}, {"--pricing-file", odd}} {
			s.checkRefusal(t, append([]string{"run", "hello"}, args...), "not a regular file")
		}
		s.checkRefusal(t, []string{"eval", odd}, "not a regular file")
		s.checkRefusal(t, []string{"agents", "validate", odd}, "not a regular file")
		s.checkRefusal(t, []string{"config", "validate", odd}, "not a regular file")
	}
	for _, dir := range []string{"pipes", "zero"} {
		s.checkRefusal(t, []string{"run", "--dir", at(dir), "hello"}, "troupe.yaml")
	}
}

// The user's own hand may name what lies in the directory that is worked in
// (internal/node has what requests of others may name).
func TestTheUsersOwnCommandLineMayBringCommands(t *testing.T) {
	const file = "---\nname: clerk\ndescription: d\nx-troupe: {tools: [{name: look, description: d, command: \"echo seen\", effect: read}]}\n---\nx\n"
	s := newTestHome(t, map[string]string{"team/clerk.md": file, "play.yaml": "default: [{calls: [{name: look, args: {}}]}, {text: \"{{last}}\"}]\n"})
	out, err := s.command("run", "-q", "--dir", ".", "--agents", "team", "--agent", "clerk", "-m", "script/play.yaml", "hello").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "seen") {
		t.Errorf("the user's own command line: %v %s", err, out)
	}
}
