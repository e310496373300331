package provider

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/provider/catalog"
	"github.com/troupe-run/troupe/model/openai"
)

// ProbeTimeout bounds the request that checks whether an Ollama answers.
const ProbeTimeout = 300 * time.Millisecond

// maxTags bounds its answer.
const maxTags = 1 << 20

const ollamaPort = "11434"

// chooseOllama serves a model of an Ollama through its OpenAI-compatible API.
func (cfg Config) chooseOllama(name, why string) (Choice, error) {
	client, err := openai.New(openai.Config{BaseURL: ollamaBase(cfg.lookupEnv("OLLAMA_HOST")) + "/v1", MaxTokens: true,
		API: openai.APIChat, Structured: openai.StructuredAlone,
		Timeouts: cfg.Timeouts, Transport: cfg.Transport})
	if err != nil {
		return Choice{}, err
	}
	c := Choice{Provider: Ollama, Model: name, Why: why, Client: client, Bound: BoundOf(Ollama), Price: freePrice}
	if strings.HasSuffix(name, "cloud") {
		c.Price = budget.Price{} // runs at Ollama, on an unknown plan
	}
	f := cfg.overriddenFacts(Ollama, name).Merge(catalog.Facts{Price: c.Price})
	c.Price, c.Window, c.MaxOutput = f.Price, f.Window, f.Output
	return c, nil
}

// probeOllama returns the first chat model of the Ollama at OLLAMA_HOST, or "".
func (cfg Config) probeOllama(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, ollamaBase(cfg.lookupEnv("OLLAMA_HOST"))+"/api/tags", nil)
	if err != nil {
		return ""
	}
	res, err := cfg.Transport.RoundTrip(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	var tags struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if res.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(res.Body, maxTags)).Decode(&tags) != nil {
		return ""
	}
	for _, m := range tags.Models {
		if m.Name != "" && !strings.Contains(m.Name, "embed") {
			return m.Name
		}
	}
	return ""
}

// ollamaBase reads OLLAMA_HOST as the base of a URL. Ollama may listen on every address;
// the client then connects to this machine.
func ollamaBase(v string) string {
	scheme, port := "http", ollamaPort
	if before, rest, ok := strings.Cut(v, "://"); ok {
		if v = rest; before == "https" {
			scheme, port = "https", "443"
		}
	}
	v, _, _ = strings.Cut(v, "/")
	if i := strings.LastIndexByte(v, '@'); i >= 0 {
		v = v[i+1:]
	}
	host := strings.Trim(v, "[]")
	if h, p, err := net.SplitHostPort(v); err == nil {
		if host = h; p != "" {
			port = p
		}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

func sameHost(a, b string) bool {
	u, err := url.Parse(a)
	v, err2 := url.Parse(b)
	return err == nil && err2 == nil && strings.EqualFold(u.Host, v.Host)
}
