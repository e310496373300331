package openai

import (
	"context"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// completeResponse makes one attempt by the Responses API. A reply is whole once the
// provider has reported that: a later failure is no error.
func (c *Client) completeResponse(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	r := newListener(Provider+"/"+req.Model, emit)
	body, err := c.renderResponses(req)
	if err != nil {
		return r.partialReply(), err
	}
	a := modelhttp.NewAttempt(ctx, c.cfg.Transport, c.cfg.Timeouts, c.cfg.APIKey)
	defer a.Close()
	e := new(responseEvent)
	err = a.Stream(c.endpoint, body, func(event modelhttp.Event) (over bool, err error) {
		if isDone(event.Data) {
			return true, nil
		}
		if err := e.decode(event.Data); err != nil {
			return false, a.ModelError(err)
		}
		if failure := e.errorResponse(event.Data); failure != nil {
			r.countUsage(e.Response)
			return false, modelhttp.ClassifyError(0, nil, failure, c.cfg.APIKey)
		}
		r.takeEvent(e)
		a.RecordGrowth(r.keptSize())
		return r.stopped, nil
	})
	if err == nil && !r.stopped && a.SawDoneLine() && len(r.items) > 0 {
		r.endReply("")
	}
	reply := r.partialReply()
	reply.Limits = readRateLimits(a.Header())
	return reply, a.Outcome(r.stopped, err)
}

// renderResponses renders a request to the Responses API. Nothing of it is kept by OpenAI:
// what a model thought goes back to it encrypted, in the transcript.
func (c *Client) renderResponses(req model.Request) ([]byte, error) {
	messages, err := modelhttp.SendableWithMedia(req)
	if err != nil {
		return nil, err
	}
	b := responseBody{Model: req.Model, MaxOutput: req.MaxOutput, Stream: true, Instructions: systemText(req),
		Input: conversationItems(messages, Provider+"/"+req.Model), ToolChoice: toolChoice(req, responsesChoice)}
	if len(b.Input) == 0 {
		return nil, modelhttp.UnsentError("every message is empty")
	}
	for _, t := range req.Tools {
		schema, err := modelhttp.ToolSchema(t)
		if err != nil {
			return nil, err
		}
		b.Tools = append(b.Tools, functionTool{Type: typeFunction, Name: t.Name, Description: t.Description, Parameters: schema})
	}
	if req.Temperature != nil && takesTemperature(req.Model, req.Effort) {
		b.Temperature = req.Temperature
	}
	if mayReason(req.Model) {
		b.Include = []string{"reasoning.encrypted_content"}
		if req.Effort != "" {
			b.Reasoning = &reasoningConfig{req.Effort}
		}
	}
	if c.own {
		b.ServiceTier = tierDefault
	}
	if s, ok := c.answerSchema(req); ok {
		s.Type = typeJSONSchema
		b.Text = &textConfig{s}
	}
	return modelhttp.EncodeBody(b)
}

// responsesChoice forces a tool.
func responsesChoice(name string) any { return namedTool{typeFunction, name} }

// toolChoice renders the tool choice; nil leaves it free. force is how the API forces a tool.
func toolChoice(req model.Request, force func(name string) any) any {
	switch forced := modelhttp.ToolChoice(req); {
	case req.NoTools && len(req.Tools) > 0:
		return choiceNone
	case forced == model.ChoiceAny:
		return choiceRequired
	case forced != "":
		return force(forced)
	}
	return nil
}
