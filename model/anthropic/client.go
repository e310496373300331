// Package anthropic speaks the Messages API of Anthropic over net/http. It makes one request
// per attempt and never retries: every attempt holds a reservation of its own.
package anthropic

import (
	"context"
	"net/http"
	"strings"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// Provider is the name of this provider in "provider/model".
const Provider = "anthropic"

// DefaultBaseURL is Anthropic's own.
const DefaultBaseURL = "https://api.anthropic.com"

// Config configures a Client. The package reads no environment.
type Config struct {
	// BaseURL is ANTHROPIC_BASE_URL; a /v1 at its end is dropped, because the
	// API's paths begin with it. Empty means DefaultBaseURL.
	BaseURL string
	// APIKey is ANTHROPIC_API_KEY. With it, AuthToken is not sent.
	APIKey string
	// AuthToken is ANTHROPIC_AUTH_TOKEN, sent as a bearer token.
	AuthToken string
	// Cache asks the provider to cache what will be sent again, for five minutes:
	// tools and stable system prompt, and the messages. Off by default: writing the
	// cache costs more than plain input.
	Cache bool
	// DropStale asks the provider to overlook a thought of a newer model whose
	// beginning has changed since (a journal, a compaction, a fork): it refuses the
	// whole request otherwise. It takes a beta header, which a gateway may not know.
	DropStale bool
	// Timeouts of an attempt; zero fields mean the defaults of package modelhttp.
	Timeouts modelhttp.Timeouts
	// Transport carries the requests; nil means modelhttp.SharedTransport.
	Transport http.RoundTripper
}

// version is the version of the API, sent as a header.
const version = "2023-06-01"

// Client is a model.Client.
type Client struct {
	modelhttp.ClientName
	cfg            Config
	plain, binding modelhttp.Endpoint // without the beta header of dropBeta, and with it
	keys           []string
}

var _ model.Client = (*Client)(nil)

// New checks the configuration. A missing key is not an error here: a gateway at
// BaseURL may need none.
func New(cfg Config) (*Client, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	base, err := modelhttp.ParseBaseURL(strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), "/v1"))
	if err == nil {
		err = modelhttp.CheckKeys(cfg.APIKey, cfg.AuthToken)
	}
	if err != nil {
		return nil, err
	}
	if cfg.Transport == nil {
		cfg.Transport = modelhttp.SharedTransport()
	}
	token := ""
	if cfg.APIKey == "" && cfg.AuthToken != "" {
		token = "Bearer " + cfg.AuthToken
	}
	endpoint := func(beta string) modelhttp.Endpoint {
		return modelhttp.NewEndpoint(modelhttp.JoinPath(base, "v1/messages"), "Anthropic-Version", version,
			"X-Api-Key", cfg.APIKey, "Authorization", token, "Anthropic-Beta", beta)
	}
	return &Client{ClientName: "anthropic client", cfg: cfg, plain: endpoint(""), binding: endpoint(dropBeta), keys: []string{cfg.APIKey, cfg.AuthToken}}, nil
}

// Complete makes one attempt; see model.Client. A reply is whole once the
// provider has sent a stop reason: a later failure is no error.
func (c *Client) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	to, drop := c.plain, c.cfg.DropStale && modelhttp.IsOfFamily(req.Model, bound)
	if drop {
		to = c.binding
	}
	body, err := renderRequest(req, c.cfg.Cache, drop)
	if err != nil {
		return model.Reply{Message: model.Message{Role: model.Assistant}, Stop: model.StopUnknown}, err
	}
	a := modelhttp.NewAttempt(ctx, c.cfg.Transport, c.cfg.Timeouts, c.keys...)
	defer a.Close()
	r, e := newReader(Provider+"/"+req.Model, emit), new(streamEvent)
	err = a.Stream(to, body, func(event modelhttp.Event) (over bool, err error) {
		switch event.Name {
		case "", "ping":
			return false, nil // events of this API have names
		case "error":
			return false, modelhttp.ClassifyError(0, nil, event.Data, c.keys...)
		}
		if err := e.decode(event.Data); err != nil {
			return false, a.ModelError(err)
		}
		r.takeEvent(e)
		a.RecordGrowth(r.keptSize())
		return r.over, nil
	})
	reply := r.partialReply()
	reply.Limits = readRateLimits(a.Header())
	return reply, a.Outcome(r.stopped, err)
}
