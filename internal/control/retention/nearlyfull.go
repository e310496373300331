package retention

import (
	"context"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
)

// crowdedStores names the stores that are too full for retention, with how full they are: "the logs (74 %)".
func (u storageUse) crowdedStores() (names []string) {
	for _, store := range []struct {
		name string
		use  storeUse
	}{{"the logs", u.logs}, {"the index of runs", u.index}, {"the blobs", u.blobs}} {
		if store.use.isCrowded() {
			names = append(names, fmt.Sprintf("%s (%d %%)", store.name, store.use.used*100/store.use.most))
		}
	}
	return names
}

// nearlyFullReason says which stores stay nearly full although the pass has removed what may go; "": none does.
func (p *pass) nearlyFullReason() string {
	crowded := strings.Join(p.use.crowdedStores(), ", ")
	switch {
	case crowded == "":
		return ""
	case p.limits.bytes == 0:
		return crowded + " nearly full, and --retain-size off keeps all runs"
	}
	return crowded + " nearly full, and no run that has ended may go"
}

// warnNearlyFull reports stores that are nearly full at the end of a pass, once until there is room again: from
// mailbox.RoomPercent on, new runs will be refused.
func (p *pass) warnNearlyFull(ctx context.Context) error {
	if p.nearlyFullReason() != "" { // before the last removal
		if err := p.measure(ctx); err != nil {
			return err
		}
	}
	why, warned := p.nearlyFullReason(), p.warnedNearlyFull
	p.warnedNearlyFull = why != ""
	if why == "" || warned {
		return nil
	}
	p.cfg.Logger.Warn("storage is nearly full: new runs are refused beyond the limit", "why", why, "limit_percent", mailbox.RoomPercent, "remedy", refuse.RoomHint)
	p.cfg.PublishLow(event.LogState{Why: why, Remedy: refuse.RoomHint}, p.now)
	return nil
}
