package bustest

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
)

// StartServer starts an embedded server of this test alone, which listens nowhere. It ends with the test.
func StartServer(t *testing.T) *embedded.Server {
	t.Helper()
	e, err := embedded.Start(embedded.Config{StateDir: t.TempDir(), DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// Connect connects to an embedded server until the test ends.
func Connect(t *testing.T, e *embedded.Server, role bus.Role) *nats.Conn {
	t.Helper()
	nc, err := e.Connect(role)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}
