// Package gemini speaks Google's native REST API (streamGenerateContent) over
// net/http. It does not use Google's SDK, which adds 50 MB to every
// binary. It makes one request per attempt, and never retries.
//
// The schemas of tools are sent as JSON Schema, unchanged. Google supports a
// subset of it ($ref with few cycles, anyOf, enum, items, bounds, properties,
// required, additionalProperties, format) and ignores the rest, such as
// pattern and minLength: troupe checks the model's arguments anyway.
//
// Google documents maxOutputTokens as the limit of thinking and answer
// together, so an attempt is billed for at most its request and that limit.
package gemini

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// Provider is the name of this provider in "provider/model".
const Provider = "gemini"

// DefaultBaseURL is Google's own.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

// version is the version of the API, a part of every path.
const version = "/v1beta"

// keyHeader carries the key. It never stands in a URL, which others log.
const keyHeader = "X-Goog-Api-Key"

// Config configures a Client. The package reads no environment.
type Config struct {
	// BaseURL is GOOGLE_GEMINI_BASE_URL, with or without its /v1beta; empty
	// means DefaultBaseURL.
	BaseURL string
	// APIKey is GEMINI_API_KEY; empty sends no key, as a gateway may expect.
	APIKey string
	// Timeouts of an attempt; zero fields mean the defaults of package modelhttp.
	Timeouts modelhttp.Timeouts
	// Transport carries the requests; nil means modelhttp.SharedTransport.
	Transport http.RoundTripper
}

// Client is a model.Client.
type Client struct {
	modelhttp.ClientName
	cfg Config
}

var _ model.Client = (*Client)(nil)

// New checks the configuration. A missing key is no error here.
func New(cfg Config) (*Client, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	u, err := modelhttp.ParseBaseURL(cfg.BaseURL)
	if err == nil && (u.RawQuery != "" || u.Fragment != "") {
		err = &model.Error{Class: model.Misconfigured, Unbilled: true, Message: "the base URL has parameters"}
	}
	if err == nil {
		err = modelhttp.CheckKeys(cfg.APIKey)
	}
	if err != nil {
		return nil, err
	}
	cfg.BaseURL = strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), version)
	if cfg.Transport == nil {
		cfg.Transport = modelhttp.SharedTransport()
	}
	return &Client{ClientName: "gemini client", cfg: cfg}, nil
}

// Complete makes one attempt; see model.Client. A reply is whole once the
// provider has sent a stop reason: a later failure is no error, though
// usage may then be unknown.
func (c *Client) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	r := newReader(Provider+"/"+req.Model, emit)
	data, err := renderRequest(req)
	if err != nil {
		return r.partialReply(), err
	}
	to, err := c.endpoint(req.Model)
	if err != nil {
		return r.partialReply(), err
	}
	a := modelhttp.NewAttempt(ctx, c.cfg.Transport, c.cfg.Timeouts, c.cfg.APIKey)
	defer a.Close()
	err = a.Stream(to, data, func(event modelhttp.Event) (over bool, err error) {
		var e streamEvent
		if err := modelhttp.DecodeEvent(event.Data, &e); err != nil {
			return false, a.ModelError(err)
		}
		if !modelhttp.IsNoError(e.Error) {
			return false, modelhttp.ClassifyError(0, nil, event.Data, c.cfg.APIKey)
		}
		r.takeEvent(e)
		a.RecordGrowth(r.keptSize())
		return false, nil
	})
	reply := r.partialReply()
	reply.Limits = readRateLimits(a.Refusal())
	return reply, a.Outcome(r.stopped, err)
}

// endpoint is where the requests to a model go.
func (c *Client) endpoint(name string) (modelhttp.Endpoint, error) {
	to, err := url.Parse(c.cfg.BaseURL + version + "/models/" + url.PathEscape(name) + ":streamGenerateContent?alt=sse")
	if err != nil {
		return modelhttp.Endpoint{}, &model.Error{Class: model.Misconfigured, Unbilled: true, Message: "not sent: the base URL and the name of the model make no URL"}
	}
	return modelhttp.NewEndpoint(to, keyHeader, c.cfg.APIKey), nil
}
