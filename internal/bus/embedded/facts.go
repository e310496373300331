package embedded

import (
	"context"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/troupe-run/troupe/internal/bus"
)

// FactsSource implements Witness: the server is in this process.
func (e *Server) FactsSource() string { return "in this process" }

// ReportFacts implements Witness.
func (e *Server) ReportFacts(context.Context, []string) ([]bus.ServerFacts, error) {
	f := bus.ServerFacts{Name: e.currentServer().Name(), Version: server.VERSION}
	if c := e.currentServer().JetStreamConfig(); c != nil {
		f.JetStream, f.Synced, f.SyncEvery = true, c.SyncAlways, c.SyncInterval
	}
	return []bus.ServerFacts{f}, nil
}
