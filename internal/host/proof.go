package host

import (
	"cmp"
	"context"
	"strings"

	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox/jetstream"
)

// systemInbox is where the system account's answers come.
const systemInbox = "_INBOX_system"

// prove looks at what the server promises. A node does not start on one that was
// seen not to keep it; what cannot be seen is said.
func (h *Host) prove(ctx context.Context) error {
	w, done, err := h.witness()
	if err != nil {
		return err
	}
	defer done()
	h.proof, err = bus.Prove(ctx, bus.ProofConfig{Conn: h.owner, Names: h.names, Streams: jetstream.DefaultStreams, Lazy: h.cfg.Lazy,
		Witness: w, Want: h.cfg.Profile})
	if err != nil {
		return err
	}
	for _, f := range h.proof.Findings {
		if f.Status != bus.Proven {
			h.cfg.Logger.Warn("a promise of the server is not proven", "profile", h.proof.Profile, "check", f.Check, "status", f.Status, "detail", f.Detail, "remedy", f.Remedy)
		}
	}
	return h.proof.Err()
}

// witness is who says how servers store, nil if there is nobody; done ends it.
func (h *Host) witness() (w bus.Witness, done func(), err error) {
	done = func() {}
	s := h.cfg.System
	switch {
	case h.embedded != nil:
		return h.embedded, done, nil
	case h.cfg.Bus.Owner != "":
		return bus.Owner{Dir: h.cfg.Bus.Owner}, done, nil
	case len(h.cfg.Monitor) > 0:
		return bus.Monitors(h.cfg.Monitor), done, nil
	case s.Creds == "" && s.NKey == "" && s.User == "":
		return nil, done, nil
	}
	s.Servers, s.TLSCert, s.TLSKey, s.TLSCA = cmp.Or(s.Servers, "nats://"+h.owner.ConnectedAddr()), h.cfg.Bus.TLSCert, h.cfg.Bus.TLSKey, h.cfg.Bus.TLSCA
	s.InboxPrefix = cmp.Or(s.InboxPrefix, systemInbox)
	nc, err := bus.Connect(s)
	if err != nil {
		return nil, done, err
	}
	return bus.System{Conn: nc}, nc.Close, nil
}

// Proof is what was seen of the server's promises when the node started.
func (h *Host) Proof() bus.Proof { return h.proof }

// self is what the doors tell of a node that is alone.
func (h *Host) self() client.NodeInfo {
	live, resting := h.census.count()
	liveRuns, queued := h.runsHere.count()
	return client.NodeInfo{Live: live, LiveRuns: liveRuns, QueuedRuns: queued, Resting: resting, Rules: h.cfg.Rules, Profile: string(h.proof.Profile), Unproven: strings.Join(h.proof.Open(), ", "), Proof: &h.proof,
		Journal: h.journal.info()}
}

// Watch is the command that observes the embedded server, without its arguments; ""
// without a port, and for an external one.
func (h *Host) Watch() string {
	if h.embedded == nil {
		return ""
	}
	return h.embedded.Watch()
}
