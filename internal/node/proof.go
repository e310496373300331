package node

import (
	"cmp"
	"context"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/mailbox"
)

// systemInbox is the inbox prefix for replies of the system account.
const systemInbox = "_INBOX_system"

// serverProver checks what the server of a node promises: that it stores entries before it confirms them.
type serverProver struct {
	cfg      Config
	names    names.Names
	embedded localserver.Server
	conn     *nats.Conn
	streams  *jetstream.Post // nil: the logs are not in JetStream
	logs     mailbox.Store
}

// prove checks the promises. A node does not start on a server that was seen to break one; it reports those that it
// cannot check.
func (p serverProver) prove(ctx context.Context) (proof bus.Proof, err error) {
	w, done, err := p.openWitness()
	if err != nil {
		return proof, err
	}
	defer done()
	c := bus.ProofConfig{Conn: p.conn, Names: p.names, Lazy: p.cfg.Lazy, Witness: w, Want: p.cfg.Profile}
	if p.streams != nil {
		c.Streams = p.streams.Streams()
	} else {
		c.LogRoom = p.logs.Room
	}
	proof, err = bus.ProveDurability(ctx, c)
	if err != nil {
		return proof, err
	}
	for _, f := range proof.Findings {
		if f.Status != bus.Proven {
			p.cfg.Logger.Warn("a promise of the server is not proven", "profile", proof.Profile, "check", f.Check, "status", f.Status, "detail", f.Detail, "remedy", f.Remedy)
		}
	}
	return proof, proof.Err()
}

// openWitness returns a source that reports how the servers store entries, nil if there is
// none; done closes it.
func (p serverProver) openWitness() (w bus.ServerWitness, done func(), err error) {
	done = func() {}
	s := p.cfg.System
	switch {
	case p.embedded != nil:
		return p.embedded, done, nil
	case p.cfg.Bus.Owner != "":
		return bus.NodeFileWitness{Dir: p.cfg.Bus.Owner}, done, nil
	case len(p.cfg.Monitor) > 0:
		return bus.MonitorURLs(p.cfg.Monitor), done, nil
	case s.Creds == "" && s.NKey == "" && s.User == "":
		return nil, done, nil
	}
	s.Servers, s.TLSCert, s.TLSKey, s.TLSCA = cmp.Or(s.Servers, "nats://"+p.conn.ConnectedAddr()), p.cfg.Bus.TLSCert, p.cfg.Bus.TLSKey, p.cfg.Bus.TLSCA
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
