package embedded

import (
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// requestsWait bounds the wait for the requests that a server still serves when it is shut down, and requestsPause is
	// the time between two looks at them.
	requestsWait  = 5 * time.Second
	requestsPause = time.Millisecond
)

// shutDown stops a server. First it waits for the requests about streams that the server still serves: the server has
// goroutines for them which go on when their connection has closed, as that of a start that was canceled. A stream that
// one of them creates during the shutdown is never closed, and would go on writing into the directory, which the next
// server has by then.
func shutDown(s *server.Server) {
	for began := time.Now(); isServingRequests(s) && time.Since(began) < requestsWait; {
		time.Sleep(requestsPause)
	}
	s.Shutdown()
	s.WaitForShutdown()
}

// isServingRequests reports whether a server serves requests about streams; one whose JetStream has stopped serves none.
func isServingRequests(s *server.Server) bool {
	info, err := s.Jsz(nil)
	return err == nil && info.API.Inflight > 0
}
