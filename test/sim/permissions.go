package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/supervisor"
)

// permissionsEvery is which of the seeds have permissions: it follows from what was drawn already, so that the runs of
// the other seeds do not change.
const permissionsEvery = 4

// drawPermissions gives a run and its agents rules and modes, and lets its questions expire.
func drawPermissions(p *seedPlan, o *supervisor.Opened) {
	d := newDice(int64(p.rate)<<16 | int64(p.faultSteps))
	own := func() *spec.Permissions {
		modes := []spec.PermissionMode{"", "", spec.ModeDefault, spec.ModeAcceptEdits, spec.ModePlan, spec.ModeDontAsk, spec.ModeBypass, spec.ModeBypass}
		q := spec.Permissions{Mode: oneOf(d, modes...)}
		for range d.IntN(3) {
			rule := spec.PermissionRule{Text: oneOf(d, "look", "note", "pay", "pay", "wipe", "delegate")}
			switch d.IntN(4) {
			case 0:
				q.Deny = append(q.Deny, rule)
			case 1:
				q.Allow = append(q.Allow, rule)
			default:
				q.Ask = append(q.Ask, rule)
			}
		}
		return &q
	}
	o.Permissions = own()
	for i := range o.Definitions {
		if d.percent(60) {
			o.Definitions[i].Permissions = own()
		}
	}
	o.LoopOptions.QuestionMS = oneOf[int64](d, 0, 0, 200, 2000)
	o.LoopOptions.Obstacles = true
	o.Tools, o.LoopOptions.DeclareFailure = append(slices.Clip(o.Tools), agent.DeclareSpec()), true
	o.LoopOptions.Unattended = d.percent(10)
	for i := range o.Definitions {
		o.Definitions[i].LoopOptions.Unattended = d.percent(10)
	}
	if !p.isOn(faultHead) { // docs/chaos.md: an end by a cancel goes unnoticed if the log of the agent lost its head
		o.ParkMS = oneOf[int64](d, 0, 0, 0, 500, 60_000)
	}
	if d.percent(30) {
		o.Permissions.Approvals = 2
	}
	for i := range o.Definitions {
		if own := o.Definitions[i].Permissions; own != nil && d.percent(20) {
			own.Approvals = 2
		}
	}
	drawTaint(d, o)
}
