//go:build e2e

package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/tool"
)

// The suite tells its client the scenario by the environment, and the address as
// the last argument.
const scenarioVar = "MCP_CONFORMANCE_SCENARIO"

func TestMain(m *testing.M) {
	if scenario := os.Getenv(scenarioVar); scenario != "" {
		if err := playScenario(context.Background(), scenario, os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// scenarioCalls are the calls that a scenario waits for.
var scenarioCalls = map[string][2]string{
	"tools_call": {"add_numbers", `{"a":5,"b":3}`},
	"sse-retry":  {"test_reconnection", `{}`},
}

// playScenario does with our client what a scenario is about.
func playScenario(ctx context.Context, scenario, url string) error {
	hub := mcpclient.New(mcpclient.Config{})
	defer hub.Close()
	def := mcpclient.Server{Name: "suite", Source: "suite", Own: true, URL: url}
	l, err := hub.List(ctx, def, "")
	if err != nil {
		return err
	}
	call, ok := scenarioCalls[scenario]
	if !ok {
		return nil
	}
	for _, o := range l.Offers {
		if o.Raw != call[0] {
			continue
		}
		set, err := tool.NewSet(hub.Tool(o.Spec, "", func() (mcpclient.Server, error) { return def, nil }))
		if err != nil {
			return err
		}
		if r := set.Call(ctx, o.Spec.Name, tool.Call{Args: []byte(call[1])}); r.Error {
			return errors.New(r.Text)
		}
		return nil
	}
	return fmt.Errorf("the server has no tool %s", call[0])
}

// requiredScenarios are the scenarios that a client of tools must pass.
var requiredScenarios = []string{"initialize", "tools_call", "sse-retry"}

// whyNotApplicable says why a scenario is not about us; docs/mcp.md says it too.
func whyNotApplicable(scenario string) string {
	switch {
	case strings.HasPrefix(scenario, "auth/"):
		return "OAuth: a header of the definition is how a server is told who asks"
	case scenario == "elicitation-sep1034-client-defaults":
		return "elicitation: a server may ask us for nothing"
	}
	return ""
}

var scenarioLine = regexp.MustCompile(`(?m)^\s+- (\S+) \[`)

func TestTheClientScenariosOfTheConformanceSuiteThatApplyPass(t *testing.T) {
	p := mustInstall(t)
	out, err := exec.CommandContext(patientContext(t), p.Node, p.Suite, "list", "--client").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var all []string
	for _, m := range scenarioLine.FindAllStringSubmatch(string(out), -1) {
		all = append(all, m[1])
	}
	if len(all) < len(requiredScenarios) {
		t.Fatalf("the list of scenarios cannot be read:\n%s", out)
	}
	for _, scenario := range all {
		if why := whyNotApplicable(scenario); why != "" {
			t.Logf("%s does not apply: %s", scenario, why)
			continue
		}
		if !slices.Contains(requiredScenarios, scenario) {
			t.Errorf("nobody has said whether %s is about us", scenario)
			continue
		}
		t.Run(scenario, func(t *testing.T) { runScenario(t, p, "client", "--command", os.Args[0], "--scenario", scenario) })
	}
}

// runScenario runs one scenario, and reads the verdicts that the suite writes.
func runScenario(t *testing.T, p programs, args ...string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(patientContext(t), p.Node, append(append([]string{p.Suite}, args...), "--output-dir", dir)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var checks []struct{ ID, Status, ErrorMessage string }
	found := false
	walkFiles(t, dir, func(name string, data []byte) {
		if name == "checks.json" {
			found = true
			if err := json.Unmarshal(data, &checks); err != nil {
				t.Fatal(err)
			}
		}
	})
	if !found || len(checks) == 0 {
		t.Fatalf("the suite has written no verdict\n%s", out)
	}
	for _, c := range checks {
		t.Logf("%s: %s", c.ID, c.Status)
		if c.Status != "SUCCESS" && c.Status != "INFO" && c.Status != "SKIPPED" {
			t.Errorf("%s: %s: %s", c.ID, c.Status, c.ErrorMessage)
		}
	}
}

// walkFiles reads all files below a directory.
func walkFiles(t *testing.T, dir string, read func(name string, data []byte)) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := dir + "/" + e.Name()
		if e.IsDir() {
			walkFiles(t, path, read)
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		read(e.Name(), data)
	}
}
