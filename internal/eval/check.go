package eval

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/loopoptions"
	"github.com/troupe-run/troupe/internal/orchestrator"
	"github.com/troupe-run/troupe/internal/policy"
	"github.com/troupe-run/troupe/internal/schema"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/supervisor"
)

// prepareCase checks a case and prepares it for a trial.
func (d caseDecoder) prepareCase(c *Case, line int) error {
	c.MockedTools, c.Tools = sanitizeKeys(c.MockedTools), sanitizeKeys(c.Tools)
	c.Allowed, c.Denied = sanitizeNames(c.Allowed), sanitizeNames(c.Denied)
	c.Expected.sanitizeTools()
	if c.Recorded != nil {
		c.Recorded.sanitizeTools()
	}
	if c.ID == "" {
		return d.badFile(line, "a case without a case_id")
	}
	if strings.TrimSpace(c.Goal) == "" {
		return d.badFile(line, "case %s has no goal", c.ID)
	}
	if c.FirstToolTurn && c.Expected.StopReason == "" {
		c.Expected.StopReason = spec.Vetoed
	}
	for _, step := range []func(*Case, int) error{d.checkTools, d.readModels, d.readRun, d.checkAgents, d.readOptions, d.checkInterventions, d.checkExpected, d.checkRecorded} {
		if err := step(c, line); err != nil {
			return err
		}
	}
	return nil
}

// checkTools checks the declarations of the mocked tools.
func (d caseDecoder) checkTools(c *Case, line int) error {
	statuses := []MockStatus{OK, Error, Retryable, Malformed, Hangs, Crashes}
	for _, name := range slices.Sorted(maps.Keys(c.MockedTools)) {
		for i, a := range c.MockedTools[name] {
			if !slices.Contains(statuses, a.Status) {
				return d.badFile(line, "case %s: answer %d of %s: status %q; it is one of %v", c.ID, i, name, a.Status, statuses)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tools)) {
		t := c.Tools[name]
		var err error
		if t.schema, err = readSchema(t.Schema); err != nil {
			return d.badFile(t.Schema.Line, "case %s: schema of %s: %v", c.ID, name, err)
		}
		if t.output, err = readSchema(t.OutputSchema); err != nil {
			return d.badFile(t.OutputSchema.Line, "case %s: output_schema of %s: %v", c.ID, name, err)
		}
		if t.Class == "" {
			t.Class = model.Read
		}
		if !slices.Contains([]model.Class{model.Read, model.Idempotent, model.Effect, model.Irreversible}, t.Class) {
			return d.badFile(line,
				"case %s: class of %s is %q; it is read, idempotent, effect or irreversible", c.ID, name, t.Class)
		}
		c.Tools[name] = t
	}
	return nil
}

func readSchema(n yaml.Node) (string, error) {
	if n.Kind == 0 {
		return "", nil
	}
	raw, err := asJSON(n)
	if err != nil {
		return "", err
	}
	if err := schema.Check(string(raw)); err != nil {
		return "", err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", err
	}
	_, err = s.Resolve(nil)
	return string(raw), err
}

// readModels reads the scripts.
func (d caseDecoder) readModels(c *Case, _ int) error {
	var err error
	if c.Model.Kind == 0 {
		c.script = defaultScript(c.MockedTools)
	} else if c.script, err = d.readScript(c.Model, "case "+c.ID+": model"); err != nil {
		return err
	}
	c.scripts = map[string]*script.Script{}
	for _, route := range slices.Sorted(maps.Keys(c.Models)) {
		if c.scripts[route], err = d.readScript(c.Models[route], "case "+c.ID+": models: "+route); err != nil {
			return err
		}
	}
	return nil
}

// defaultScript returns the model of a case that names none: it calls every mocked tool once for
// each of its answers, one after the other.
func defaultScript(tools map[string][]MockAnswer) *script.Script {
	s := &script.Script{}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		for range tools[name] {
			s.Default = append(s.Default, script.Reply{Calls: []script.Call{{Name: name}}})
		}
	}
	s.Default = append(s.Default, script.Reply{Text: "This is what I found: {{last}}"})
	return s
}

// checkAgents checks the agents.
func (d caseDecoder) checkAgents(c *Case, line int) error {
	if len(c.Agents) == 0 {
		c.Agents = []Agent{{Name: rootName}}
	}
	for i := range c.Agents {
		a := &c.Agents[i]
		if a.Name == "" {
			return d.badFile(line, "case %s: agent %d has no name", c.ID, i)
		}
		rules := slices.Contains(orchestrator.RouteNames(), strings.TrimPrefix(a.Model, builtin))
		if _, ok := c.scripts[a.Model]; !ok && !rules && a.Model != "" {
			return d.badFile(line, "case %s: agent %s uses the model %q, which is not in models", c.ID, a.Name, a.Model)
		}
		if err := d.decodeInto(a.LoopOptions, "case "+c.ID+": loop_options of "+a.Name, &a.loopOptions); err != nil {
			return err
		}
		if err := loopoptions.Check(a.loopOptions); err != nil {
			return d.badFile(line, "case %s: agent %s: %v", c.ID, a.Name, err)
		}
		a.Allowed, a.Denied = sanitizeNames(a.Allowed), sanitizeNames(a.Denied)
	}
	return nil
}

// readOptions reads the loop options, hooks and policy of the run.
func (d caseDecoder) readOptions(c *Case, line int) error {
	c.loopOptions = spec.DefaultLoopOptions()
	c.loopOptions.ToolRetries = 0 // each scripted answer answers one call
	if err := d.decodeInto(c.LoopOptions, "case "+c.ID+": loop_options", &c.loopOptions); err != nil {
		return err
	}
	for _, h := range c.Hooks {
		data := spec.Hook{Name: h.Name, Point: h.Point, Tools: h.Tools, TimeoutMS: durationMS(h.Timeout), Failing: h.Failing, Report: h.Report, Of: h.Of}
		if err := data.Validate(); err != nil {
			return d.badFile(line, "case %s: %v", c.ID, err)
		}
		c.loopOptions.Hooks = append(c.loopOptions.Hooks, data)
	}
	if err := loopoptions.Check(c.loopOptions); err != nil {
		return d.badFile(line, "case %s: %v", c.ID, err)
	}
	if err := d.decodeInto(c.Policy, "case "+c.ID+": policy", &c.policy); err != nil {
		return err
	}
	if c.FirstToolTurn {
		c.policy.Rules = append(slices.Clip(c.policy.Rules), supervisor.Rule{Name: "first-tool-turn", On: "turn",
			When: []supervisor.Condition{{Fact: "calls", Op: ">=", Number: 1}}, Why: "only the first turn with tools is of interest"})
	}
	var err error
	if c.policy, err = policy.Compile(c.policy); err != nil {
		return d.badFile(line, "case %s: %v", c.ID, err)
	}
	return nil
}

// checkInterventions checks the outside events.
func (d caseDecoder) checkInterventions(c *Case, line int) error {
	for i := range c.Interventions {
		e := &c.Interventions[i]
		if e.Nth == 0 {
			e.Nth = 1
		}
		deeds := 0
		for _, is := range []bool{e.Cancel != "", e.Steer != "", e.Answer != nil, e.Crash} {
			if is {
				deeds++
			}
		}
		for j := range e.And {
			e.And[j].Nth, e.And[j].Of = max(1, e.And[j].Nth), strings.TrimSpace(e.And[j].Of)
		}
		for _, p := range e.points() {
			if err := checkKind(p.After); err != nil && p.After != MockCalled && p.After != MockAsked {
				return d.badFile(line, "case %s: during: after: %v", c.ID, err)
			}
		}
		if e.And != nil && e.Cancel == "" {
			return d.badFile(line, "case %s: during: after %s there is an and, which only a cancel may have", c.ID, e.After)
		}
		if deeds != 1 {
			return d.badFile(line, "case %s: during: after %s there must be one of cancel, steer, answer, crash", c.ID, e.After)
		}
		if e.Cancel != "" && e.Cancel != "boundary" && e.Cancel != "now" {
			return d.badFile(line, "case %s: during: cancel is boundary or now, not %q", c.ID, e.Cancel)
		}
		e.Of = strings.TrimSpace(e.Of)
	}
	return nil
}

// eventKinds are the names of all events.
func eventKinds() []string {
	return slices.Sorted(maps.Keys(event.RunKinds()))
}

func checkKind(word string) error {
	all := eventKinds()
	if slices.Contains(all, word) {
		return nil
	}
	if near := config.NearestName(word, all); near != "" {
		return fmt.Errorf("unknown event %q; did you mean %s?", word, near)
	}
	return fmt.Errorf("unknown event %q", word)
}

// checkExpected checks that the expectations are valid.
func (d caseDecoder) checkExpected(c *Case, line int) error {
	if err := d.checkExpectation(c, c.Expected, line); err != nil {
		return err
	}
	for _, name := range c.Expected.Forbidden {
		if len(c.MockedTools[name]) == 0 && c.Tools[name].Class == "" {
			// A forbidden tool that the case does not declare otherwise is still a tool of the run: the model sees
			// it, and no agent may use it.
			if c.Tools == nil {
				c.Tools = map[string]MockTool{}
			}
			c.Tools[name] = MockTool{Class: model.Irreversible}
			c.Denied = append(c.Denied, name)
		}
	}
	return nil
}

// checkExpectation checks the words of an expectation.
func (d caseDecoder) checkExpectation(c *Case, x Expected, line int) error {
	if x.StopReason == "" {
		return d.badFile(line, "case %s: expected has no stop_reason", c.ID)
	}
	if !slices.Contains(spec.Reasons(), x.StopReason) {
		return d.badFile(line,
			"case %s: unknown stop_reason %q%s", c.ID, x.StopReason, suggestName(string(x.StopReason), spec.Reasons()))
	}
	for _, t := range x.Transitions {
		if !slices.Contains(spec.Transitions(), t) {
			return d.badFile(line, "case %s: unknown transition %q%s", c.ID, t, suggestName(string(t), spec.Transitions()))
		}
	}
	for _, word := range slices.Concat(x.Events, x.NoEvents) {
		if _, known := eventAliases[word]; known {
			continue
		}
		if err := checkKind(word); err != nil {
			return d.badFile(line, "case %s: %v", c.ID, err)
		}
	}
	return nil
}

func suggestName[T ~string](word string, known []T) string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	if best := config.NearestName(word, names); best != "" {
		return "; did you mean " + best + "?"
	}
	return ""
}

func durationMS(d Duration) int64 { return int64(d) / 1e6 }
