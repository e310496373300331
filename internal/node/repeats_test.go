package node

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/httpapi"
)

// Over HTTP, a request id that another request has used is refused, or what is asked is done: 200 never means that nothing
// comes of it.
func TestRequestIDOfAnotherRequestOverHTTP(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := heldFamily(t)
	h, w := startWeb(t, func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := client.NewID()
	body := fmt.Sprintf(`{"run_id":%q,"prompt":"FIRST","model":%q,"agents":%q,"agent":"boss"}`, id, model, agents)
	var accepted client.RunAccepted
	w.post("/api/v1/runs", body, http.StatusCreated, &accepted)
	if w.post("/api/v1/runs", body, http.StatusOK, &accepted); !accepted.Existed || len(accepted.Differs) > 0 {
		t.Errorf("the same request for a run: %+v", accepted)
	}
	other := strings.NewReplacer("FIRST", "SECOND", "boss", "other").Replace(body)
	if w.post("/api/v1/runs", other, http.StatusOK, &accepted); !slices.Equal(accepted.Differs, []string{"prompt", "agent"}) {
		t.Errorf("another request for a run: %+v", accepted)
	}
	accepted = client.RunAccepted{}
	if w.post("/api/v1/runs", fmt.Sprintf(`{"run_id":%q,"resume":true}`, id), http.StatusOK, &accepted); !accepted.Existed || len(accepted.Differs) > 0 {
		t.Errorf("a resume: %+v", accepted)
	}
	awaitEvents(t, c, id, event.KindToolStarted, 2)
	path := "/api/v1/runs/" + id
	for range 2 {
		w.post(path+"/steer", `{"request_id":"s1","text":"FIRST"}`, http.StatusOK, &httpapi.Recorded{})
		w.post(path+"/budget", `{"request_id":"x1","patch":true,"limits":{"tokens":777777}}`, http.StatusOK, &httpapi.Recorded{})
	}
	w.post(path+"/steer", `{"request_id":"s1","text":"SECOND"}`, http.StatusConflict, nil)
	w.post(path+"/budget", `{"request_id":"x1","freeze":true}`, http.StatusConflict, nil)
	w.post(path+"/policy", `{"request_id":"x1","policy":{}}`, http.StatusConflict, nil)
	w.post(path+"/cancel", `{"request_id":"x1","wait_ms":-1}`, http.StatusOK, nil)
	var reply client.CancelReply
	w.post(path+"/cancel", `{"request_id":"x1","now":true}`, http.StatusOK, &reply)
	if reply.Agents == 0 || reply.Stopped != reply.Agents {
		t.Errorf("a cancel that aborts, after one that does not: %+v", reply)
	}
	openGate(t, gate)
}
