package a2aserver

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

const (
	// callerName is who started a run, as its log has it.
	callerName = "a2a"
	// noForeignCalls keeps a run that another program has started from calling agents of other programs: they might call
	// back without end.
	noForeignCalls = "delegate(*/*)"
	// answerID is the one artifact of a task.
	answerID = "answer"
	// cancelGrace is how long a run may take to end at a safe boundary before what it does is aborted, and cancelWait how
	// long the response waits for that.
	cancelGrace, cancelWait = time.Second, 3 * time.Second
)

// States of a task.
const (
	stateSubmitted = "TASK_STATE_SUBMITTED"
	stateWorking   = "TASK_STATE_WORKING"
	stateCompleted = "TASK_STATE_COMPLETED"
	stateFailed    = "TASK_STATE_FAILED"
	stateCanceled  = "TASK_STATE_CANCELED"
	stateRejected  = "TASK_STATE_REJECTED"
	stateInput     = "TASK_STATE_INPUT_REQUIRED"
)

// sendParams are the parameters of a message.
type sendParams struct {
	Message struct {
		MessageID, ContextID, TaskID string
		Parts                        []struct {
			Text *string
			Data json.RawMessage
			Raw  string
			URL  string
		}
	}
	Configuration struct {
		ReturnImmediately          bool
		TaskPushNotificationConfig json.RawMessage
	}
	Metadata struct {
		// Troupe are further fields of the request for the run.
		Troupe client.RunRequest `json:"troupe"`
	}
}

// newRun makes the request for a run of a message.
func (x *exchange) newRun(r *http.Request, raw json.RawMessage) (sendParams, client.RunRequest, error) {
	var p sendParams
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, client.RunRequest{}, refusal(codeParams, "the parameters are not those of a message: %v", err)
	}
	run := p.Metadata.Troupe
	switch {
	case p.Message.MessageID == "":
		return p, run, refusal(codeParams, "the message has no messageId")
	case p.Message.TaskID != "":
		return p, run, refusal(codeUnsupported,
			"a task takes no further message. If it asks a question, a person answers with: troupe answer; a contextId of "+
				"your own lets a later message go on in one conversation")
	case len(p.Configuration.TaskPushNotificationConfig) > 0 && string(p.Configuration.TaskPushNotificationConfig) != "null":
		return p, run, errNoPush
	}
	var texts []string
	for _, part := range p.Message.Parts {
		switch {
		case part.Text != nil:
			texts = append(texts, *part.Text)
		case part.Raw == "" && part.URL == "" && len(part.Data) > 0:
			texts = append(texts, string(part.Data))
		default:
			return p, run, refusal(codeContentType, "a part of the message is a file; only texts and data are passed on")
		}
	}
	run.Prompt, run.Agent, run.Outside = strings.Join(texts, "\n\n"), x.agent.Name, true
	run.RunID, run.Caller = cmp.Or(run.RunID, client.NewID()), cmp.Or(run.Caller, callerName)
	run.Conversation, run.Trace = cmp.Or(p.Message.ContextID, run.Conversation), cmp.Or(run.Trace, r.Header.Get(client.TraceHeader))
	run.DisallowedTools = append(slices.Clone(run.DisallowedTools), noForeignCalls)
	x.traceRun(p.Message.MessageID, &run)
	return p, run, nil
}

// send answers SendMessage: at once, or when the run has ended or waits for a person. A client that
// goes away changes nothing.
func (x *exchange) send(r *http.Request, raw json.RawMessage) error {
	p, run, err := x.newRun(r, raw)
	if err != nil {
		return err
	}
	watch, err := x.cfg.Client.NewRunWatch(run.RunID)
	if err != nil {
		return err
	}
	defer watch.Close()
	if _, err := x.cfg.Client.Run(context.WithoutCancel(r.Context()), run); err != nil {
		return err
	}
	if p.Configuration.ReturnImmediately {
		x.traceState(stateSubmitted)
		x.reply(map[string]any{"task": submittedTask(run)})
		return nil
	}
	info, err := watch.Wait(r.Context())
	if err != nil {
		return err
	}
	state, _ := stateOf(info)
	x.traceState(state)
	x.reply(map[string]any{"task": taskOf(info)})
	return nil
}

// taskID reads the parameters of a request about a task.
func taskID(raw json.RawMessage) (string, error) {
	var p struct{ ID string }
	if err := json.Unmarshal(raw, &p); err != nil || p.ID == "" {
		return "", refusal(codeParams, "the parameters name no task: they need id")
	}
	return p.ID, nil
}

// findTask returns the run of the task that a request is about.
func (x *exchange) findTask(ctx context.Context, raw json.RawMessage) (info client.RunInfo, err error) {
	id, err := taskID(raw)
	if err != nil {
		return info, err
	}
	if info, err = x.cfg.Client.Get(ctx, id); err != nil {
		return info, noTask(err)
	}
	return info, nil
}

func (x *exchange) getTask(ctx context.Context, raw json.RawMessage) error {
	info, err := x.findTask(ctx, raw)
	if err != nil {
		return err
	}
	x.reply(taskOf(info))
	return nil
}

// noTask makes an error about an id one about a task: no run has an id of another form.
func noTask(err error) error {
	if known := explain(err); known.Code == codeParams {
		return refusal(codeNoTask, "there is no such task: %s", known.Message)
	}
	return err
}

// cancelTask cancels a run: at its next safe boundary, and soon after at once.
func (x *exchange) cancelTask(ctx context.Context, raw json.RawMessage) error {
	info, err := x.findTask(ctx, raw)
	if err != nil {
		return err
	}
	if info.State == client.RunFinished {
		return refusal(codeNotCancelable, "the task has ended")
	}
	const why = "a client of A2A"
	reply, err := x.cfg.Client.Cancel(ctx, client.CancelRequest{RunID: info.RunID, Why: why, WaitMS: cancelGrace.Milliseconds()})
	if err == nil && len(reply.Pending) > 0 {
		_, err = x.cfg.Client.Cancel(ctx, client.CancelRequest{RunID: info.RunID, Why: why, Now: true, WaitMS: cancelWait.Milliseconds()})
	}
	if err == nil {
		info, err = x.cfg.Client.Get(ctx, info.RunID)
	}
	if err != nil {
		return err
	}
	x.reply(taskOf(info))
	return nil
}

// status is the status of a task.
func status(state, words string) map[string]any {
	s := map[string]any{"state": state, "timestamp": time.Now().UTC().Format(time.RFC3339Nano)}
	if words != "" {
		s["message"] = map[string]any{"messageId": client.NewID(), "role": "ROLE_AGENT", "parts": []any{map[string]any{"text": words}}}
	}
	return s
}

// submittedTask is the task of a run that a node has accepted.
func submittedTask(run client.RunRequest) map[string]any {
	return map[string]any{"id": run.RunID, "contextId": conversationOf(run), "status": status(stateSubmitted, "")}
}

// conversationOf is the conversation of a run: a run without one is one of its own.
func conversationOf(run client.RunRequest) string { return cmp.Or(run.Conversation, run.RunID) }

// taskOf is the task of a run as it is now.
func taskOf(info client.RunInfo) map[string]any {
	t := map[string]any{"id": info.RunID, "contextId": cmp.Or(info.Conversation, info.RunID), "status": status(stateOf(info))}
	if r := info.Result; r != nil && info.State == client.RunFinished {
		if r.Text != "" {
			t["artifacts"] = []any{artifact(r.Text)}
		}
		t["metadata"] = map[string]any{"troupe": map[string]any{"run_id": info.RunID, "stop_reason": r.Reason, "partial": r.Partial, "total_cost_usd": r.CostUSD, "cost_known": r.CostKnown, "tokens_used": r.Budget.Used}}
	}
	return t
}

// artifact is the answer, or a piece of it.
func artifact(text string) map[string]any {
	return map[string]any{"artifactId": answerID, "name": answerID, "parts": []any{map[string]any{"text": text}}}
}

// stateOf returns the state of the task of a run, with a description.
func stateOf(info client.RunInfo) (state, words string) {
	r := info.Result
	switch {
	case info.State == client.RunQueued:
		return stateSubmitted, ""
	case info.State == client.RunParked:
		return stateInput, questionOf(info)
	case info.State != client.RunFinished:
		return stateWorking, ""
	case r == nil:
		return stateFailed, "the run has ended, and its result is not known"
	case !r.IsError:
		return stateCompleted, ""
	}
	words = string(r.Reason)
	if r.Detail != "" {
		words += ": " + r.Detail
	}
	switch r.Reason {
	case spec.ByCancel, spec.AbortedStreaming, spec.AbortedTools:
		return stateCanceled, words
	case spec.Refused:
		return stateRejected, words
	}
	return stateFailed, words
}

// questionOf is what a run asks a person, and how that person answers. No message to the task does:
// it may come from a model.
func questionOf(info client.RunInfo) string {
	var agents []event.AgentResult
	if info.Result != nil {
		agents = info.Result.Agents
	}
	for _, a := range agents {
		if a.Query != nil {
			return a.Query.Question + "\n\nA person answers with: troupe answer " + info.RunID + " " + a.Query.Query + " approve|deny|skip|TEXT --agent " + string(a.ID)
		}
	}
	return "the run waits for a person: troupe questions shows for what"
}
