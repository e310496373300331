package embedded_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/test/leaks"
)

// A start that is canceled closes the server while it creates streams. The server has closed all of them when Close
// returns: a stream that stays open would go on writing into the directory, which the next server has by then.
func TestCloseWaitsForStreamsThatTheServerCreates(t *testing.T) {
	leaks.Check(t)
	for i := range 20 {
		e, err := embedded.Start(embedded.Config{StateDir: t.TempDir(), DontListen: true, Lazy: true, LogStore: statedir.LogsInFiles})
		if err != nil {
			t.Fatal(err)
		}
		nc, err := e.Connect(bus.RoleNode)
		if err != nil {
			t.Fatal(err)
		}
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond/4)
		for n := 0; ctx.Err() == nil; n++ { // the caller gives up, and the server goes on
			_, _ = js.CreateStream(ctx, jetstream.StreamConfig{Name: fmt.Sprintf("KV_%d", n), Subjects: []string{fmt.Sprintf("$KV.%d", n)}})
		}
		cancel()
		nc.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
