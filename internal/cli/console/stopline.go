package console

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/internal/term"
)

// CanceledReasons are the ends of a run that a person has canceled.
var CanceledReasons = []spec.Reason{spec.ByCancel, spec.AbortedTools, spec.AbortedStreaming}

// limitFlags are the flags of the limits that end a run, each with its setting.
var limitFlags = map[spec.Reason]string{
	spec.MaxTurns:        "--max-turns (max_turns)",
	spec.MaxToolCalls:    "--max-tool-calls (max_tool_calls)",
	spec.TokenBudget:     "--max-tokens (max_tokens)",
	spec.CostBudget:      "--max-budget-usd (max_budget_usd)",
	spec.Timeout:         "--timeout (timeout)",
	spec.Vetoed:          "--max-vetoes (max_vetoes)",
	spec.Malformed:       "--max-malformed (max_malformed)",
	spec.MaxOutputTokens: "--max-output-tokens (max_output_tokens)",
	spec.Unanswered:      "--park-timeout (park_timeout)",
}

// agentLimitFlags are those of one agent, where they have other names.
var agentLimitFlags = map[spec.Reason]string{
	spec.MaxToolCalls: "--max-agent-tool-calls (max_agent_tool_calls)",
	spec.TokenBudget:  "--max-agent-tokens (max_agent_tokens)",
	spec.CostBudget:   "--max-agent-budget-usd (max_agent_budget_usd)",
}

// runsInDirectory is in the answers of the built-in investigation to a run without a directory.
const runsInDirectory = "`troupe run --dir .`"

// stopLine says in one line why a run has ended without success, or waits, and what to do next.
func stopLine(r event.Result, commands Commands) string {
	isWaiting := isParked(r)
	word, detail := "stopped: "+string(r.Reason), stopCause(r)
	switch {
	case isWaiting:
		detail = term.QuestionGist(r.Detail)
		word = "parked, and nothing is lost: " + string(r.Reason)
	case r.Reason == spec.ByCancel:
		word, detail = "canceled", strings.TrimPrefix(detail, "canceled ")
	case slices.Contains(CanceledReasons, r.Reason):
		word, detail = term.FormatReason(r.Reason), strings.TrimPrefix(detail, "canceled ")
	}
	if detail != "" {
		word += ": " + detail
	}
	if isWaiting {
		return word
	}
	var next []string
	flag := limitFlags[r.Reason]
	if own := agentLimitFlags[r.Reason]; own != "" && strings.Contains(detail, "the agent's limit") {
		flag = own
	}
	if flag != "" && !(r.Reason == spec.Malformed && strings.Contains(r.Detail, spec.NoDirectory)) { // more replies would call the same tools
		next = append(next, flag+" sets the limit")
	}
	switch {
	case r.Reason == spec.Refused && strings.Contains(r.Text, investigator.NeedsModel):
		next = append(next, "the same command with --model PROVIDER/MODEL asks a model, and "+commands.Command("models list")+" names those that you can use")
	case r.Reason == spec.Failed && strings.Contains(r.Detail, investigator.FileInTheWay): // a fork would meet it again
		next = append(next, "the same command after that")
	case r.Reason == spec.Refused && strings.Contains(r.Text, runsInDirectory), r.Reason == spec.Malformed && strings.Contains(r.Detail, spec.NoDirectory):
		next = append(next, "the same command with --dir . gives it a directory, file tools and the shell")
	case strings.Contains(r.Detail, spec.NobodyAsked):
		next = append(next, "the same command with --yes, --permission-mode acceptEdits or a rule that allows the call, as in --allowed-tools 'Write(docs/**)'")
	case r.Reason == spec.LogDamaged:
		next = append(next, commands.Command("verify "+r.Run)+" names the damage")
	case r.Turns == 0:
		next = append(next, commands.Command("events "+r.Run)+" shows what happened")
	default:
		fork := commands.ForkCommand(r.Run)
		if fork == "" {
			next = append(next, commands.Command("transcript "+r.Run)+" shows what was said")
			break
		}
		next = append(next, fork+" continues from its history")
	}
	return word + "; next: " + strings.Join(next, ", ")
}

// causeMax is how much of a cause the line shows; results in JSON have all of it.
const causeMax = 200

// childMark begins the answer of a child that stopped early, where an agent above quotes it.
const childMark = "[stopped early: "

// stopCause says why a run ended. Where its detail quotes a child that failed, the cause is what the innermost of
// them said, and the agent is named.
func stopCause(r event.Result) string {
	detail, cause := r.Detail, ""
	for below := spec.Root; ; {
		child, found := failedChild(r.Agents, below, detail)
		if !found {
			break
		}
		below, detail = child.ID, child.Detail
		cause = "agent " + child.Name + " (" + string(child.ID) + ") ended with " + term.FormatReason(child.Reason)
		if child.Detail != "" {
			cause += ": " + child.Detail
		}
	}
	if cause == "" {
		cause = r.Ending()
	}
	return clip.Marked(term.CleanLine(cause), causeMax, "…")
}

// failedChild finds the child of an agent whose failure the agent's detail quotes. Of several that ended with the
// same reason it is the last.
func failedChild(agents []event.AgentResult, parent spec.ID, detail string) (child event.AgentResult, found bool) {
	for _, a := range agents {
		if a.Parent != nil && *a.Parent == parent && a.Phase == "done" && strings.Contains(detail, childMark+string(a.Reason)) {
			child, found = a, true
		}
	}
	return child, found
}
