package bustest

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// PlainServer starts a NATS server on loopback that troupe did not configure, and returns its
// URL. It ends with the test.
func PlainServer(t testing.TB, o *server.Options) string {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s.ClientURL()
}
