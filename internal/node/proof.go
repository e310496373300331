package node

import (
	"cmp"
	"context"
	"os"
	"strings"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/control"
)

// systemInbox is the inbox prefix for replies of the system account.
const systemInbox = "_INBOX_system"

// proveServer checks the promises of the server. A node does not start on a server that was seen
// to break one; it reports those that it cannot check.
func (n *Node) proveServer(ctx context.Context) error {
	w, done, err := n.openWitness()
	if err != nil {
		return err
	}
	defer done()
	c := bus.ProofConfig{Conn: n.logConn, Names: n.names, Lazy: n.cfg.Lazy, Witness: w, Want: n.cfg.Profile}
	if n.streams != nil {
		c.Streams = n.streams.Streams()
	} else {
		c.LogRoom = n.post.Room
	}
	n.serverProof, err = bus.ProveDurability(ctx, c)
	if err != nil {
		return err
	}
	for _, f := range n.serverProof.Findings {
		if f.Status != bus.Proven {
			n.cfg.Logger.Warn("a promise of the server is not proven", "profile", n.serverProof.Profile, "check", f.Check, "status", f.Status, "detail", f.Detail, "remedy", f.Remedy)
		}
	}
	return n.serverProof.Err()
}

// openWitness returns a source that reports how the servers store entries, nil if there is
// none; done closes it.
func (n *Node) openWitness() (w bus.ServerWitness, done func(), err error) {
	done = func() {}
	s := n.cfg.System
	switch {
	case n.embedded != nil:
		return n.embedded, done, nil
	case n.cfg.Bus.Owner != "":
		return bus.NodeFileWitness{Dir: n.cfg.Bus.Owner}, done, nil
	case len(n.cfg.Monitor) > 0:
		return bus.MonitorURLs(n.cfg.Monitor), done, nil
	case s.Creds == "" && s.NKey == "" && s.User == "":
		return nil, done, nil
	}
	s.Servers, s.TLSCert, s.TLSKey, s.TLSCA = cmp.Or(s.Servers, "nats://"+n.logConn.ConnectedAddr()), n.cfg.Bus.TLSCert, n.cfg.Bus.TLSKey, n.cfg.Bus.TLSCA
	s.InboxPrefix = cmp.Or(s.InboxPrefix, systemInbox)
	nc, err := bus.Connect(s)
	if err != nil {
		return nil, done, err
	}
	return bus.SystemAccount{Conn: nc}, nc.Close, nil
}

// Proof returns the result of that check at the start of the node.
func (n *Node) Proof() bus.Proof { return n.serverProof }

// describeSelf is what the control service reports about a node that owns all logs.
func (n *Node) describeSelf() client.NodeInfo {
	i := client.NodeInfo{Host: n.cfg.Machine, PID: os.Getpid(), Version: control.Version(), Started: n.began.UTC().Format(time.RFC3339),
		Heard: time.Now().UTC().Format(time.RFC3339Nano), Profile: string(n.serverProof.Profile), Unproven: strings.Join(n.serverProof.UnprovenChecks(), ", "), Proof: &n.serverProof,
		LogHealth: n.logHealth.clientInfo(), HTTP: n.HTTPURL(), Settings: SettingsPlace(n.cfg.UserSettings)}
	n.logOwner.FillCounts(&i)
	return i
}

// WatchCommand returns the command that observes the embedded server, without its arguments; ""
// without a port, and for an external one.
func (n *Node) WatchCommand() string {
	if n.embedded == nil {
		return ""
	}
	return n.embedded.WatchCommand()
}
