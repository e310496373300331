package node

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// troubledClerk meets what a loop recovers from; its hooks are at every point that the loop passes.
const troubledClerk = `---
name: clerk
description: Works.
x-troupe:
  tools: [{name: probe, description: Probes., command: '[ "$TROUPE_ATTEMPT" -gt 1 ] || exit 75; echo the sky is blue', effect: idempotent}]
  hooks:
    - {point: context, name: transform, command: "true"}
    - {point: input, name: input, command: "true"}
    - {point: post_sampling, name: sampled, command: "true"}
    - {point: output, name: output, command: "if grep -q unfit; then echo no such words >&2; exit 2; fi"}
    - {point: pre_tool, name: before, command: "true"}
    - {point: tool_error, name: failed, command: "true"}
    - {point: tool_result, name: result, command: "true"}
    - {point: post_tool, name: after, command: "true"}
    - {point: stop, name: stop, command: "true"}
    - {point: stop_failure, name: down, command: "true"}
---
Work.
`

const troubles = `
in_order: true
agents:
  clerk:
    - {error: {class: overload, status: 529, unbilled: true}}
    - text: unfit
    - calls: [{name: probe}]
    - calls: [{name: read_file, args: {path: missing}}]
    - calls: [{name: list_dir, args: {path: "."}}]
    - calls: [{name: list_dir, args: {path: "."}}]
    - calls: [{name: list_dir, args: {path: "."}}]
    - calls: [{name: probe}]
    - {error: {class: prompt_too_long, status: 400, unbilled: true}}
    - text: "[done] done"
default: [{text: what was read}]
`

// An observer of NATS who knows nothing but the documented subjects and schemas sees each point at which hooks run, and what a loop
// recovers from. (recordEvents compares each event with its schema and its subject.)
//
//behaviour:shows I1
func TestHookPointsAndRecoveriesAreSeenOnNATS(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	dir := t.TempDir()
	writeText(t, troubledClerk, dir, "agents", "clerk.md")
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir} })
	seen := recordEvents(t, h)
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Agent: "clerk", Agents: dir + "/agents", Dir: dir, Model: writeScript(t, troubles), Yes: true})
	waitFinished(t, c, id, spec.Completed)
	slow := beginRun(t, c, client.RunRequest{Agent: "clerk", Agents: dir + "/agents", Dir: dir, TimeoutMS: 200,
		Model: writeScript(t, "repeat: true\ndefault: [{delay: 250ms, calls: [{name: probe}]}]\n")})
	waitFinished(t, c, slow, spec.Timeout)
	var points, kinds []string
	for _, run := range []string{id, slow} {
		_, told := pagedEvents(t, c, run)
		for _, raw := range seen.waitForEvents(t, run, told) {
			var e client.Event
			var fired event.HookFired
			if err := json.Unmarshal([]byte(raw), &e); err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, e.Kind)
			if e.Kind == event.KindHookFired {
				if err := json.Unmarshal(e.Data, &fired); err != nil {
					t.Fatal(err)
				}
				points = append(points, string(fired.Point))
			}
		}
	}
	for _, point := range []spec.HookPoint{spec.HookContext, spec.HookInput, spec.HookSampled, spec.HookOutput, spec.HookPreTool, spec.HookToolError,
		spec.HookToolResult, spec.HookPostTool, spec.HookStop, spec.HookStopFailure} {
		if !slices.Contains(points, string(point)) {
			t.Errorf("no event of a hook at %s", point)
		}
	}
	for _, kind := range []string{event.KindRunStarted, event.KindTurnStarted, event.KindMessageAssistant, event.KindToolStarted, event.KindToolRetry, event.KindToolFinished,
		event.KindModelRetry, event.KindLoopDetected, event.KindGuardrailEscalated, event.KindRecoveryFired, event.KindContextCompacted, event.KindLimitSoft, event.KindStopProposed,
		event.KindAgentFinished, event.KindRunFinished} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("no event %s", kind)
		}
	}
}
