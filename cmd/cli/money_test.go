package main

import (
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
)

// gatewayHome is a home whose Anthropic models are behind a gateway. Commands are made by command.
func gatewayHome(t *testing.T) (s testHome, command func(args ...string) *exec.Cmd) {
	t.Helper()
	server := httptest.NewServer(&toldModel{told: map[string]toldRequest{}})
	t.Cleanup(server.Close)
	s = newTestHome(t, map[string]string{"writer.md": "---\nname: writer\ndescription: Writes.\ntools: Read\n---\nYou write.\n", "work/note.md": "",
		"long.yaml": "default:\n  - calls: [{name: read_file, args: {path: note.md}}]\n  - text: done\n"})
	return s, func(args ...string) *exec.Cmd {
		cmd := s.command(args...)
		cmd.Env = append(cmd.Env, "ANTHROPIC_BASE_URL="+server.URL, "ANTHROPIC_API_KEY=key")
		return cmd
	}
}

// Behind a gateway all screens mark costs as estimates, the limit of one dollar holds, and a typo in the name of the model
// does not take it away.
//
//behaviour:shows G4
func TestCostsBehindAGatewayAreEstimates(t *testing.T) {
	t.Parallel()
	_, command := gatewayHome(t)
	screen := openScreen(t, command("run", "-m", "anthropic/claude-sonnet-5-5", "--dir", "work", "--agents", ".", "--agent", "writer", "Go."), 80, 24)
	if code := screen.leave(); code != 0 {
		t.Fatalf("exit %d\n%s", code, screen)
	}
	for _, want := range []string{"tokens, $1.00", "costs (~) are estimates by list prices", "~$0.0001 of $1.00   1 agent   0 tool calls   00:0"} {
		if !strings.Contains(screen.String(), want) {
			t.Errorf("no %q:\n%s", want, screen)
		}
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"events", "last"}, []string{"10 in, 5 out  ~$0.0001", "(0.", "~$0.0001 of $1.00"}},
		{[]string{"describe", "last"}, []string{"15  ~$0.0001", "~$0.0001"}},
		{[]string{"report", "last"}, []string{"~$0.0001"}},
		{[]string{"report", "last", "-o", "json"}, []string{`"cost_estimated": true`}},
		{[]string{"list"}, []string{"~$0.0001 of $1.00"}},
		{[]string{"budget", "last"}, []string{"~$0.0001"}},
	} {
		out, err := command(c.args...).CombinedOutput()
		for _, want := range c.want {
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%v: %v, no %q:\n%s", c.args, err, want, out)
			}
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(strings.ReplaceAll(line, "~$0.0001", ""), "$0.0001") {
				t.Errorf("%v shows an estimate as a cost: %s", c.args, line)
			}
		}
	}
	out, err := command("run", "-m", "anthropic/claude-sonet-5-5", "--dir", "work", "--agents", ".", "--agent", "writer", "Go.").CombinedOutput()
	if code := exitOf(t, err); code != exitUsage || !strings.Contains(string(out), "did you mean anthropic/claude-sonnet-5-5?") {
		t.Errorf("a typo: exit %d\n%s", code, out)
	}
}

// A terminal of 80 columns shows the cost of each run, and as much of its id as other commands need.
func TestListInANarrowTerminal(t *testing.T) {
	t.Parallel()
	_, command := gatewayHome(t)
	for range 2 {
		if out, err := command("run", "-q", "-m", "anthropic/claude-sonnet-5-5", "--dir", "work", "--agents", ".", "--agent", "writer", "Go.").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	screen := openScreen(t, command("list"), 80, 24)
	if code := screen.leave(); code != 0 {
		t.Fatalf("exit %d\n%s", code, screen)
	}
	ids := map[string]bool{}
	for line := range strings.Lines(screen.String()) {
		if words := strings.Fields(line); len(words) > 5 && words[0] != "RUN" {
			if !strings.Contains(line, "~$0.0001 of $1.00") || !strings.Contains(line, "Go.") {
				t.Errorf("%q", line)
			}
			if out, err := command("result", words[0]).CombinedOutput(); err != nil || !strings.Contains(string(out), "done by writer") {
				t.Errorf("%s: %v\n%s", words[0], err, out)
			}
			ids[words[0]] = true
		}
	}
	if len(ids) != 2 {
		t.Errorf("not two runs:\n%s", screen)
	}
}

// A limit that ends a run is named on the screen and in the event, with what it lacks, also if it does not cover one call.
//
//behaviour:shows G4
func TestALimitThatIsShortIsNamed(t *testing.T) {
	t.Parallel()
	_, command := gatewayHome(t)
	const claude = "anthropic/claude-sonnet-5-5"
	for _, c := range []struct{ model, limit, value, screen, event string }{
		{claude, "--max-tokens", "300", "stopped: token_budget: even a closing turn needs up to ", event.KindBudgetDenied + "        root 0/300 used, 0 reserved token_budget: the run's limit of 300 tokens: 0 used, 300 free, the next call needs "},
		{claude, "--max-budget-usd", "0.0001", "more than the run's limit", "cost_budget: the run's limit of $0.0001: $0 used, $0.0001 free, the next call needs $"},
		{claude, "--max-agent-budget-usd", "0.0001", "stopped: cost_budget: ", "cost_budget: the agent's limit of $0.0001: $0 used, $0.0001 free, the next call needs $"},
		{"script/long.yaml", "--max-tokens", "2000", "stopped: token_budget: the run's limit of 2k tokens: ", event.KindBudgetExhausted},
	} {
		screen := openScreen(t, command("run", "-m", c.model, "--dir", "work", "--agents", ".", "--agent", "writer", c.limit, c.value, "Go."), 200, 24)
		if code := screen.leave(); code != 3 || !strings.Contains(screen.String(), c.screen) {
			t.Errorf("%s %s: exit %d, no %q\n%s", c.limit, c.value, code, c.screen, screen)
		}
		out, err := command("events", "last").CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.event) || !strings.Contains(string(out), " too much") {
			t.Errorf("%s %s: %v, no %q\n%s", c.limit, c.value, err, c.event, out)
		}
	}
}

// What has no price costs an unknown sum, in the report too: neither its table nor its document says that it was free.
func TestTheReportOfAModelWithoutAPriceKnowsNoCost(t *testing.T) {
	t.Parallel()
	_, command := gatewayHome(t)
	const model = "anthropic/house-model"
	if out, err := command("run", "-m", model, "--allow-unpriced", model, "--dir", "work", "--agents", ".", "--agent", "writer", "Go.").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct {
		args         []string
		want, absent string
	}{
		{[]string{"report", "last"}, "unknown", "$0"},
		{[]string{"report", "last", "-o", "json"}, `"cost_usd": null`, `"cost_usd": 0`},
		{[]string{"report", "last", "-o", "json"}, `"cost_known": false`, `"cost_known": true`},
	} {
		out, err := command(c.args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) || strings.Contains(string(out), c.absent) {
			t.Errorf("%v: %v, want %q and no %q:\n%s", c.args, err, c.want, c.absent, out)
		}
	}
}
