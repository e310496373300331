//go:build e2e

package peers

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/node"
)

// requiredServerScenarios are the scenarios that the MCP server of a node must pass.
var requiredServerScenarios = []string{"server-initialize", "ping", "tools-list", "logging-set-level", "dns-rebinding-protection"}

// whyNoServerScenario says why a scenario is not about the MCP server of a node; docs/mcp.md says it too.
func whyNoServerScenario(scenario string) string {
	switch {
	case strings.HasPrefix(scenario, "tools-call-"), scenario == "json-schema-2020-12", scenario == "server-sse-polling", strings.HasPrefix(scenario, "elicitation-"):
		return "it calls a tool of the suite's own example server"
	case strings.HasPrefix(scenario, "resources-"):
		return "the server offers no resources"
	case strings.HasPrefix(scenario, "prompts-"):
		return "the server offers no prompts"
	case scenario == "server-sse-multiple-streams":
		return "the server keeps no sessions: each request is complete"
	case scenario == "completion-complete":
		return "the server offers no completions"
	}
	return ""
}

// serveMCP starts a node, and a proxy that adds the token of the node, which the suite cannot send. Other headers, and a
// host or origin that is not the proxy, pass as they are.
func serveMCP(t *testing.T) (address string) {
	t.Helper()
	state := t.TempDir()
	h, err := node.Start(patientContext(t), node.Config{StartServer: embedded.StartServer, StateDir: state, Port: embedded.FreePort, Lazy: true, Name: "host", Model: "script/" + writeFile(t, t.TempDir()+"/script.yaml", "default: [{text: done}]\n"),
		Env: func(string) string { return "" }, HTTP: &node.HTTPConfig{Address: "127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	token, err := statedir.ReadHTTPToken(state)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(h.HTTPURL())
	if err != nil {
		t.Fatal(err)
	}
	var own string
	proxy := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
		if r.In.Host == own {
			r.Out.Host = target.Host
		}
		if r.In.Header.Get("Origin") == "http://"+own {
			r.Out.Header.Set("Origin", "http://"+target.Host)
		}
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}})
	t.Cleanup(proxy.Close)
	own = strings.TrimPrefix(proxy.URL, "http://")
	return proxy.URL + "/mcp"
}

func TestTheServerScenariosOfTheConformanceSuiteThatApplyPass(t *testing.T) {
	p := mustInstall(t)
	address := serveMCP(t)
	out, err := exec.CommandContext(patientContext(t), p.Node, p.Suite, "list", "--server").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	all := scenarioLine.FindAllStringSubmatch(string(out), -1)
	if len(all) < len(requiredServerScenarios) {
		t.Fatalf("the list of scenarios cannot be read:\n%s", out)
	}
	for _, m := range all {
		scenario := m[1]
		if why := whyNoServerScenario(scenario); why != "" {
			t.Logf("%s does not apply: %s", scenario, why)
			continue
		}
		if !slices.Contains(requiredServerScenarios, scenario) {
			t.Errorf("nobody has said whether %s is about us", scenario)
			continue
		}
		t.Run(scenario, func(t *testing.T) {
			runScenario(t, p, "server", "--url", address, "--scenario", scenario)
		})
	}
}
