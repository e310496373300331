package request

import (
	"strings"

	"github.com/troupe-run/troupe/client"
)

// ParseAnswer parses a decision as people write it.
func ParseAnswer(run, agent, query, text string) client.AnswerRequest {
	r := client.AnswerRequest{RunID: run, Agent: agent, Query: query, Decision: strings.ToLower(strings.TrimSpace(text))}
	switch r.Decision {
	case "approve", "deny", "skip":
	case "y", "yes":
		r.Decision = "approve"
	case "n", "no":
		r.Decision = "deny"
	default:
		r.Decision, r.Text = "text", text
	}
	return r
}
