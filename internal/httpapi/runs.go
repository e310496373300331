package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/client/audit"
	"github.com/troupe-run/troupe/client/report"
	"github.com/troupe-run/troupe/internal/term"
)

const (
	// listDefault is how many runs a page has unless the request says otherwise, listMax the most.
	listDefault = 50
	listMax     = 1000
	// waitMax is the longest that a request may wait for a result.
	waitMax = time.Minute
)

// states are the states of a run.
var states = []string{string(client.RunLive), string(client.RunQueued), string(client.RunParked), string(client.RunFinished), string(client.RunInterrupted)}

// runPaths begins runs, lists them, and shows one in its many forms.
type runPaths struct{ client *client.Client }

// listRuns is GET /api/v1/runs: the runs, newest first, as `list -o json` prints them. The header
// Link names the next page.
func (p runPaths) listRuns(w http.ResponseWriter, r *http.Request) {
	q := queryReader{values: r.URL.Query()}
	limit := q.number("limit", listDefault, 1, listMax)
	request := client.ListRequest{Limit: limit, State: client.RunState(q.oneOf("state", states...)), Since: q.time("since"), Before: q.text("cursor")}
	if !q.accept(w, "limit", "state", "since", "cursor") {
		return
	}
	list, err := p.client.ListRuns(r.Context(), request)
	if err != nil {
		refuseError(w, err)
		return
	}
	if len(list) >= limit {
		next := r.URL.Query()
		next.Set("cursor", list[len(list)-1].RunID)
		w.Header().Set("Link", "<"+(&url.URL{Path: r.URL.Path, RawQuery: next.Encode()}).String()+`>; rel="next"`)
	}
	writeJSON(w, http.StatusOK, list)
}

// startRun is POST /api/v1/runs. The client may choose run_id: the same request again starts nothing.
func (p runPaths) startRun(w http.ResponseWriter, r *http.Request) {
	var request client.RunRequest
	if err := readBody(r, &request, true); err != nil {
		refuseBody(w, err)
		return
	}
	if request.Instead != "" && heldByAgent(r) { // it answers a question of the run that it forks
		refuseError(w, errAgentAnswers)
		return
	}
	if request.RunID == "" {
		request.RunID = client.NewID()
	}
	request.Trace = cmp.Or(request.Trace, r.Header.Get(client.TraceHeader))
	accepted, err := p.client.Run(r.Context(), request)
	if err != nil {
		refuseError(w, err)
		return
	}
	if accepted.Preview != nil { // of a dry run
		writeJSON(w, http.StatusOK, accepted)
		return
	}
	location := "/api/v1/runs/" + url.PathEscape(accepted.RunID)
	if accepted.Schedule != "" {
		location = "/api/v1/schedules/" + url.PathEscape(accepted.Schedule)
	}
	w.Header().Set("Location", location)
	code := http.StatusCreated
	if accepted.Existed {
		code = http.StatusOK
	}
	writeJSON(w, code, accepted)
}

// runHandler answers a request about a run.
type runHandler func(w http.ResponseWriter, r *http.Request, run string)

// withRun is a handler of a path about one run. As in the CLI, {id} is a whole run id, the beginning
// of exactly one, or "last".
func withRun(c *client.Client, handle runHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		run, err := c.FindRun(r.Context(), r.PathValue("id"))
		if err != nil {
			refuseError(w, err)
			return
		}
		handle(w, r, run)
	}
}

// answer answers with a document, or with the error of reading it.
func answer[T any](w http.ResponseWriter, doc T, err error) {
	if err != nil {
		refuseError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, doc)
}

// getRun is GET /api/v1/runs/{id}: its state and result, and with describe=true its configuration. With brief=true it has
// no result of a run that works, for which the node would replay the log of the run.
func (p runPaths) getRun(w http.ResponseWriter, r *http.Request, run string) {
	q := queryReader{values: r.URL.Query()}
	describe, brief := q.flag("describe"), q.flag("brief")
	if !q.accept(w, "describe", "brief") {
		return
	}
	ask := p.client.Get
	switch {
	case describe:
		ask = p.client.Describe
	case brief:
		ask = p.client.State
	}
	info, err := ask(r.Context(), run)
	answer(w, info, err)
}

// getTree is GET /api/v1/runs/{id}/tree: the result so far, with the agents.
func (p runPaths) getTree(w http.ResponseWriter, r *http.Request, run string) {
	info, err := p.client.Get(r.Context(), run)
	answer(w, resultOf(info), err)
}

// resultOf is the result of a run; without one, it has nothing but the run.
func resultOf(i client.RunInfo) event.Result {
	if i.Result == nil {
		return event.Result{Type: "result", Run: i.RunID, Partial: true, Agents: []event.AgentResult{}}
	}
	if i.State != client.RunFinished {
		i.Result.Partial = true
	}
	return *i.Result
}

// getResult is GET /api/v1/runs/{id}/result: 200 with the result of a run that has ended or is parked,
// otherwise 202 with what it has so far. With wait=DURATION the request waits for the end.
func (p runPaths) getResult(w http.ResponseWriter, r *http.Request, run string) {
	q := queryReader{values: r.URL.Query()}
	wait := q.duration("wait", waitMax)
	if !q.accept(w, "wait") {
		return
	}
	info, err := p.awaitResult(r.Context(), run, wait)
	if err != nil {
		refuseError(w, err)
		return
	}
	code := http.StatusOK
	if info.State != client.RunFinished && info.State != client.RunParked {
		code = http.StatusAccepted
	}
	writeJSON(w, code, resultOf(info))
}

// awaitResult returns a run once it has ended or is parked, or after a time.
func (p runPaths) awaitResult(ctx context.Context, run string, wait time.Duration) (client.RunInfo, error) {
	info, err := p.client.Get(ctx, run)
	if err != nil || wait == 0 || info.State == client.RunFinished || info.State == client.RunParked {
		return info, err
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ended, err := p.client.Wait(waiting, run)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return p.client.Get(ctx, run)
	}
	return ended, err
}

// getBudget is GET /api/v1/runs/{id}/budget.
func (p runPaths) getBudget(w http.ResponseWriter, r *http.Request, run string) {
	info, err := p.client.Describe(r.Context(), run)
	if err != nil {
		refuseError(w, err)
		return
	}
	doc, err := info.Budget()
	answer(w, doc, err)
}

// getPolicy is GET /api/v1/runs/{id}/policy: the rules in force, and who set them.
func (p runPaths) getPolicy(w http.ResponseWriter, r *http.Request, run string) {
	info, err := p.client.Describe(r.Context(), run)
	if err != nil {
		refuseError(w, err)
		return
	}
	doc, err := info.Policy()
	answer(w, doc, err)
}

// getTimeline is GET /api/v1/runs/{id}/timeline: what each agent did when.
func (p runPaths) getTimeline(w http.ResponseWriter, r *http.Request, run string) {
	var t term.Timeline
	err := p.client.Events(r.Context(), run, nil, false, func(e client.Event, _ []byte) error {
		t.AddEvent(e)
		return nil
	})
	if err == nil && t.Tree().Ended.IsZero() {
		var info client.RunInfo
		if info, err = p.client.State(r.Context(), run); info.State == client.RunInterrupted {
			t.Tree().MarkInterrupted() // what was in progress ends at the newest event
		}
	}
	spans := t.Spans(time.Now())
	if spans == nil {
		spans = []term.Span{}
	}
	answer(w, spans, err)
}

// getReport is GET /api/v1/runs/{id}/report: what each step cost.
func (p runPaths) getReport(w http.ResponseWriter, r *http.Request, run string) {
	doc, err := report.Read(r.Context(), p.client, run)
	answer(w, doc, err)
}

// getAudit is GET /api/v1/runs/{id}/audit: who allowed what.
func (p runPaths) getAudit(w http.ResponseWriter, r *http.Request, run string) {
	doc, err := audit.Read(r.Context(), p.client, run)
	answer(w, doc, err)
}

// getTranscript is GET /api/v1/runs/{id}/transcript, of the root agent or of agent=ID.
func (p runPaths) getTranscript(w http.ResponseWriter, r *http.Request, run string) {
	q := queryReader{values: r.URL.Query()}
	who := q.text("agent")
	if !q.accept(w, "agent") {
		return
	}
	raw, err := p.client.Transcript(r.Context(), run, who)
	answer(w, raw, err)
}

// getQuestions is GET /api/v1/runs/{id}/questions: what the agents of the run ask a person.
func (p runPaths) getQuestions(w http.ResponseWriter, r *http.Request, run string) {
	if _, err := p.client.State(r.Context(), run); err != nil {
		refuseError(w, err)
		return
	}
	all, err := p.client.Questions(r.Context())
	list := []client.Question{}
	for _, q := range all {
		if q.RunID == run {
			list = append(list, q)
		}
	}
	answer(w, list, err)
}

// listQuestions is GET /api/v1/questions: those of all runs.
func listQuestions(c *client.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		list, err := c.Questions(r.Context())
		answer(w, list, err)
	}
}
