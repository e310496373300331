package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// A script of one reply, and its effect in a run.
const (
	approvedScript  = "default: [{text: hi}]\n"
	rewrittenScript = "default: [{text: the run wrote this}]\n"
)

// restartedNode returns a node of a state directory as a restart or another node finds it: it has read no script yet.
func restartedNode(state, root string, change ...func(*Config)) *Node {
	return newBuildOnlyNode(root, append(change, func(c *Config) { c.StateDir, c.requestsFromUser = state, false })...)
}

// realDir returns a new directory by a path without links.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A node that takes a run over reads its script again. A run may have rewritten the file meanwhile.
func TestAttackARewrittenScriptIsNotPlayedAfterARestart(t *testing.T) {
	t.Parallel()
	root, state := realDir(t), t.TempDir()
	writeText(t, approvedScript, root, "play.yaml")
	route := "script/" + filepath.Join(root, "play.yaml")
	h := restartedNode(state, root)
	if _, _, err := h.routes.ResolveClient(route); err == nil {
		t.Error("the node plays a script below a root that the user has not approved")
	}
	if err := h.ApproveRequest(client.RunRequest{Model: route}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := restartedNode(state, root).routes.ResolveClient(route); err != nil {
		t.Errorf("the node refuses the approved content: %v", err)
	}
	writeText(t, rewrittenScript, root, "play.yaml")
	if _, _, err := restartedNode(state, root).routes.ResolveClient(route); err == nil {
		t.Error("the node plays what the run wrote over the approved script")
	}
	if restartedNode(state, root).builder.RouteVersion(route) != "" {
		t.Error("the rewritten script is no configuration drift")
	}
}

// The approval of an agent file covers the scripts that it names, as they are at that time.
func TestAttackARewrittenScriptOfAnApprovedAgentFileIsRefused(t *testing.T) {
	t.Parallel()
	root, state := realDir(t), t.TempDir()
	writeText(t, approvedScript, root, "play.yaml")
	front := "model: script/" + filepath.Join(root, "play.yaml")
	writeText(t, "---\nname: "+planted+"\ndescription: d\n"+front+"\n---\nx\n", root, "team", "a.md")
	r := client.RunRequest{RunID: client.NewID(), Prompt: "p", Model: "builtin/scout", Dir: root, Agents: filepath.Join(root, "team"), Agent: planted}
	if err := restartedNode(state, root).ApproveRequest(r); err != nil {
		t.Fatal(err)
	}
	if _, _, err := restartedNode(state, root).buildRun(r); err != nil {
		t.Errorf("the node refuses the approved agent: %v", err)
	}
	writeText(t, rewrittenScript, root, "play.yaml")
	_, _, err := restartedNode(state, root).buildRun(r)
	refusedWith(t, err, client.CodeForbidden, "has not approved", "play.yaml")
}

// A script outside of the roots needs no approval where the operator or a trusted agent file names it.
func TestAScriptOutsideOfTheRootsIsPlayed(t *testing.T) {
	t.Parallel()
	out := realDir(t)
	writeText(t, approvedScript, out, "play.yaml")
	if _, _, err := restartedNode(t.TempDir(), realDir(t)).routes.ResolveClient("script/" + filepath.Join(out, "play.yaml")); err != nil {
		t.Error(err)
	}
}

// The script of the node's own model is approved with the content that it has when the node starts.
func TestAttackARewrittenScriptOfTheNodeIsNotPlayed(t *testing.T) {
	t.Parallel()
	root, state := realDir(t), t.TempDir()
	writeText(t, approvedScript, root, "play.yaml")
	route := "script/" + filepath.Join(root, "play.yaml")
	node := func(c *Config) { c.Model, c.Roots, c.requestsFromUser = route, []string{root}, false }
	h := startNode(t, state, node)
	if _, _, err := h.buildRun(client.RunRequest{RunID: client.NewID(), Prompt: "p"}); err != nil {
		t.Errorf("the node refuses its own model: %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, "play.yaml"), []byte(rewrittenScript), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.buildRun(client.RunRequest{RunID: client.NewID(), Prompt: "p"}); err == nil {
		t.Error("the node plays what a run wrote over the script of its own model")
	}
}
