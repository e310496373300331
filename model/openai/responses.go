package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// completeResponse makes one attempt by the Responses API. A reply is whole once the
// provider has reported that: a later failure is no error.
func (c *Client) completeResponse(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	r := newListener(Provider+"/"+req.Model, emit)
	params, err := c.responseParams(req)
	if err != nil {
		return r.partialReply(), err
	}
	a := modelhttp.NewAttempt(ctx, c.cfg.Transport, c.cfg.Timeouts, c.cfg.APIKey)
	defer a.Close()
	var res *http.Response
	// The SDK's own events decode the output of every tool of OpenAI's, and
	// fail where another server writes those fields differently.
	err = c.sdk.Post(a.Context(), "responses", params, &res, option.WithHTTPClient(a),
		option.WithHeader("Accept", "text/event-stream"), option.WithJSONSet("stream", true))
	if err != nil {
		return r.partialReply(), a.ModelError(err)
	}
	defer res.Body.Close()
	err = c.readEvents(a, res, r)
	return r.partialReply(), a.Outcome(r.stopped, err)
}

// readEvents feeds the events of a stream to r, up to its end or the first error.
func (c *Client) readEvents(a *modelhttp.Attempt, res *http.Response, r *responseListener) error {
	events := ssestream.NewDecoder(res)
	for !r.stopped && events.Next() {
		data := events.Event().Data
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			break
		}
		var e responseEvent
		if err := json.Unmarshal(data, &e); err != nil {
			return a.ModelError(err)
		}
		if failure := e.errorResponse(data); failure != nil {
			r.countUsage(e.Response)
			return modelhttp.ClassifyError(0, nil, failure, c.cfg.APIKey)
		}
		r.takeEvent(e)
		a.RecordGrowth(r.keptSize())
	}
	if r.stopped {
		return nil
	}
	if err := events.Err(); err != nil {
		return a.ModelError(err)
	}
	if a.SawDoneLine() && len(r.items) > 0 {
		r.endReply("")
	}
	return nil
}

// responseParams renders a request for the wire. Nothing of it is kept by OpenAI: what
// a model thought goes back to it encrypted, in the transcript.
func (c *Client) responseParams(req model.Request) (responses.ResponseNewParams, error) {
	messages, err := modelhttp.SendableWithMedia(req)
	if err != nil {
		return responses.ResponseNewParams{}, err
	}
	p := responses.ResponseNewParams{Model: req.Model, MaxOutputTokens: param.NewOpt(req.MaxOutput), Store: param.NewOpt(false)}
	items := conversationItems(messages, Provider+"/"+req.Model)
	if len(items) == 0 {
		return p, &model.Error{Class: model.BadRequest, Unbilled: true, Message: "not sent: every message is empty"}
	}
	p.Input.OfInputItemList = items
	if text := systemText(req); text != "" {
		p.Instructions = param.NewOpt(text)
	}
	for _, t := range req.Tools {
		tool, err := toolDeclaration(t)
		if err != nil {
			return p, err
		}
		p.Tools = append(p.Tools, responses.ToolUnionParam{OfFunction: &tool})
	}
	p.ToolChoice = toolChoice(req)
	if req.Temperature != nil && takesTemperature(req.Model, req.Effort) {
		p.Temperature = param.NewOpt(*req.Temperature)
	}
	if mayReason(req.Model) {
		p.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
		p.Reasoning.Effort = shared.ReasoningEffort(req.Effort)
	}
	if c.own {
		p.ServiceTier = responses.ResponseNewParamsServiceTierDefault
	}
	if s, ok := c.answerSchema(req); ok {
		f := param.Override[responses.ResponseFormatTextJSONSchemaConfigParam](s.withType("json_schema"))
		p.Text.Format.OfJSONSchema = &f
	}
	return p, nil
}

// toolDeclaration renders a tool with its schema as it was written. This API would
// else make every parameter required.
func toolDeclaration(t model.ToolSpec) (responses.FunctionToolParam, error) {
	schema, err := modelhttp.ToolSchema(t)
	if err != nil {
		return responses.FunctionToolParam{}, err
	}
	data, err := json.Marshal(struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict"`
	}{"function", t.Name, t.Description, schema, false})
	if err != nil {
		return responses.FunctionToolParam{}, &model.Error{Class: model.BadRequest, Unbilled: true,
			Message: "not sent: a tool's schema does not encode"}
	}
	return param.Override[responses.FunctionToolParam](json.RawMessage(data)), nil
}

// toolChoice renders the tool choice.
func toolChoice(req model.Request) responses.ResponseNewParamsToolChoiceUnion {
	mode := func(m responses.ToolChoiceOptions) responses.ResponseNewParamsToolChoiceUnion {
		return responses.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: param.NewOpt(m)}
	}
	switch forced := modelhttp.ToolChoice(req); {
	case req.NoTools && len(req.Tools) > 0:
		return mode(responses.ToolChoiceOptionsNone)
	case forced == model.ChoiceAny:
		return mode(responses.ToolChoiceOptionsRequired)
	case forced != "":
		return responses.ResponseNewParamsToolChoiceUnion{OfFunctionTool: &responses.ToolChoiceFunctionParam{Name: forced}}
	}
	return responses.ResponseNewParamsToolChoiceUnion{}
}
