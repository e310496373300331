package control

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// TestACloseWithRequestsUnderWay: requests come while a node closes. Each is
// answered or refused, none begins after Close has returned, and the race
// detector sees nothing.
func TestACloseWithRequestsUnderWay(t *testing.T) {
	e := startEmbedded(t)
	asks := dialRole(t, e, bus.RoleClient)
	for range 20 {
		serves := dialRole(t, e, bus.RoleService)
		c, err := Serve(Config{Conn: serves, Names: names.Names{}, Name: "one", Machine: "m", NoActors: true, Self: func() client.NodeInfo { return client.NodeInfo{} }})
		if err != nil {
			t.Fatal(err)
		}
		closeUnderLoad(t, asks, c)
		serves.Close()
	}
}

// closeUnderLoad closes a service under a flood of requests.
func closeUnderLoad(t *testing.T, asks *nats.Conn, c *Control) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	began := make(chan struct{}, 8)
	for range 8 {
		all.Go(func() {
			for first := true; ctx.Err() == nil; first = false {
				_, err := client.New(asks, c.cfg.Names).Nodes(ctx)
				var refused *client.Error
				if err != nil && errors.As(err, &refused) && refused.Code == client.CodeInternal {
					t.Errorf("a request at the end: %v", err)
				}
				if first {
					began <- struct{}{}
				}
			}
		})
	}
	for range 8 {
		<-began
	}
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if c.work.Start(func() { t.Error("a request began after the end") }) {
		t.Error("the end does not keep requests from beginning")
	}
	cancel()
	all.Wait()
}
