package node

import (
	"context"
	"sync"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// machineAsker sends requests to the nodes of other machines, on a connection that it makes for the first of them.
type machineAsker struct {
	node *Node
	mu   sync.Mutex
	own  *client.Client
}

// connect returns the client of the node.
func (a *machineAsker) connect() (*client.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.own != nil {
		return a.own, nil
	}
	c, err := a.node.newClient()
	if err == nil {
		a.own = c
	}
	return c, err
}

// narrow takes rights from live agents of a run that a machine has the directory of.
func (a *machineAsker) narrow(ctx context.Context, owner, machine string, r client.PermissionsRequest) error {
	c, err := a.connect()
	if err == nil && owner != "" {
		c, err = client.ActAs(c, owner)
	}
	if err == nil {
		err = client.NarrowPermissionsOn(ctx, c, machine, r)
	}
	if client.Lost(err) {
		return &client.Error{Code: client.CodeUnavailable, Text: "the links in the paths of rules are followed on the machine of the run, and no node of " + names.MachinePool(machine) + " answers",
			Hint: "start a node there; until then `--mode` alone can be set, and the run can be canceled"}
	}
	return err
}
