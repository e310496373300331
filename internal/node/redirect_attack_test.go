package node

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config/agentfile"
)

// TestAttackRedirectLeavesTheGrantedHost: a page of a granted host leads to one that a rule denies, or that nothing
// grants. The page is not read; the agent is told the address, and the rules decide if it asks for it.
func TestAttackRedirectLeavesTheGrantedHost(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	var asked atomic.Int64
	denied := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked.Add(1); _, _ = fmt.Fprint(w, "denied page") }))
	t.Cleanup(denied.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(denied.URL, "http://"), ":")
	away := "http://localhost:" + port + "/?secret"
	granted := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, away, http.StatusFound) }))
	t.Cleanup(granted.Close)
	agents := t.TempDir()
	writeText(t, "---\nname: reader\ndescription: d\ntools: WebFetch(domain:127.0.0.1)\n---\nx\n", agents, "reader.md")
	operator := agentfile.ToolRule{Name: "http_get", Allow: []string{granted.Listener.Addr().String(), "localhost:" + port}, Private: []string{"127.0.0.1/32", "::1/128"}}
	for _, deny := range [][]spec.PermissionRule{nil, {{Text: "http_get(domain:localhost)"}}} {
		for address, want := range map[string]string{granted.URL: away + " on another host", away: "never started: denied"} {
			script := fmt.Sprintf("agents:\n  reader:\n    - calls: [{name: http_get, args: {url: %q}}]\n    - text: \"[done] {{last}}\"\n", address)
			h := startNode(t, t.TempDir(), func(c *Config) {
				c.Roots, c.Tools, c.Permissions.Deny = []string{agents}, []agentfile.ToolRule{operator}, deny
			})
			c := connectClient(t, h)
			id := beginRun(t, c, client.RunRequest{Agent: "reader", Agents: agents, Model: writeScript(t, script)})
			if info := waitFinished(t, c, id, spec.Completed); !strings.Contains(info.Result.Text, want) {
				t.Errorf("%s with %d rules: %q, want %q", address, len(deny), info.Result.Text, want)
			}
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the denied host was asked %d times", n)
	}
}
