package httpapi

import (
	"net"
	"net/http"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/process"
)

// Recorded answers a command: the log of the run holds it. A client that chose request_id may send
// the same command again.
type Recorded struct {
	RunID   string `json:"run_id"`
	Request string `json:"request_id"`
}

// readCommand decodes the body of a command. run and request are its fields run_id, which may only
// repeat the path, and request_id.
func readCommand(w http.ResponseWriter, r *http.Request, id string, doc any, run, request *string) bool {
	if err := readBody(r, doc, true); err != nil {
		refuseBody(w, err)
		return false
	}
	if *run != "" && *run != id {
		refuse(w, http.StatusBadRequest, "the body names the run "+quoteShort(*run)+" and the path another",
			"leave run_id out of the body")
		return false
	}
	*run = id
	if *request == "" {
		*request = client.NewID()
	}
	return true
}

// commandPaths passes commands for runs on to the node.
type commandPaths struct{ client *client.Client }

// cancelRun is POST /api/v1/runs/{id}/cancel.
func (p commandPaths) cancelRun(w http.ResponseWriter, r *http.Request, run string) {
	var c client.CancelRequest
	if !readCommand(w, r, run, &c, &c.RunID, &c.Request) {
		return
	}
	reply, err := p.client.Cancel(r.Context(), c)
	answer(w, reply, err)
}

// steerRun is POST /api/v1/runs/{id}/steer.
func (p commandPaths) steerRun(w http.ResponseWriter, r *http.Request, run string) {
	var c client.SteerRequest
	if readCommand(w, r, run, &c, &c.RunID, &c.Request) {
		answer(w, Recorded{run, c.Request}, p.client.Steer(r.Context(), c))
	}
}

// errAgentAnswers refuses an answer of an agent's program, which may have read the token of its user.
var errAgentAnswers = &client.Error{Code: client.CodeForbidden, Text: bus.AgentRefused, Hint: "a person does it, in a terminal of their own"}

// heldByAgent reports whether an agent's program has sent a request.
func heldByAgent(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && process.IsAgentPeerTCP(r.RemoteAddr, local.String())
}

// answerQuery is POST /api/v1/runs/{id}/answer.
func (p commandPaths) answerQuery(w http.ResponseWriter, r *http.Request, run string) {
	var c client.AnswerRequest
	if heldByAgent(r) {
		refuseError(w, errAgentAnswers)
		return
	}
	if readCommand(w, r, run, &c, &c.RunID, &c.Request) {
		answer(w, Recorded{run, c.Request}, p.client.Answer(r.Context(), c))
	}
}

// changeBudget is POST /api/v1/runs/{id}/budget.
func (p commandPaths) changeBudget(w http.ResponseWriter, r *http.Request, run string) {
	var c client.BudgetRequest
	if readCommand(w, r, run, &c, &c.RunID, &c.Request) {
		answer(w, Recorded{run, c.Request}, p.client.Budget(r.Context(), c))
	}
}

// setPolicy is POST /api/v1/runs/{id}/policy.
func (p commandPaths) setPolicy(w http.ResponseWriter, r *http.Request, run string) {
	var c client.PolicyRequest
	if readCommand(w, r, run, &c, &c.RunID, &c.Request) {
		answer(w, Recorded{run, c.Request}, p.client.Policy(r.Context(), c))
	}
}
