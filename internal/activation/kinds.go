package activation

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/supervisor"
)

// ownKinds are what an actor appends to its own log.
var ownKinds = kindsOf(agent.Replied{}, agent.Throttled{}, agent.Admitted{}, agent.Failed{}, agent.Started{}, agent.Returned{}, agent.Woke{},
	agent.Hooked{}, agent.Resumed{}, agent.Released{}, agent.Checkpoint{}, agent.Closed{})

var canceledKind = agent.Canceled{}.Kind()

// commandKinds are the requests of clients, and of nodes for them.
var commandKinds = kindsOf(supervisor.Opened{}, agent.Canceled{}, agent.Steered{}, supervisor.ContextSet{}, supervisor.BacklogSet{}, agent.Answered{},
	supervisor.PolicySet{}, supervisor.LimitSet{}, supervisor.SubtreeLimitSet{}, supervisor.PermissionsSet{}, supervisor.GivenUp{}, agent.Recalled{},
	supervisor.LaneStarted{}, agent.Forked{}, agent.ModelSet{}, supervisor.OthersUse{})

// mayBeSent reports whether an actor may send a kind to another one: a supervisor answers a delegation with Returned.
func mayBeSent(kind string) bool {
	return kind == agent.Returned{}.Kind() || !ownKinds[kind] && kind != supervisor.Opened{}.Kind()
}

func kindsOf(facts ...agent.Fact) map[string]bool {
	kinds := make(map[string]bool, len(facts))
	for _, f := range facts {
		kinds[f.Kind()] = true
	}
	return kinds
}
