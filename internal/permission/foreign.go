package permission

import (
	"errors"
	"fmt"
	"strings"
)

// Calls of agents of other programs leave the machine: unlike a delegation to an agent of the run, such a call is one
// with a side effect, and a rule that allows it names the agent.

// callsForeign reports whether a call is to an agent of another program: its name is HARNESS/OWNER/NAME.
func callsForeign(c Call) bool {
	return c.Tool == delegateTool && strings.Contains(factsOf(c).Agent, "/")
}

// allForeign is the pattern of all agents of other programs.
const allForeign = "*/*"

// matchesAgent compares a pattern with the name of an agent: the name itself, HARNESS/* and HARNESS/OWNER/* for all
// agents of other programs whose names begin so, or allForeign.
func matchesAgent(pattern, name string) bool {
	if pattern == allForeign {
		return strings.Contains(name, "/")
	}
	prefix, wild := strings.CutSuffix(pattern, "*")
	return pattern == name || wild && len(name) > len(prefix) && strings.HasPrefix(name, prefix)
}

// checkAgentPattern refuses a pattern that matchesAgent does not understand.
func checkAgentPattern(pattern string) error {
	name, wild := strings.CutSuffix(pattern, "/*")
	if pattern == allForeign {
		return nil
	}
	if strings.ContainsAny(name, "*()") || wild && (name == "" || strings.Count(name, "/") > 1) {
		return fmt.Errorf("%q takes exactly one name; HARNESS/*, HARNESS/OWNER/* and */* are about agents of other programs", delegateTool)
	}
	return nil
}

// checkHandoffPattern refuses a pattern that is not the name of one agent of the run.
func checkHandoffPattern(pattern string) error {
	if strings.ContainsAny(pattern, "*()/") {
		return fmt.Errorf("%q takes exactly one name of an agent of the run", handoffTool)
	}
	return nil
}

// checkSkillPattern refuses a pattern that is not the name of one skill.
func checkSkillPattern(pattern string) error {
	if strings.ContainsAny(pattern, "*()") {
		return errors.New(`"skill" takes exactly one name`)
	}
	return nil
}
