// Package openai speaks the Responses API and Chat Completions through the
// official SDK of OpenAI, whose retries are off: every attempt holds a lease of
// its own. Ollama and the other servers that offer one of these APIs are reached
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

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/wire"
)

// Provider is the name of this provider in "provider/model".
const Provider = "openai"

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// API is one of the two that OpenAI has for the same models.
type API string

// The APIs. Chat Completions is what other servers offer; in Responses newer
// models reason beside tools, and what they thought goes back to them.
const (
	APIResponses API = "responses"
	APIChat      API = "chat"
)

// Structured says when the schema of an answer is sent.
type Structured string

// Always, or only in requests without tools (a server may hold the model to the
// schema from the first token on, and then it can call none), or never.
const (
	StructuredAlways Structured = "always"
	StructuredAlone  Structured = "alone"
	StructuredNever  Structured = "never"
)

// Config says where and as whom. The package reads no environment.
type Config struct {
	// BaseURL is OPENAI_BASE_URL, with its /v1; empty means DefaultBaseURL.
	BaseURL string
	// APIKey is OPENAI_API_KEY; empty sends none, as local servers like it.
	APIKey string
	// MaxTokens bounds the output by max_tokens instead of
	// max_completion_tokens: for servers that only know the older name.
	MaxTokens bool
	// API says which API is spoken; empty means Responses at OpenAI's own address
	// and Chat Completions elsewhere.
	API API
	// Structured says when Request.Schema is sent; empty means always at OpenAI's
	// own address and never elsewhere: not every server takes one.
	Structured Structured
	// Timeouts of an attempt; zero fields mean the defaults of package wire.
	Timeouts wire.Timeouts
	// Transport carries the requests; nil means http.DefaultTransport.
	Transport http.RoundTripper
}

// Client is a model.Client.
type Client struct {
	cfg Config
	// own: it is called at OpenAI's own address. There the tier is named whose
	// prices are listed: unsaid, it is what the project of the key is set to.
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
	if _, err := wire.BaseURL(cfg.BaseURL); err != nil {
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
// provider has said why it stopped, or has ended the stream by its convention:
// what breaks after that is no error, though usage may then be unknown.
func (c *Client) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	if c.cfg.API == APIResponses {
		return c.respond(ctx, req, emit)
	}
	params, err := c.request(req)
	if err != nil {
		return model.Reply{Message: model.Message{Role: model.Assistant}, Stop: model.StopUnknown}, err
	}
	a := wire.NewAttempt(ctx, c.cfg.Transport, c.cfg.Timeouts, c.cfg.APIKey)
	defer a.Close()
	stream := c.sdk.Chat.Completions.NewStreaming(a.Context(), params, option.WithHTTPClient(a), option.WithHeader("Accept", "text/event-stream"))
	defer stream.Close()
	r := newReader(emit)
	for stream.Next() {
		r.take(stream.Current())
		a.Grew(r.size())
	}
	if r.began && stream.Err() == nil && a.Done() {
		r.end()
	}
	if err = stream.Err(); err != nil {
		err = c.failure(a, err)
	}
	return r.reply(), a.End(r.stopped, err)
}

// failure reads an error of the SDK: an error in an event, or what wire makes of it.
func (c *Client) failure(a *wire.Attempt, err error) error {
	var event *ssestream.StreamError
	if errors.As(err, &event) {
		return wire.Classify(0, nil, event.Event.Data, c.cfg.APIKey)
	}
	return a.Failure(err)
}

// String and GoString keep the key out of what prints a client.
func (c *Client) String() string { return "openai client" }

// GoString is for %#v.
func (c *Client) GoString() string { return c.String() }
