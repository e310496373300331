// Package provider chooses the model of a run: by flag, by configuration, by the keys in
// the environment, by a local Ollama, or else the built-in one; and explains the choice in
// one line.
package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/internal/orchestrator"
	"github.com/troupe-run/troupe/internal/provider/catalog"
	"github.com/troupe-run/troupe/internal/suggest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/anthropic"
	"github.com/troupe-run/troupe/model/gemini"
	"github.com/troupe-run/troupe/model/openai"
	"github.com/troupe-run/troupe/model/script"
)

// Names of providers, in addition to anthropic.Provider, openai.Provider and gemini.Provider.
const (
	Ollama  = "ollama"
	Builtin = "builtin"
	Script  = "script"
)

// The default model of a provider if only its key was given. The prices of these models are
// known, so that a limit in money can be enforced.
const (
	DefaultAnthropic = "claude-sonnet-5-5"
	DefaultOpenAI    = "gpt-6-sol"
	DefaultGemini    = "gemini-3.8-flash"
	ScoutModel       = "scout"
)

// Errors of Choose.
var (
	// ErrName: the name is not PROVIDER/MODEL with a known provider.
	ErrName = errors.New("not a model name")
	// ErrCredentials: the provider was named, and no setting says how to reach it.
	ErrCredentials = errors.New("no credentials")
	// ErrNoModel: no model is left to choose.
	ErrNoModel = errors.New("no model")
)

// Config holds the inputs of a choice.
type Config struct {
	// Model is --model, PROVIDER/MODEL; empty if not given.
	Model string
	// Setting is the same from the configuration.
	Setting string
	// Env looks a variable up; nil means an empty environment.
	Env func(string) string
	// Scout is the built-in model; nil if there is none.
	Scout model.Client
	// Cache lets Anthropic cache prompts (see anthropic.Config). It does not apply to a
	// gateway, which may not support it.
	Cache bool
	// Prices are the operator's own facts about prices and limits of models: they take
	// precedence over the built-in table, at whatever address a model is called.
	Prices catalog.FactTable
	// Timeouts of attempts; zero fields mean the defaults of package modelhttp.
	Timeouts modelhttp.Timeouts
	// Transport carries the requests; nil means modelhttp.SharedTransport.
	Transport http.RoundTripper
	// Script reads the script of a path; nil means script.Load.
	Script func(path string) (*script.Script, error)
}

// CostBound says how certain it is that an attempt is billed for no more than its request and
// Request.MaxOutput.
type CostBound string

// Bounds. Models inside troupe count their own tokens (Exact); the providers' APIs document
// the limit on output, thinking included, and the maximum for a text or an image
// (Documented). None means that no limit is published: such a model is refused under a
// limit, unless the user allows it by name.
const (
	Exact      CostBound = "exact"
	Documented CostBound = "documented"
	None       CostBound = "none"
)

// BoundOf returns the bound of a provider's adapter for text.
func BoundOf(provider string) CostBound {
	switch provider {
	case anthropic.Provider, openai.Provider, gemini.Provider, Ollama:
		return Documented
	case Builtin, Script:
		return Exact
	}
	return None
}

// Choice is a model that can be called.
type Choice struct {
	Provider string
	Model    string // the name within the provider
	Why      string // one line for people, without secrets
	Client   model.Client
	// Paid: requests carry a key to the provider itself, or to a gateway in front of a model with a list price,
	// whose name may be misspelled.
	Paid  bool
	Bound CostBound
	// Price is known for listed models at the provider's own address and for models inside
	// troupe; see PricesAsOf.
	Price budget.Price
	// Window is how many tokens of prompt and output the price and the model
	// allow in one call, MaxOutput how many of output; 0 is unknown.
	Window    int64
	MaxOutput int64
	// Frame is the most tokens that the provider adds to a prompt that lists tools.
	Frame int64
	// ThrottleKey identifies the callers that share a rate limit of the provider: it is the same for
	// the same provider, address, model and key, and does not reveal the key. See
	// deriveThrottleKey.
	ThrottleKey string

	ownAddress      bool                            // it is called at the provider's own address
	overriddenFacts func(name string) catalog.Facts // facts in the operator's file about the provider's models
}

// deriveThrottleKey returns one digest of all its arguments. It includes the key, which cannot be
// recovered from it (a key is random, and far too long to guess), and the digests of two
// models with one key show nothing in common. A secret of the cluster would add nothing: a
// process that can read the shared digests could read that secret in the same place.
func deriveThrottleKey(provider, base, model string, key ...string) string {
	sum := sha256.New()
	for _, part := range append([]string{"troupe gate 1", provider, strings.TrimRight(base, "/"), model}, key...) {
		fmt.Fprintf(sum, "%d %s ", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// withThrottleKey names the throttle of a choice that has none yet.
func withThrottleKey(c Choice, err error) (Choice, error) {
	if c.ThrottleKey == "" {
		c.ThrottleKey = deriveThrottleKey(c.Provider, "", c.Model)
	}
	return c, err
}

// Name is PROVIDER/MODEL.
func (c Choice) Name() string { return c.Provider + "/" + c.Model }

// Choose chooses a model, and names its throttle. It uses the network only to probe a local Ollama,
// and only if nothing else is named (ProbeTimeout).
func Choose(ctx context.Context, cfg Config) (Choice, error) {
	return withThrottleKey(cfg.chooseModel(ctx))
}

func (cfg Config) chooseModel(ctx context.Context) (Choice, error) {
	if cfg.Env == nil {
		cfg.Env = func(string) string { return "" }
	}
	if cfg.Transport == nil {
		cfg.Transport = modelhttp.SharedTransport()
	}
	switch {
	case cfg.Model != "":
		return cfg.chooseNamed(cfg.Model, "named by --model")
	case cfg.Setting != "":
		return cfg.chooseNamed(cfg.Setting, "named by the configuration")
	}
	if v := cfg.firstSetVariable("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"); v != "" {
		return cfg.chooseAnthropic(DefaultAnthropic, v+" is set")
	}
	if v := cfg.firstSetVariable("OPENAI_API_KEY", "OPENAI_BASE_URL"); v != "" {
		return cfg.chooseOpenAI(DefaultOpenAI, v+" is set")
	}
	if v := cfg.firstSetVariable(geminiKeys...); v != "" {
		return cfg.chooseGemini(DefaultGemini, v+" is set")
	}
	if name := cfg.probeOllama(ctx); name != "" {
		return cfg.chooseOllama(name, "Ollama answers at "+ollamaBase(cfg.lookupEnv("OLLAMA_HOST")))
	}
	return cfg.chooseBuiltin("no key is set and no Ollama answers")
}

// chooseNamed returns the choice for a name.
func (cfg Config) chooseNamed(name, why string) (Choice, error) {
	provider, rest, ok := strings.Cut(name, "/")
	if !ok || rest == "" {
		if near := cfg.nearestRoute(name); near != "" {
			return Choice{}, fmt.Errorf("%w: %q; did you mean %s?", ErrName, name, near)
		}
		return Choice{}, fmt.Errorf("%w: %q; write PROVIDER/MODEL, such as %s/%s or %s/%s", ErrName, name,
			anthropic.Provider, DefaultAnthropic, Builtin, ScoutModel)
	}
	switch provider {
	case anthropic.Provider:
		if cfg.firstSetVariable("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL") == "" {
			return Choice{}, fmt.Errorf("%w for %s: set ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or ANTHROPIC_BASE_URL", ErrCredentials, name)
		}
		return cfg.chooseAnthropic(rest, why)
	case openai.Provider:
		if cfg.firstSetVariable("OPENAI_API_KEY", "OPENAI_BASE_URL") == "" {
			return Choice{}, fmt.Errorf("%w for %s: set OPENAI_API_KEY or OPENAI_BASE_URL", ErrCredentials, name)
		}
		return cfg.chooseOpenAI(rest, why)
	case gemini.Provider:
		if cfg.firstSetVariable(geminiKeys...) == "" && cfg.lookupEnv(geminiBase) == "" {
			return Choice{}, fmt.Errorf("%w for %s: set GEMINI_API_KEY, GOOGLE_API_KEY or %s", ErrCredentials, name, geminiBase)
		}
		return cfg.chooseGemini(rest, why)
	case Ollama:
		return cfg.chooseOllama(rest, why)
	case Script:
		return cfg.chooseScript(rest, why)
	case Builtin:
		switch {
		case rest == ScoutModel:
			return cfg.chooseBuiltin(why)
		case rest == orchestrator.Foreign:
			return Choice{Provider: Builtin, Model: rest, Why: why, Client: orchestrator.NewForeign(), Bound: Exact, Price: freePrice}, nil
		case slices.Contains(orchestrator.RouteNames(), rest):
			return Choice{Provider: Builtin, Model: rest, Why: why, Client: orchestrator.New(rest), Bound: Exact, Price: freePrice}, nil
		}
		if near := suggest.Nearest(rest, append([]string{ScoutModel}, orchestrator.RouteNames()...)); near != "" {
			return Choice{}, fmt.Errorf("%w: %q; did you mean %s/%s?", ErrName, name, Builtin, near)
		}
		return Choice{}, fmt.Errorf("%w: %q; the built-in models are %s/%s", ErrName, name, Builtin,
			strings.Join(append([]string{ScoutModel}, orchestrator.RouteNames()...), ", "+Builtin+"/"))
	}
	if near := suggest.Nearest(provider, providers); near != "" {
		return Choice{}, fmt.Errorf("%w: %q; did you mean %s/%s?", ErrName, name, near, rest)
	}
	return Choice{}, fmt.Errorf("%w: %q; the providers are %s", ErrName, name, strings.Join(providers, ", "))
}

var providers = []string{anthropic.Provider, openai.Provider, gemini.Provider, Ollama, Builtin, Script}

// nearestRoute returns the listed model that a name without a provider probably means, as PROVIDER/MODEL; "": none.
func (cfg Config) nearestRoute(name string) string {
	if IsAlias(name) {
		for _, p := range []string{anthropic.Provider, openai.Provider, gemini.Provider} {
			if cfg.hasCredentials(p) {
				return p + "/" + aliases[p][name]
			}
		}
		return anthropic.Provider + "/" + aliases[anthropic.Provider][name]
	}
	if name == ScoutModel || slices.Contains(orchestrator.RouteNames(), name) {
		return Builtin + "/" + name
	}
	var names []string
	routes := map[string]string{}
	for p, table := range listedModels {
		for listed := range table {
			names, routes[listed] = append(names, listed), p+"/"+listed
		}
	}
	slices.Sort(names)
	return routes[suggest.Nearest(name, names)]
}

// hasCredentials reports whether the environment says how to reach a provider.
func (cfg Config) hasCredentials(provider string) bool {
	switch provider {
	case anthropic.Provider:
		return cfg.firstSetVariable("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL") != ""
	case openai.Provider:
		return cfg.firstSetVariable("OPENAI_API_KEY", "OPENAI_BASE_URL") != ""
	case gemini.Provider:
		return cfg.firstSetVariable(append([]string{geminiBase}, geminiKeys...)...) != ""
	}
	return false
}

// NearestModel returns the listed model of a provider that a name of no listed model probably means; "": none.
func NearestModel(route string) string {
	p, name, _ := strings.Cut(route, "/")
	if _, isListed := listedModels[p][name]; isListed {
		return ""
	}
	if near := suggest.Nearest(name, slices.Sorted(maps.Keys(listedModels[p]))); near != "" && suggest.EditDistance(name, near) <= typosMax {
		return p + "/" + near
	}
	return ""
}

// typosMax is how many letters of a model's name may be wrong: names that differ in more are other models.
const typosMax = 2

func (cfg Config) chooseAnthropic(name, why string) (Choice, error) {
	key, token, base := cfg.lookupEnv("ANTHROPIC_API_KEY"), cfg.lookupEnv("ANTHROPIC_AUTH_TOKEN"), cfg.lookupEnv("ANTHROPIC_BASE_URL")
	own := base == "" || sameHost(base, anthropic.DefaultBaseURL)
	client, err := anthropic.New(anthropic.Config{BaseURL: base, APIKey: key, AuthToken: token, Cache: cfg.Cache && own, DropStale: own,
		Timeouts: cfg.Timeouts, Transport: cfg.Transport})
	if err != nil {
		return Choice{}, fmt.Errorf("ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN: %w", err)
	}
	return cfg.fillFacts(Choice{Provider: anthropic.Provider, Model: name, Why: why, Client: client, ThrottleKey: deriveThrottleKey(anthropic.Provider, base, name, key, token)}, own, key+token != ""), nil
}

func (cfg Config) chooseOpenAI(name, why string) (Choice, error) {
	key, base := cfg.lookupEnv("OPENAI_API_KEY"), cfg.lookupEnv("OPENAI_BASE_URL")
	own := openai.Own(base)
	o := openai.Config{BaseURL: base, APIKey: key, MaxTokens: !own && !isOpenAI(name), Timeouts: cfg.Timeouts, Transport: cfg.Transport}
	if o.API = openai.API(cfg.lookupEnv(openAIAPI)); o.API != "" && o.API != openai.APIResponses && o.API != openai.APIChat {
		return Choice{}, fmt.Errorf("%w: %s is neither %s nor %s", ErrName, openAIAPI, openai.APIResponses, openai.APIChat)
	}
	if isOpenAI(name) { // a gateway hands it on
		o.Structured = openai.StructuredAlways
	}
	client, err := openai.New(o)
	if err != nil {
		return Choice{}, fmt.Errorf("OPENAI_BASE_URL, OPENAI_API_KEY: %w", err)
	}
	return cfg.fillFacts(Choice{Provider: openai.Provider, Model: name, Why: why, Client: client, ThrottleKey: deriveThrottleKey(openai.Provider, base, name, key)}, own, key != ""), nil
}

// openAIAPI names the variable for the API at OPENAI_BASE_URL: responses or chat; see openai.Config.
const openAIAPI = "OPENAI_API"

// The variables for Gemini: the first key that is set, and the name by which Google's own
// tools set another address.
var geminiKeys = []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}

const geminiBase = "GOOGLE_GEMINI_BASE_URL"

func (cfg Config) chooseGemini(name, why string) (Choice, error) {
	key, base := "", cfg.lookupEnv(geminiBase)
	if v := cfg.firstSetVariable(geminiKeys...); v != "" {
		key = cfg.lookupEnv(v)
	}
	own := base == "" || sameHost(base, gemini.DefaultBaseURL)
	client, err := gemini.New(gemini.Config{BaseURL: base, APIKey: key, Timeouts: cfg.Timeouts, Transport: cfg.Transport})
	if err != nil {
		return Choice{}, fmt.Errorf("%s, %s: %w", geminiBase, strings.Join(geminiKeys, ", "), err)
	}
	return cfg.fillFacts(Choice{Provider: gemini.Provider, Model: name, Why: why, Client: client, ThrottleKey: deriveThrottleKey(gemini.Provider, base, name, key)}, own, key != ""), nil
}

// fillFacts fills in the facts about a listed model. At another address than the provider's
// own, the same name may have another price: there the list price is an estimate, unless the operator
// states the price. A key for such an address counts as one that is billed if the model is listed, or a listed model is
// probably meant: a typo must not take the default limit in money away.
func (cfg Config) fillFacts(c Choice, own, hasKey bool) Choice {
	f := factsOf(c.Provider, c.Model)
	f.Price.Estimated = !own && f.Price.Known
	paid := hasKey && (own || f.Price.Known || NearestModel(c.Name()) != "")
	f = cfg.overriddenFacts(c.Provider, c.Model).Merge(f)
	c.Window, c.MaxOutput, c.Price, c.Paid, c.Bound = f.Window, f.Output, f.Price, paid, BoundOf(c.Provider)
	c.ownAddress, c.Frame = own, toolFrameTokens(c.Provider, c.Model)
	c.overriddenFacts = func(name string) catalog.Facts { return cfg.overriddenFacts(c.Provider, name) }
	return c
}

// isOpenAI reports whether a model behind a gateway is OpenAI's own, which
// refuses max_tokens.
func isOpenAI(name string) bool {
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, prefix := range []string{"gpt-4", "gpt-5", "gpt-6", "chatgpt-", "o1", "o3", "o4"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func (cfg Config) chooseScript(path, why string) (Choice, error) {
	load := cfg.Script
	if load == nil {
		load = script.Load
	}
	s, err := load(path)
	if err != nil {
		return Choice{}, fmt.Errorf("%s/%s: %w", Script, path, err)
	}
	return Choice{Provider: Script, Model: path, Why: why, Client: s.Named(path).Client(""), Window: s.Window, Bound: Exact, Price: freePrice}, nil
}

func (cfg Config) chooseBuiltin(why string) (Choice, error) {
	if cfg.Scout == nil {
		return Choice{}, fmt.Errorf("%w: %s; set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or name a model, such as %s/%s, which needs no key", ErrNoModel, why, Builtin, ScoutModel)
	}
	return Choice{Provider: Builtin, Model: ScoutModel, Why: why, Client: cfg.Scout, Bound: Exact, Price: freePrice}, nil
}

func (cfg Config) lookupEnv(name string) string { return strings.TrimSpace(cfg.Env(name)) }

// firstSetVariable returns the first of the variables that is set.
func (cfg Config) firstSetVariable(names ...string) string {
	for _, n := range names {
		if cfg.lookupEnv(n) != "" {
			return n
		}
	}
	return ""
}
