package agentprotocol

import (
	"cmp"
	"errors"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// problem is an error as the caller reads it. Its code is one of the protocol: 400, 401, 403, 404, 409, 429 and 500.
type problem struct {
	code string

	Error   string `json:"error"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	// RetryAfterS says when to send the prompt again, if the node is only busy.
	RetryAfterS int    `json:"retry_after_s,omitempty"`
	RunID       string `json:"run_id,omitempty"`
	StopReason  string `json:"stop_reason,omitempty"`
	Partial     bool   `json:"partial,omitempty"` // the text that was sent is a part of the answer
	TokensUsed  int64  `json:"tokens_used,omitempty"`
	TokensLimit int64  `json:"tokens_limit,omitempty"`
}

// refusals are the errors of nodes by their code. The protocol has no 410, 503 and 507.
var refusals = map[string]problem{
	client.CodeBad:         {code: client.CodeBad, Error: "bad_request"},
	client.CodeForbidden:   {code: client.CodeForbidden, Error: "forbidden"},
	client.CodeNotFound:    {code: client.CodeNotFound, Error: "not_found"},
	client.CodeConflict:    {code: client.CodeConflict, Error: "conflict"},
	client.CodeGone:        {code: client.CodeNotFound, Error: "deleted"},
	client.CodeLimit:       {code: client.CodeLimit, Error: "rate_limited"},
	client.CodeUnavailable: {code: client.CodeInternal, Error: "unavailable"},
	client.CodeLogs:        {code: client.CodeInternal, Error: "logs_unavailable"},
}

// refusalOf makes the problem of an error that a node, or the client of one, returned.
func refusalOf(err error) problem {
	p := problem{code: client.CodeInternal, Error: "internal", Message: err.Error()}
	var refused *client.Error
	switch {
	case errors.As(err, &refused):
		if known, ok := refusals[refused.Code]; ok {
			p = known
		}
		p.Message, p.Hint = refused.Text, refused.Hint
		p.RetryAfterS = int((refused.Retry + time.Second - 1) / time.Second)
	case client.Lost(err):
		p.Error = "unavailable"
	}
	return p
}

// outcomes are the ends of a run that are errors, by the word of event.Subtype.
var outcomes = map[string]problem{
	"error_max_tokens":       {code: client.CodeLimit, Error: "budget_exhausted", Message: "the token budget of the run is used up"},
	"error_max_budget_usd":   {code: client.CodeLimit, Error: "budget_exhausted", Message: "the money of the run is used up"},
	"error_max_turns":        {code: client.CodeLimit, Error: "limit_reached", Message: "the turns of the run are used up"},
	"error_max_tool_calls":   {code: client.CodeLimit, Error: "limit_reached", Message: "the tool calls of the run are used up"},
	"error_timeout":          {code: client.CodeLimit, Error: "limit_reached", Message: "the time of the run is used up"},
	"error_needs_human":      {code: client.CodeConflict, Error: "needs_human", Message: "the run ended because a person must decide"},
	"error_refused":          {code: client.CodeForbidden, Error: "refused", Message: "the agent, or a rule of the node, refused the work"},
	"error_cancelled":        {code: client.CodeConflict, Error: "canceled", Message: "the run was canceled"},
	"error_provider":         {code: client.CodeInternal, Error: "model_error", Message: "the model failed"},
	"error_during_execution": {code: client.CodeInternal, Error: "failed", Message: "the run failed"},
}

// outcomeOf makes the problem of the end of a run; ok is false if the run was successful.
func outcomeOf(r event.Result) (p problem, ok bool) {
	p, ok = outcomes[event.Subtype(r.Reason)]
	if !ok {
		return p, false
	}
	p.Message = cmp.Or(r.Detail, p.Message)
	p.StopReason, p.Partial = string(r.Reason), r.Partial
	p.TokensUsed, p.TokensLimit = r.Budget.Used, r.Budget.Limit
	return p, true
}

var (
	busyProblem    = problem{code: client.CodeLimit, Error: "rate_limited", Message: "the node answers as many prompts as it does at once", RetryAfterS: 5}
	stoppedProblem = problem{code: client.CodeNotFound, Error: "not_found", Message: "the session has been stopped"}
	bugProblem     = problem{code: client.CodeInternal, Error: "internal", Message: "internal error; the node's log has the details"}
	closingProblem = problem{code: client.CodeInternal, Error: "node_closing", Message: "the node is closing; the run goes on when a node takes it up", Hint: "troupe result RUN --wait"}
)
