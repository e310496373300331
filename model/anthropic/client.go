// Package anthropic speaks the Messages API of Anthropic through its official
// SDK, whose retries are off: every attempt holds a reservation of its own.
package anthropic

import (
	"context"
	"errors"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

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
	// Transport carries the requests; nil means http.DefaultTransport.
	Transport http.RoundTripper
}

// Client is a model.Client.
type Client struct {
	cfg  Config
	sdk  sdk.MessageService
	keys []string
}

var _ model.Client = (*Client)(nil)

// New checks the configuration. A missing key is not an error here: a gateway at
// BaseURL may need none.
func New(cfg Config) (*Client, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	if _, err := modelhttp.ParseBaseURL(cfg.BaseURL); err != nil {
		return nil, err
	}
	cfg.BaseURL = strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), "/v1")
	if cfg.Transport == nil {
		cfg.Transport = http.DefaultTransport
	}
	// NewMessageService, unlike NewClient, takes nothing from the environment.
	opts := []option.RequestOption{
		option.WithBaseURL(cfg.BaseURL),
		option.WithMaxRetries(0),
		option.WithoutOpenTelemetry(), // spans are ours, and hold no content
		option.WithOpenTelemetryPropagation(false),
	}
	switch {
	case cfg.APIKey != "":
		opts = append(opts, option.WithAPIKey(cfg.APIKey))
	case cfg.AuthToken != "":
		opts = append(opts, option.WithAuthToken(cfg.AuthToken))
	}
	return &Client{cfg: cfg, sdk: sdk.NewMessageService(opts...), keys: []string{cfg.APIKey, cfg.AuthToken}}, nil
}

// Complete makes one attempt; see model.Client. A reply is whole once the
// provider has sent a stop reason: a later failure is no error.
func (c *Client) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	params, err := renderRequest(req, c.cfg.Cache)
	if err != nil {
		return model.Reply{Message: model.Message{Role: model.Assistant}, Stop: model.StopUnknown}, err
	}
	opts := []option.RequestOption{option.WithHeader("Accept", "text/event-stream")}
	if c.cfg.DropStale && hasAnyPrefix(req.Model, bound) {
		params.Thinking = dropStale()
		opts = append(opts, option.WithHeader("Anthropic-Beta", dropBeta))
	}
	a := modelhttp.NewAttempt(ctx, c.cfg.Transport, c.cfg.Timeouts, c.keys...)
	defer a.Close()
	stream := c.sdk.NewStreaming(a.Context(), params, append(opts, option.WithHTTPClient(a))...)
	defer func() { _ = stream.Close() }() // it was read to its end, or its error is known
	r := newReader(Provider+"/"+req.Model, emit)
	for stream.Next() {
		r.takeEvent(stream.Current())
		a.RecordGrowth(r.keptSize())
		if r.over {
			break
		}
	}
	if err = stream.Err(); err != nil {
		err = c.sdkFailure(a, err)
	}
	return r.partialReply(), a.Outcome(r.stopped, err)
}

// sdkFailure reads an error of the SDK: an error event, or what wire makes of it.
func (c *Client) sdkFailure(a *modelhttp.Attempt, err error) error {
	var event *sdk.Error
	if errors.As(err, &event) {
		return modelhttp.ClassifyError(0, nil, []byte(event.RawJSON()), c.keys...)
	}
	return a.ModelError(err)
}

// String and GoString keep the key out of the printed form of a client.
func (c *Client) String() string { return "anthropic client" }

// GoString is for %#v.
func (c *Client) GoString() string { return c.String() }
