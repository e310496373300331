// Package openai speaks the Responses API and Chat Completions through the
// official SDK of OpenAI, whose retries are off: every attempt holds a
// reservation of its own. Ollama and the other servers that offer one of these APIs are reached
// by their base URL.
package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// Provider is the name of this provider in "provider/model".
const Provider = "openai"

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// API is one of the two APIs that OpenAI offers for the same models.
type API string

// The APIs. Other servers offer Chat Completions; in Responses, newer
// models reason while they use tools, and the client sends their reasoning back.
const (
	APIResponses API = "responses"
	APIChat      API = "chat"
)

// Structured selects the requests that carry the schema of an answer.
type Structured string

// Always, or only in requests without tools (a server may enforce the schema from
// the first token on, and then the model can call no tool), or never.
const (
	StructuredAlways Structured = "always"
	StructuredAlone  Structured = "alone"
	StructuredNever  Structured = "never"
)

// Config configures a Client. The package reads no environment.
type Config struct {
	// BaseURL is OPENAI_BASE_URL, with its /v1; empty means DefaultBaseURL.
	BaseURL string
	// APIKey is OPENAI_API_KEY; empty sends no key, as local servers expect.
	APIKey string
	// MaxTokens limits the output with max_tokens instead of
	// max_completion_tokens: for servers that support only the older name.
	MaxTokens bool
	// API selects the API; empty means Responses at OpenAI's own address
	// and Chat Completions elsewhere.
	API API
	// Structured selects when Request.Schema is sent; empty means always at OpenAI's
	// own address and never elsewhere: not every server accepts a schema.
	Structured Structured
	// Timeouts of an attempt; zero fields mean the defaults of package modelhttp.
	Timeouts modelhttp.Timeouts
	// Transport carries the requests; nil means http.DefaultTransport.
	Transport http.RoundTripper
}

// Client is a model.Client.
type Client struct {
	cfg Config
	// own: the client calls OpenAI's own address. There requests name the tier whose prices
	// are listed: by default the tier is a setting of the key's project.
	own bool
	// sdk is not made by NewClient, which takes options from the environment.
	sdk sdk.Client
}

var _ model.Client = (*Client)(nil)

// New checks the configuration. A missing key is no error here.
func New(cfg Config) (*Client, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	if _, err := modelhttp.ParseBaseURL(cfg.BaseURL); err != nil {
		return nil, err
	}
	if cfg.Transport == nil {
		cfg.Transport = http.DefaultTransport
	}
	own := Own(cfg.BaseURL)
	switch {
	case cfg.API == "" && own:
		cfg.API = APIResponses
	case cfg.API == "":
		cfg.API = APIChat
	case cfg.API != APIResponses && cfg.API != APIChat:
		return nil, &model.Error{Class: model.Misconfigured, Unbilled: true,
			Message: fmt.Sprintf("the API is neither %q nor %q", APIResponses, APIChat)}
	}
	if cfg.Structured == "" {
		cfg.Structured = StructuredNever
		if own {
			cfg.Structured = StructuredAlways
		}
	}
	opts := []option.RequestOption{option.WithBaseURL(cfg.BaseURL), option.WithMaxRetries(0)}
	if cfg.APIKey != "" {
		opts = append(opts, option.WithAPIKey(cfg.APIKey))
	}
	return &Client{cfg: cfg, own: own, sdk: sdk.Client{Options: opts, Chat: sdk.ChatService{Completions: sdk.NewChatCompletionService(opts...)}}}, nil
}

// Own reports whether a base URL is OpenAI's own; an empty one is.
func Own(base string) bool {
	u, err := url.Parse(base)
	own, err2 := url.Parse(DefaultBaseURL)
	return base == "" || err == nil && err2 == nil && strings.EqualFold(u.Host, own.Host)
}

// API is the one that the client speaks.
func (c *Client) API() API { return c.cfg.API }

// Complete makes one attempt; see model.Client. A reply is whole once the
// provider has sent a stop reason, or has ended the stream by its convention:
// a later failure is no error, though usage may then be unknown.
func (c *Client) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	if c.cfg.API == APIResponses {
		return c.completeResponse(ctx, req, emit)
	}
	params, err := c.chatRequest(req)
	if err != nil {
		return model.Reply{Message: model.Message{Role: model.Assistant}, Stop: model.StopUnknown}, err
	}
	a := modelhttp.NewAttempt(ctx, c.cfg.Transport, c.cfg.Timeouts, c.cfg.APIKey)
	defer a.Close()
	stream := c.sdk.Chat.Completions.NewStreaming(a.Context(), params, option.WithHTTPClient(a), option.WithHeader("Accept", "text/event-stream"))
	defer func() { _ = stream.Close() }() // it was read to its end, or its error is known
	r := newReader(emit)
	for stream.Next() {
		r.takeChunk(stream.Current())
		a.RecordGrowth(r.keptSize())
	}
	if r.began && stream.Err() == nil && a.SawDoneLine() {
		r.endContent()
	}
	if err = stream.Err(); err != nil {
		err = c.sdkFailure(a, err)
	}
	return r.partialReply(), a.Outcome(r.stopped, err)
}

// sdkFailure reads an error of the SDK: an error in an event, or what wire makes of it.
func (c *Client) sdkFailure(a *modelhttp.Attempt, err error) error {
	var event *ssestream.StreamError
	if errors.As(err, &event) {
		return modelhttp.ClassifyError(0, nil, event.Event.Data, c.cfg.APIKey)
	}
	return a.ModelError(err)
}

// String and GoString keep the key out of the printed form of a client.
func (c *Client) String() string { return "openai client" }

// GoString is for %#v.
func (c *Client) GoString() string { return c.String() }
