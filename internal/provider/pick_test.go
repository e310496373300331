package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/provider/catalog"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
)

const secret = "sk-very-secret-1234"

// closedServerURL returns an address at which no Ollama answers.
func closedServerURL(t *testing.T) string {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	return s.URL
}

// emptyConfig is a configuration without anything, and with a built-in model.
func emptyConfig(t *testing.T, env map[string]string) provider.Config {
	t.Helper()
	s, err := script.Parse([]byte("default: [{text: built in}]"))
	if err != nil {
		t.Fatal(err)
	}
	if env == nil {
		env = map[string]string{}
	}
	if env["OLLAMA_HOST"] == "" {
		env["OLLAMA_HOST"] = closedServerURL(t)
	}
	return provider.Config{Env: func(k string) string { return env[k] }, Scout: s.Client("")}
}

func mustChoose(t *testing.T, cfg provider.Config) provider.Choice {
	t.Helper()
	c, err := provider.Choose(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(c.Why, secret) || strings.Contains(c.Why, "\n") || c.Why == "" || c.Client == nil || c.Bound == "" {
		t.Errorf("%+v", c)
	}
	return c
}

func TestModelIsChosenInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "play.yaml")
	if err := os.WriteFile(path, []byte("default: [{text: played}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"ANTHROPIC_API_KEY": secret, "OPENAI_API_KEY": secret, "GEMINI_API_KEY": secret}
	for name, c := range map[string]struct {
		env            map[string]string
		model, setting string
		want, why      string
		paid           bool
	}{
		"flag":                {all, "openai/gpt-5.4", "anthropic/x", "openai/gpt-5.4", "--model", true},
		"configuration":       {all, "", "anthropic/claude-opus-5-5", "anthropic/claude-opus-5-5", "configuration", true},
		"anthropic key":       {all, "", "", "anthropic/claude-sonnet-5-5", "ANTHROPIC_API_KEY is set", true},
		"anthropic token":     {map[string]string{"ANTHROPIC_AUTH_TOKEN": secret, "OPENAI_API_KEY": secret}, "", "", "anthropic/claude-sonnet-5-5", "ANTHROPIC_AUTH_TOKEN is set", true},
		"anthropic address":   {map[string]string{"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, "", "", "anthropic/claude-sonnet-5-5", "ANTHROPIC_BASE_URL is set", false},
		"openai key":          {map[string]string{"OPENAI_API_KEY": secret, "GEMINI_API_KEY": secret}, "", "", "openai/gpt-6-sol", "OPENAI_API_KEY is set", true},
		"a gateway":           {map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": secret}, "openai/gpt-6-sol", "", "openai/gpt-6-sol", "--model", true},
		"its own model":       {map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": secret}, "openai/our-own-model", "", "openai/our-own-model", "--model", false},
		"a typo at a gateway": {map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": secret}, "openai/gpt-6-sal", "", "openai/gpt-6-sal", "--model", true},
		"openai address":      {map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "", "", "openai/gpt-6-sol", "OPENAI_BASE_URL is set", false},
		"gemini key":          {map[string]string{"GEMINI_API_KEY": secret, "GOOGLE_API_KEY": "other"}, "", "", "gemini/gemini-3.8-flash", "GEMINI_API_KEY is set", true},
		"google key":          {map[string]string{"GOOGLE_API_KEY": secret}, "", "", "gemini/gemini-3.8-flash", "GOOGLE_API_KEY is set", true},
		"gemini by name":      {all, "gemini/gemini-4-argon", "", "gemini/gemini-4-argon", "--model", true},
		"gemini elsewhere":    {map[string]string{"GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1"}, "gemini/x", "", "gemini/x", "--model", false},
		"only its address":    {map[string]string{"GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1"}, "", "", "builtin/scout", "no key is set", false},
		"a key made of space": {map[string]string{"OPENAI_API_KEY": " \n"}, "", "", "builtin/scout", "no key is set", false},
		"nothing":             {nil, "", "", "builtin/scout", "no key is set", false},
		"built in by name":    {all, "builtin/scout", "", "builtin/scout", "--model", false},
		"script":              {all, "script/" + path, "", "script/" + path, "--model", false},
		"ollama by name":      {all, "ollama/qwen3:8b", "", "ollama/qwen3:8b", "--model", false},
		"slashes in the name": {all, "openai/meta/llama-4", "", "openai/meta/llama-4", "--model", true},
	} {
		cfg := emptyConfig(t, c.env)
		cfg.Model, cfg.Setting = c.model, c.setting
		got := mustChoose(t, cfg)
		if got.Name() != c.want || !strings.Contains(got.Why, c.why) || got.Paid != c.paid {
			t.Errorf("%s: %s, paid %v, because %s", name, got.Name(), got.Paid, got.Why)
		}
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		env   map[string]string
		model string
		want  error
		says  string
	}{
		"no slash":         {nil, "no-such-model-at-all", provider.ErrName, "PROVIDER/MODEL"},
		"a listed model":   {nil, "gpt-5.4", provider.ErrName, "did you mean openai/gpt-5.4?"},
		"a typo":           {nil, "claude-opus-55", provider.ErrName, "did you mean anthropic/claude-opus-5-5?"},
		"a rank":           {map[string]string{"OPENAI_API_KEY": "k"}, "haiku", provider.ErrName, "did you mean openai/gpt-6-luna?"},
		"a typed provider": {nil, "opnai/gpt-6-sol", provider.ErrName, "did you mean openai/gpt-6-sol?"},
		"no scheme":        {map[string]string{"OPENAI_BASE_URL": "localhost:8000/v1"}, "", nil, "did you mean http://localhost:8000/v1?"},
		"other scheme":     {map[string]string{"OPENAI_BASE_URL": "ftp://localhost"}, "", nil, `its scheme is "ftp"`},
		"no scheme, host":  {map[string]string{"OPENAI_BASE_URL": "llm.example.com/v1"}, "", nil, "did you mean https://llm.example.com/v1?"},
		"no model":         {nil, "openai/", provider.ErrName, "PROVIDER/MODEL"},
		"unknown provider": {nil, "acme/x", provider.ErrName, "ollama"},
		"unknown built-in": {nil, "builtin/genius", provider.ErrName, "builtin/scout"},
		"no anthropic key": {nil, "anthropic/x", provider.ErrCredentials, "ANTHROPIC_API_KEY"},
		"no openai key":    {nil, "openai/x", provider.ErrCredentials, "OPENAI_API_KEY"},
		"no gemini key":    {nil, "gemini/x", provider.ErrCredentials, "GEMINI_API_KEY"},
		"gemini address":   {map[string]string{"GOOGLE_GEMINI_BASE_URL": "h" + secret, "GEMINI_API_KEY": secret}, "", nil, "GOOGLE_GEMINI_BASE_URL"},
		"no script":        {nil, "script/does-not-exist.yaml", os.ErrNotExist, "does-not-exist"},
		"address":          {map[string]string{"OPENAI_BASE_URL": "h" + secret}, "", nil, "OPENAI_BASE_URL"},
	} {
		cfg := emptyConfig(t, c.env)
		cfg.Model = c.model
		_, err := provider.Choose(t.Context(), cfg)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	cfg := emptyConfig(t, nil)
	cfg.Scout = nil
	if _, err := provider.Choose(t.Context(), cfg); !errors.Is(err, provider.ErrNoModel) {
		t.Error(err)
	}
}

// TestOllama is asked only when nothing is named, answers as itself, and is
// spoken to with max_tokens.
func TestOllama(t *testing.T) {
	var asked []string
	var body map[string]any
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		if r.URL.Path == "/api/tags" {
			_, _ = io.WriteString(w, `{"models":[{"name":"nomic-embed-text:latest"},{"name":"qwen3:8b"}]}`)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer s.Close()
	env := map[string]string{"OLLAMA_HOST": strings.TrimPrefix(s.URL, "http://")}
	c := mustChoose(t, emptyConfig(t, env))
	if c.Name() != "ollama/qwen3:8b" || !c.Price.Known {
		t.Errorf("%+v", c)
	}
	req := model.Request{Model: c.Model, MaxOutput: 7, Messages: []model.Message{{Role: model.User, Text: "a"}}}
	got, err := c.Client.Complete(t.Context(), req, nil)
	if err != nil || got.Message.Text != "hi" || got.UsageKnown || body["max_tokens"] != 7.0 {
		t.Errorf("%+v, %v, %v", got, err, body)
	}
	env["OPENAI_API_KEY"] = secret
	asked = nil
	if mustChoose(t, emptyConfig(t, env)); len(asked) != 0 {
		t.Errorf("asked %v though a key was set", asked)
	}
}

func TestASilentOllamaIsNotWaitedFor(t *testing.T) {
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer s.Close()
	defer close(over)
	began := time.Now()
	c := mustChoose(t, emptyConfig(t, map[string]string{"OLLAMA_HOST": s.URL}))
	if took := time.Since(began); c.Provider != provider.Builtin || took < provider.ProbeTimeout || took > time.Minute {
		t.Errorf("%s after %s", c.Name(), took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := provider.Choose(ctx, emptyConfig(t, map[string]string{"OLLAMA_HOST": s.URL})); err != nil || c.Provider != provider.Builtin {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestPrices(t *testing.T) {
	const million, part = 1_000_000, 10_000 // a short prompt
	for name, c := range map[string]struct {
		env           map[string]string
		known         bool
		nano          int64 // of a hundredth of a million tokens of each kind
		window, limit int64
	}{
		"anthropic/claude-opus-5-5":           {nil, true, (4_000 + 20_000 + 200 + 5_000) * part, million, 128_000},
		"anthropic/claude-haiku-4-5-20251001": {nil, true, (1_000 + 5_000 + 100 + 1_250) * part, 200_000, 64_000},
		"openai/gpt-6-sol":                    {nil, true, (2_000 + 10_000 + 200 + 2_500) * part, 272_000, 128_000},
		"openai/gpt-5.4-mini-2026-03-17":      {nil, true, (750 + 4_500 + 75 + 750) * part, 272_000, 128_000},
		"anthropic/claude-of-tomorrow":        {nil, false, 0, 0, 0},
		"openai/o3":                           {nil, false, 0, 0, 0},
		"openai/gpt-5.4":                      {map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, true, (2_500 + 15_000 + 250 + 2_500) * part, 272_000, 128_000},
		"openai/gpt-6-luna":                   {map[string]string{"OPENAI_BASE_URL": "https://api.openai.com/v1"}, true, (100 + 500 + 10 + 125) * part, 272_000, 128_000},
		"gemini/gemini-3.8-flash":             {nil, true, (1_500 + 7_500 + 150 + 1_500) * part, million, 65_536},
		"gemini/gemini-4-argon":               {map[string]string{"GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1"}, true, (4_000 + 20_000 + 200 + 4_000) * part, million, 65_536},
		"gemini/gemini-2.5-pro":               {nil, false, 0, 0, 0},
		"builtin/scout":                       {nil, true, 0, 0, 0},
		"ollama/gpt-oss:120b-cloud":           {nil, false, 0, 0, 0},
	} {
		env := map[string]string{"ANTHROPIC_API_KEY": secret, "OPENAI_API_KEY": secret, "GEMINI_API_KEY": secret}
		for k, v := range c.env {
			env[k] = v
		}
		cfg := emptyConfig(t, env)
		cfg.Model = name
		got := mustChoose(t, cfg)
		cost := got.Price.Cost(model.Usage{Input: part, Output: part, CacheRead: part, CacheCreation: part})
		if got.Price.Known != c.known || cost.Nano != c.nano || got.Window != c.window || got.MaxOutput != c.limit {
			t.Errorf("%s: %+v costs %d", name, got, cost.Nano)
		}
		if behind := len(c.env) > 0 && name != "openai/gpt-6-luna"; got.Price.Estimated != behind { // a gateway may bill another price
			t.Errorf("%s: estimated is %v", name, got.Price.Estimated)
		}
		if !c.known && got.Price != (budget.Price{}) {
			t.Errorf("%s: a price that is not known: %+v", name, got.Price)
		}
	}
}

// A prompt beyond the window of these models costs twice as much; a file of the operator
// takes precedence over the table, wherever the model is called.
//
//behaviour:shows G4
func TestPriceFileTakesPrecedence(t *testing.T) {
	table, err := catalog.ParseTable([]byte(`{"openai": {"models": {"gpt-6-sol": {"cost": {"input": 7, "output": 8}, "limit": {"context": 9000}},
	 "mine": {"cost": {"input": 1, "output": 2}}}}, "ollama": {"models": {"qwen3:8b": {"limit": {"context": 40960}}}},
	 "anthropic": {"models": {"claude-opus-5-5": {"limit": {"output": 500}}, "claude-haiku-5-5": {"cost": {"input": 90, "output": 90}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ANTHROPIC_API_KEY": secret, "OPENAI_API_KEY": secret, "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
	for name, want := range map[string]provider.Choice{
		"openai/gpt-6-sol":            {Price: budget.Price{Known: true, Input: 7000, Output: 8000, CacheRead: 7000, CacheWrite: 7000}, Window: 9000, MaxOutput: 128_000},
		"openai/gpt-6-sol-2026-10-01": {Price: budget.Price{Known: true, Input: 7000, Output: 8000, CacheRead: 7000, CacheWrite: 7000}, Window: 9000, MaxOutput: 128_000},
		"openai/mine":                 {Price: budget.Price{Known: true, Input: 1000, Output: 2000, CacheRead: 1000, CacheWrite: 1000}},
		"openai/gpt-6-luna": {Price: budget.Price{Known: true, Estimated: true, Input: 100, Output: 500, CacheRead: 10, CacheWrite: 125,
			Long: budget.Tier{Above: 272_000, Input: 200, Output: 750, CacheRead: 20, CacheWrite: 250}}, Window: 272_000, MaxOutput: 128_000},
		"anthropic/claude-opus-5-5": {Price: budget.Price{Known: true, Input: 4000, Output: 20_000, CacheRead: 200, CacheWrite: 5000}, Window: 1_000_000, MaxOutput: 500},
		"ollama/qwen3:8b":           {Price: budget.Price{Known: true}, Window: 40_960},
	} {
		cfg := emptyConfig(t, env)
		cfg.Model, cfg.Prices = name, table
		if got := mustChoose(t, cfg); got.Price != want.Price || got.Window != want.Window || got.MaxOutput != want.MaxOutput {
			t.Errorf("%s: %+v", name, got)
		}
	}
	cfg := emptyConfig(t, env)
	cfg.Model, cfg.Prices = "anthropic/claude-opus-5-5", table
	if cheap, ok := mustChoose(t, cfg).CheapestModel(); !ok || cheap.Model == "claude-haiku-5-5" {
		t.Errorf("the cheapest by the file is %s", cheap.Model)
	}
	for _, l := range provider.ListModels(table) {
		if l.Bound != provider.Documented || l.Provider == "openai" && l.Model == "gpt-6-sol" && l.Price.Input != 7000 {
			t.Errorf("%+v", l)
		}
	}
}

func TestGatesOfKeysDiffer(t *testing.T) {
	gates := map[string]string{}
	for _, env := range []map[string]string{{"GEMINI_API_KEY": secret}, {"GEMINI_API_KEY": "other"}, {"GEMINI_API_KEY": secret, "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1"}} {
		cfg := emptyConfig(t, env)
		cfg.Model = "gemini/gemini-4-argon"
		gates[mustChoose(t, cfg).ThrottleKey] = "seen"
	}
	if len(gates) != 3 {
		t.Errorf("two keys or addresses share a gate: %v", gates)
	}
}

// TestTheAPIOfOpenAI: the address, or OPENAI_API, decides which API is used.
func TestTheAPIOfOpenAI(t *testing.T) {
	for _, c := range []struct{ base, api, path string }{
		{"", "", "/v1/responses"}, {"", "chat", "/v1/chat/completions"}, {"http://127.0.0.1:1/v1", "", "/v1/chat/completions"},
		{"http://127.0.0.1:1/v1", "responses", "/v1/responses"},
	} {
		cfg := emptyConfig(t, map[string]string{"OPENAI_API_KEY": secret, "OPENAI_BASE_URL": c.base, "OPENAI_API": c.api})
		asked := ""
		cfg.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = r.URL.Path
			return nil, errors.New("nothing is sent")
		})
		choice := mustChoose(t, cfg)
		if _, err := choice.Client.Complete(t.Context(), model.Request{Model: choice.Model, MaxOutput: 16, Messages: []model.Message{{Role: model.User, Text: "a"}}}, nil); err == nil || asked != c.path {
			t.Errorf("%+v: asked %s, %v", c, asked, err)
		}
	}
	cfg := emptyConfig(t, map[string]string{"OPENAI_API_KEY": secret, "OPENAI_API": "soap"})
	if _, err := provider.Choose(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "OPENAI_API is neither responses nor chat") {
		t.Error(err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAnthropicItselfIsAskedToOverlookOldThoughts: a gateway may not know the
// header for it.
func TestAnthropicItselfIsAskedToOverlookOldThoughts(t *testing.T) {
	for base, want := range map[string]bool{"": true, "https://api.anthropic.com": true, "http://127.0.0.1:1": false} {
		var sent *http.Request
		cfg := emptyConfig(t, map[string]string{"ANTHROPIC_API_KEY": secret, "ANTHROPIC_BASE_URL": base})
		cfg.Transport = roundTrip(func(r *http.Request) (*http.Response, error) { sent = r; return nil, errors.New("nobody is there") })
		c := mustChoose(t, cfg)
		_, err := c.Client.Complete(t.Context(), model.Request{Model: c.Model, MaxOutput: 7, Messages: []model.Message{{Role: model.User, Text: "a"}}}, nil)
		if err == nil || sent == nil || sent.Header.Get("Anthropic-Beta") != "" != want {
			t.Errorf("%q: %v, %v", base, err, sent)
		}
	}
}

// TestLongPromptHasItsPublishedPrice: the whole call, its output too.
func TestLongPromptHasItsPublishedPrice(t *testing.T) {
	env := map[string]string{"ANTHROPIC_API_KEY": secret, "OPENAI_API_KEY": secret}
	for name, c := range map[string]struct{ short, input, output, read, write int64 }{
		"anthropic/claude-haiku-5-5": {100_000, 500, 2_500, 50, 625},
		"openai/gpt-5.6-terra":       {272_000, 4_000, 18_000, 400, 5_000},
		"openai/gpt-5.6-luna":        {272_000, 400, 1_800, 40, 500},
		"openai/gpt-6-sol":           {272_000, 4_000, 15_000, 400, 5_000},
	} {
		cfg := emptyConfig(t, env)
		cfg.Model = name
		p := mustChoose(t, cfg).Price
		for kind, d := range map[string]struct {
			u    model.Usage
			want int64
		}{
			"input": {model.Usage{Input: 1}, c.input}, "output": {model.Usage{Output: 1}, c.output}, "read": {model.Usage{CacheRead: 1}, c.read}, "write": {model.Usage{CacheCreation: 1}, c.write},
		} {
			if got, want := p.Cost(model.Usage{Input: c.short, CacheRead: 1}.Add(d.u)).Nano, c.short*c.input+c.read+d.want; got != want {
				t.Errorf("%s, %s: %d, want %d", name, kind, got, want)
			}
		}
	}
}

// TestAnthropicToolPromptIsCounted: by its price page at most 804 tokens, of its own
// models at any address.
func TestAnthropicToolPromptIsCounted(t *testing.T) {
	env := map[string]string{"ANTHROPIC_API_KEY": secret, "ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "OPENAI_API_KEY": secret}
	for name, want := range map[string]bool{"anthropic/claude-opus-4-7": true, "anthropic/claude-of-tomorrow": true, "anthropic/kimi-k3": false, "openai/gpt-6-sol": false, "ollama/qwen3": false} {
		cfg := emptyConfig(t, env)
		cfg.Model = name
		if got := mustChoose(t, cfg).Frame; got > 0 != want || want && got < 804 {
			t.Errorf("%s: %d tokens", name, got)
		}
	}
}
