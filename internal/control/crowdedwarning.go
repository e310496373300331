package control

import (
	"context"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
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

// warnCrowded reports stores that are nearly full although the pass has removed what may go: at mailbox.RoomPercent new
// runs will be refused. It reports once until there is room again.
func (p *retentionPass) warnCrowded(ctx context.Context) error {
	if len(p.use.crowdedStores()) > 0 { // before the last removal
		if err := p.measure(ctx); err != nil {
			return err
		}
	}
	crowded := p.use.crowdedStores()
	reported := p.crowded
	if p.crowded = len(crowded) > 0; reported || !p.crowded {
		return nil
	}
	why := strings.Join(crowded, ", ") + " nearly full, and no run that has ended may go"
	if p.limits.bytes == 0 {
		why = strings.Join(crowded, ", ") + " nearly full, and --retain-size off keeps all runs"
	}
	p.logger().Warn("storage is nearly full: new runs are refused beyond the limit", "why", why, "limit_percent", mailbox.RoomPercent, "remedy", crowdedRemedy)
	p.cfg.Publish(LogHealthEvent(p.cfg.Name, event.KindLogsLow, event.LogState{Why: why, Remedy: crowdedRemedy}, p.now))
	return nil
}

// crowdedRemedy is what makes room in stores that retention cannot make room in.
const crowdedRemedy = "`troupe prune --older-than 1h --yes` removes runs that have ended, `troupe cancel RUN` ends those that work or are parked, which can then go; a larger disk or larger limits of the streams give more room (docs/operating.md)"
