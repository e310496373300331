package node

import (
	"cmp"
	"context"
	"strings"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
)

// systemInbox is the inbox prefix for replies of the system account.
const systemInbox = "_INBOX_system"

// proveServer checks the promises of the server. A node does not start on a server that was seen
// to break one; it reports those that it cannot check.
func (h *Node) proveServer(ctx context.Context) error {
	w, done, err := h.openWitness()
	if err != nil {
		return err
	}
	defer done()
	c := bus.ProofConfig{Conn: h.logConn, Names: h.names, Lazy: h.cfg.Lazy, Witness: w, Want: h.cfg.Profile}
	if h.streams != nil {
		c.Streams = h.streams.Streams()
	} else {
		c.LogRoom = h.post.Room
	}
	h.serverProof, err = bus.ProveDurability(ctx, c)
	if err != nil {
		return err
	}
	for _, f := range h.serverProof.Findings {
		if f.Status != bus.Proven {
			h.cfg.Logger.Warn("a promise of the server is not proven", "profile", h.serverProof.Profile, "check", f.Check, "status", f.Status, "detail", f.Detail, "remedy", f.Remedy)
		}
	}
	return h.serverProof.Err()
}

// openWitness returns a source that reports how the servers store entries, nil if there is
// none; done closes it.
func (h *Node) openWitness() (w bus.ServerWitness, done func(), err error) {
	done = func() {}
	s := h.cfg.System
	switch {
	case h.embedded != nil:
		return h.embedded, done, nil
	case h.cfg.Bus.Owner != "":
		return bus.NodeFileWitness{Dir: h.cfg.Bus.Owner}, done, nil
	case len(h.cfg.Monitor) > 0:
		return bus.MonitorURLs(h.cfg.Monitor), done, nil
	case s.Creds == "" && s.NKey == "" && s.User == "":
		return nil, done, nil
	}
	s.Servers, s.TLSCert, s.TLSKey, s.TLSCA = cmp.Or(s.Servers, "nats://"+h.logConn.ConnectedAddr()), h.cfg.Bus.TLSCert, h.cfg.Bus.TLSKey, h.cfg.Bus.TLSCA
	s.InboxPrefix = cmp.Or(s.InboxPrefix, systemInbox)
	nc, err := bus.Connect(s)
	if err != nil {
		return nil, done, err
	}
	return bus.SystemAccount{Conn: nc}, nc.Close, nil
}

// Proof returns the result of that check at the start of the node.
func (h *Node) Proof() bus.Proof { return h.serverProof }

// describeSelf is what the control service reports about a node that owns all logs.
func (h *Node) describeSelf() client.NodeInfo {
	i := client.NodeInfo{Profile: string(h.serverProof.Profile), Unproven: strings.Join(h.serverProof.UnprovenChecks(), ", "), Proof: &h.serverProof,
		LogHealth: h.logHealth.clientInfo(), HTTP: h.HTTPURL()}
	h.logOwner.FillCounts(&i)
	return i
}

// WatchCommand returns the command that observes the embedded server, without its arguments; ""
// without a port, and for an external one.
func (h *Node) WatchCommand() string {
	if h.embedded == nil {
		return ""
	}
	return h.embedded.WatchCommand()
}
