package node

import (
	"cmp"
	"errors"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/agentprotocol"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control"
)

// AgentsOnBus is how a node exports its agents by the Synadia Agent Protocol (docs/agentprotocol.md).
type AgentsOnBus struct {
	// Owner is a token of the agents' subjects; the nodes of one cluster have the same. Default: AgentsOwner.
	Owner string
	// Senders is what the agents want of the senders of prompts: "", any or signed (docs/agentprotocol.md).
	Senders agentprotocol.SenderTrust
	// Heartbeat is the interval between heartbeats of an agent. Default: 30 s.
	Heartbeat time.Duration
	// AnswerTimeout is how long a run may wait for an answer of its caller. Default: 10 minutes.
	AnswerTimeout time.Duration
}

// ErrAgentsOwner says that the owner of exported agents cannot be a part of a subject.
var ErrAgentsOwner = errors.New("node: invalid owner for exported agents")

// ownerUnknown is the owner if the user of the process has no name.
const ownerUnknown = "troupe"

// AgentsOwner is the name of the user of this process, as a token of a subject.
func AgentsOwner() string {
	u, err := user.Current()
	if err != nil {
		return ownerUnknown
	}
	name := strings.Map(func(r rune) rune {
		if names.CheckToken(string(r)) != nil {
			return '-'
		}
		return r
	}, strings.ToLower(u.Username))
	return cmp.Or(strings.Trim(name[:min(len(name), names.TokenBytesMax)], "-"), ownerUnknown)
}

// exportAgents begins to export the agents, if the node is to.
func exportAgents(h *Node) error {
	c := h.cfg.AgentsOnBus
	if c == nil {
		return nil
	}
	owner := cmp.Or(c.Owner, AgentsOwner())
	if err := names.CheckToken(owner); err != nil {
		return fmt.Errorf("%w: %w", ErrAgentsOwner, err)
	}
	requests, err := dialClient(h)
	if err != nil {
		return err
	}
	h.agentHost, err = agentprotocol.Serve(agentprotocol.Config{Conn: h.serviceConn, Client: client.New(requests, h.names), Discovery: requests, Names: h.names, Agents: h.agents.listExportedAgents(), Owner: owner,
		Node: h.cfg.Name, Machine: h.cfg.Machine, Version: control.Version(), Senders: c.Senders, Heartbeat: c.Heartbeat, AnswerTimeout: c.AnswerTimeout, CheckDir: h.cfg.checkDir, Redact: h.mask.MaskBytes, Logger: h.cfg.Logger})
	return err
}

// checkDir returns the error with which a run in a directory would be refused.
func (c Config) checkDir(dir string) error {
	_, _, err := c.trustPolicy().CheckNamed(client.RunRequest{Dir: dir}, "dir", dir, c.Roots)
	return err
}

// AgentSubjects lists the subjects at which exported agents take prompts.
func (n *Node) AgentSubjects() []string {
	if n.agentHost == nil {
		return nil
	}
	return n.agentHost.Subjects()
}
