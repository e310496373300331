package runspec

import (
	"cmp"
	"context"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/supervisor"
)

const forkModelHint = "fork it with a model that fits: -m PROVIDER/MODEL"

// ForkModel returns the model with which a fork goes on, if its request names another one than the run has; nil: it
// names none, or the same. nano is the limit in money that the fork needs then; 0: the one that it has.
func ForkModel(b *Builder, o supervisor.Opened, named client.RunRequest) (set *agent.ModelSet, nano int64, err error) {
	if named.Model == "" {
		return nil, 0, nil
	}
	if err := b.checkScripts(client.RunRequest{Model: named.Model}); err != nil {
		return nil, 0, err
	}
	c, err := b.cfg.Routes.ChooseModel(context.Background(), named.Model)
	if err != nil {
		return nil, 0, badModel(err, modelHint(err), "%v", err)
	}
	if c.Name() == o.Model.Name {
		return nil, 0, nil
	}
	m := withRoute(spec.Model{Temperature: o.Model.Temperature, Effort: o.Model.Effort}, c, o.Unpriced)
	limit := cmp.Or(int64(named.MaxBudgetUSD*budget.NanoPerUSD), o.Limits.Nano)
	if limit == 0 && c.Paid && named.MaxTokens == 0 {
		limit, nano = PaidNano, PaidNano
	}
	if max(limit, o.Agent.Nano) > 0 && !m.Price.Covered() {
		return nil, 0, refuse.Bad(forkModelHint+", or give its price with --pricing-file",
			"the price of %s is unknown, so the limit in money of the fork cannot be kept", m.Name)
	}
	for _, media := range o.Media {
		most, _, ok := c.AcceptsMedia(media)
		if !ok {
			return nil, 0, refuse.Bad(forkModelHint,
				"model %s does not accept %s (attachment %q)", m.Name, media.Type, media.Name)
		}
		if most > media.Most {
			return nil, 0, refuse.Bad(forkModelHint, "with model %s the attachment %q can cost %d tokens, and the run holds %d for it", m.Name, media.Name, most, media.Most)
		}
	}
	summaries := o.LoopOptions.Context.Model
	if summaries == nil || providerOf(summaries.Name) == providerOf(o.Model.Name) {
		summaries = summaryModel(c)
	}
	if summaries != nil && max(limit, o.Agent.Nano) > 0 && !summaries.Price.Covered() {
		summaries = nil
	}
	return &agent.ModelSet{Model: m, Summaries: summaries, Version: HashVersion(baseModel(m))}, nano, nil
}

// CheckSetModel refuses a model that the logs of a recorded run set, if a fork of the run could not have it here
// under a limit in money; 0: none.
func CheckSetModel(b *Builder, o supervisor.Opened, named client.RunRequest, route string, nano int64) error {
	cfg := b.cfg
	cfg.Trust = cfg.Trust.ForRequest(named)
	o.Limits.Nano = max(o.Limits.Nano, nano)
	_, _, err := ForkModel(New(cfg), o, client.RunRequest{Model: route, MaxTokens: o.Limits.Tokens})
	return explainRefused(o, named, err)
}

// CheckSetLimits refuses limits in the logs of a recorded run that no request may set.
func CheckSetLimits(o supervisor.Opened, set supervisor.LimitSet) error {
	o.Limits = set.Limits
	if most := spec.HardLimitMS(spec.TimeoutMaxMS); set.SoftMS < 0 || set.HardMS < 0 || set.HardMS > most {
		return refuse.Bad(dumpedLimitsHint,
			"the logs of %s set time limits of %d and %d ms: they may be 0 to %d", o.Run, set.SoftMS, set.HardMS, most)
	}
	if err := checkRecordedLimits(o); err != nil {
		return err
	}
	return checkLimits(client.RunRequest{TimeoutMS: set.SoftMS})
}

const dumpedLimitsHint = "dump the run again: no command sets such a limit"

// providerOf is the provider of a route.
func providerOf(route string) string {
	name, _, _ := strings.Cut(route, "/")
	return name
}
