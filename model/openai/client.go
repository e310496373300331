// Package openai speaks the Responses API and Chat Completions over net/http. It makes one
// request per attempt and never retries: every attempt holds a reservation of its own. Ollama
// and the other servers that offer one of these APIs are reached by their base URL.
package openai

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

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
	// Transport carries the requests; nil means modelhttp.SharedTransport.
	Transport http.RoundTripper
}

// Client is a model.Client.
type Client struct {
	modelhttp.ClientName
	cfg Config
	// own: the client calls OpenAI's own address. There requests name the tier whose prices
	// are listed: by default the tier is a setting of the key's project.
	own      bool
	endpoint modelhttp.Endpoint // of the API that it speaks
}

var _ model.Client = (*Client)(nil)

// New checks the configuration. A missing key is no error here.
func New(cfg Config) (*Client, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	base, err := modelhttp.ParseBaseURL(cfg.BaseURL)
	if err == nil {
		err = modelhttp.CheckKeys(cfg.APIKey)
	}
	if err != nil {
		return nil, err
	}
	if cfg.Transport == nil {
		cfg.Transport = modelhttp.SharedTransport()
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
	key := ""
	if cfg.APIKey != "" {
		key = "Bearer " + cfg.APIKey
	}
	return &Client{ClientName: "openai client", cfg: cfg, own: own, endpoint: modelhttp.NewEndpoint(modelhttp.JoinPath(base, paths[cfg.API]), "Authorization", key)}, nil
}

// paths are those of the APIs, below the base URL.
var paths = map[API]string{APIResponses: "responses", APIChat: "chat/completions"}

// Own reports whether a base URL is OpenAI's own; an empty one is.
func Own(base string) bool {
	u, err := url.Parse(base)
	own, err2 := url.Parse(DefaultBaseURL)
	return base == "" || err == nil && err2 == nil && strings.EqualFold(u.Host, own.Host)
}

// Complete makes one attempt; see model.Client. A reply is whole once the
// provider has sent a stop reason, or has ended the stream by its convention:
// a later failure is no error, though usage may then be unknown.
func (c *Client) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	if c.cfg.API == APIResponses {
		return c.completeResponse(ctx, req, emit)
	}
	w := modelhttp.NewJSONWriter(req)
	body, err := c.renderChat(w, req)
	if err != nil {
		return model.Reply{Message: model.Message{Role: model.Assistant}, Stop: model.StopUnknown}, err
	}
	a := modelhttp.NewAttempt(ctx, c.cfg.Transport, c.cfg.Timeouts, c.cfg.APIKey)
	defer a.Close()
	r, chunk := newReader(emit), new(chatChunk)
	err = a.Stream(c.endpoint, body, func(e modelhttp.Event) (over bool, err error) {
		if isDone(e.Data) {
			return true, nil
		}
		if err := chunk.decode(e.Data); err != nil {
			return false, a.ModelError(err)
		}
		if !modelhttp.IsNoError(chunk.Error) {
			return false, modelhttp.ClassifyError(0, nil, e.Data, c.cfg.APIKey)
		}
		r.takeChunk(chunk)
		a.RecordGrowth(r.keptSize())
		return false, nil
	})
	if a.IsBodyRead() {
		w.Reuse()
	}
	if r.began && err == nil && a.SawDoneLine() {
		r.endStream()
	}
	reply := r.partialReply()
	reply.Limits = readRateLimits(a.Header())
	return reply, a.Outcome(r.stopped, err)
}

// isDone reports whether an event is the one after the last.
func isDone(data []byte) bool { return bytes.HasPrefix(data, []byte("[DONE]")) }
