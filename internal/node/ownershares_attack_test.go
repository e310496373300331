package node

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/httpapi"
)

// openUntilRefused opens a connection after the other, each with the same request, until the server refuses one. It returns
// those that were served.
func (w webClient) openUntilRefused(most int, path, header string) (served []net.Conn) {
	w.t.Helper()
	address := strings.TrimPrefix(w.url, "http://")
	for range most {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = conn.Close() }) // the server may have closed it
		request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%s\r\n", path, address, w.token, header)
		if _, err := conn.Write([]byte(request)); err != nil {
			w.t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			w.t.Fatal(err)
		}
		switch status, err := bufio.NewReader(conn).ReadString('\n'); {
		case err != nil:
			w.t.Fatalf("%d connections were served, and the next one has no answer: %v", len(served), err)
		case strings.Contains(status, "503"), strings.Contains(status, "429"):
			return served
		case !strings.Contains(status, "200"):
			w.t.Fatalf("%s: %s", path, status)
		}
		served = append(served, conn)
	}
	return served
}

// TestAttackOwnerUsesUpStreamsAndConnections: alice opens as many streams and connections as she can, and sends requests on all
// of them. Bob and an operator still have a stream, and an answer at once.
func TestAttackOwnerUsesUpStreamsAndConnections(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	w, alice, bob, run := startOwnersWeb(t)
	other := client.NewID()
	bob.post("/api/v1/runs", fmt.Sprintf(`{"run_id":%q,"prompt":"x","agent":"assistant"}`, other), http.StatusCreated, nil)
	bob.get("/api/v1/runs/"+other+"/result?wait=60s", http.StatusOK, nil)
	stream := "Accept: text/event-stream\r\n"
	streams := alice.openUntilRefused(httpapi.StreamsMax+1, "/api/v1/runs/"+run+"/events", stream)
	idle := alice.openUntilRefused(httpapi.ConnectionsMax+1, "/api/v1/runs/"+run, "")
	t.Logf("alice has %d streams and %d connections", len(streams), len(streams)+len(idle))
	address := strings.TrimPrefix(w.url, "http://")
	flood := strings.Repeat(fmt.Sprintf("GET /api/v1/runs/%s/tree HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", run, address, alice.token), 10)
	for _, conn := range idle {
		if _, err := conn.Write([]byte(flood)); err != nil {
			t.Fatal(err)
		}
	}
	const prompt = 5 * time.Second
	began := time.Now()
	for _, who := range []webClient{bob, w} {
		if got := who.openUntilRefused(1, "/api/v1/runs/"+other+"/events", stream); len(got) != 1 {
			t.Error("no stream beside those of alice")
		}
		who.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		who.get("/api/v1/runs/"+other+"/tree", http.StatusOK, nil)
	}
	if took := time.Since(began); took > prompt {
		t.Errorf("bob and the operator were served after %v", took)
	}
}
