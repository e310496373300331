package node

import (
	"context"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// A start that is canceled while the node opens its logs and the server creates its buckets leaves no goroutine, and the
// directory to the next start.
func TestACanceledStartLeavesItsDirectoryToTheNext(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	canceled := 0
	for after := time.Duration(0); after < 60*time.Millisecond; after += 5 * time.Millisecond {
		for _, store := range []string{statedir.LogsInFiles, statedir.LogsInJetStream} {
			cfg := Config{StartServer: embedded.StartServer, StateDir: t.TempDir(), Port: embedded.FreePort, Lazy: true, Name: "host", LogStore: store, Env: func(string) string { return "" }}
			ctx, cancel := context.WithTimeout(t.Context(), after)
			h, err := Start(ctx, cfg)
			cancel()
			if err != nil {
				canceled++
			} else if err := h.Close(); err != nil {
				t.Errorf("%s, %s: close: %v", store, after, err)
			}
			if h, err = Start(t.Context(), cfg); err != nil {
				t.Errorf("%s, %s: the next start: %v", store, after, err)
				continue
			}
			if err := h.Close(); err != nil {
				t.Errorf("%s, %s: close of the next: %v", store, after, err)
			}
		}
	}
	if canceled == 0 {
		t.Error("no start was canceled")
	}
}
