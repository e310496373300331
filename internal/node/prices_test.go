package node

import (
	"errors"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/provider/catalog"
	"github.com/troupe-run/troupe/internal/runspec"
)

// Its cost is unknown, never zero: a limit in money cannot hold for it.
//
//behaviour:shows G4
func TestAModelWithoutAPriceIsRefusedUnderALimitUnlessItIsNamed(t *testing.T) {
	t.Parallel()
	const name = "openai/nobody-knows"
	h := newBuildOnlyNode(t.TempDir(), withEnv("OPENAI_API_KEY", "k"))
	ask := func(change func(*client.RunRequest)) client.RunRequest {
		return newRequest(func(r *client.RunRequest) { r.Model, r.MaxBudgetUSD = name, 1; change(r) })
	}
	for _, allowed := range [][]string{nil, {"openai/another"}} {
		_, _, err := h.buildRun(ask(func(r *client.RunRequest) { r.AllowUnpriced = allowed }))
		var refused *client.Error
		if !errors.As(err, &refused) || !strings.Contains(refused.Text, "the price of "+name+" is unknown") || !strings.Contains(refused.Hint, "--allow-unpriced "+name) {
			t.Errorf("%v: %v", allowed, err)
		}
	}
	o, a, err := h.buildRun(ask(func(r *client.RunRequest) { r.AllowUnpriced, r.Fallback = []string{name}, []string{name} }))
	if err != nil || !o.Model.Price.Allowed || o.Model.Price.Known || len(o.LoopOptions.Fallbacks) != 1 || len(a.Notes) != 1 || !strings.Contains(a.Notes[0], "does not hold") {
		t.Errorf("%+v, %v, %v", o.Model, a.Notes, err)
	}
	if o.Hashes[spec.RouteOf(name)] != h.builder.RouteVersion(name) {
		t.Error("a node that takes the run over finds another model than was recorded")
	}
	if _, _, err := h.buildRun(ask(func(r *client.RunRequest) { r.AllowUnpriced = make([]string, runspec.NamedModelsMax+1) })); err == nil {
		t.Error("any number of names is read")
	}
}

func TestTheOperatorsPricesMakeALimitInMoneyPossible(t *testing.T) {
	t.Parallel()
	table, err := catalog.ParseTable([]byte(`{"openai": {"models": {"mine": {"cost": {"input": 1, "output": 2}, "limit": {"context": 9000}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	h := newBuildOnlyNode(t.TempDir(), withEnv("OPENAI_BASE_URL", "https://gateway.example/v1"), func(c *Config) { c.Prices = table })
	o, _, err := h.buildRun(newRequest(func(r *client.RunRequest) { r.Model, r.MaxBudgetUSD = "openai/mine", 1 }))
	if err != nil || !o.Model.Price.Known || o.Model.Price.Input != 1000 || o.Model.Window != 9000 {
		t.Errorf("%+v, %v", o.Model, err)
	}
}

// A paid key has a limit of one dollar unless its owner sets another: also if the price is
// unknown, so that the run is refused, and if the working directory sets the limit on
// tokens.
//
//behaviour:shows G4
func TestAPaidKeyHasALimitInMoneyUnlessTheUserSaysAnother(t *testing.T) {
	t.Parallel()
	h := newBuildOnlyNode(t.TempDir(), withEnv("OPENAI_API_KEY", "k", "OLLAMA_HOST", "127.0.0.1:1"))
	for _, c := range []struct {
		says    string
		ask     func(*client.RunRequest)
		nano    int64
		refused bool
	}{
		{"price known", func(r *client.RunRequest) { r.Model = "openai/gpt-6-sol" }, PaidNano, false},
		{"price unknown", func(r *client.RunRequest) { r.Model = "openai/o3" }, 0, true},
		{"unknown, but allowed", func(r *client.RunRequest) { r.Model, r.AllowUnpriced = "openai/o3", []string{"openai/o3"} }, PaidNano, false},
		{"unknown, and the user's limit on tokens", func(r *client.RunRequest) { r.Model, r.MaxTokens = "openai/o3", 5000 }, 0, false},
		{"the directory's limit on tokens", func(r *client.RunRequest) { r.Model, r.MaxTokens, r.PaidLimit = "openai/gpt-6-sol", 1<<40, true }, PaidNano, false},
		{"unknown, and the directory's limit on tokens", func(r *client.RunRequest) { r.Model, r.MaxTokens, r.PaidLimit = "openai/o3", 5000, true }, 0, true},
		{"the directory's limit on tokens, and the user's in money", func(r *client.RunRequest) {
			r.Model, r.MaxTokens, r.PaidLimit, r.MaxBudgetUSD = "openai/gpt-6-sol", 5000, true, 3
		}, 3 * PaidNano, false},
		{"free, with a paid fallback", func(r *client.RunRequest) { r.Model, r.Fallback = "ollama/small", []string{"openai/o3"} }, PaidNano, false},
		{"free", func(r *client.RunRequest) { r.Model, r.MaxTokens, r.PaidLimit = "ollama/small", 5000, true }, 0, false},
	} {
		o, _, err := h.buildRun(newRequest(c.ask))
		var refused *client.Error
		if c.refused != errors.As(err, &refused) || c.refused && !strings.Contains(refused.Hint, "--max-tokens") || !c.refused && (err != nil || o.Limits.Nano != c.nano) {
			t.Errorf("%s: %d nano-dollars, %v", c.says, o.Limits.Nano, err)
		}
	}
}
