package node

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/httpapi"
)

// A run is forked over HTTP after a turn with another message, and compared with its origin: the message is the first difference.
func TestForkIsComparedOverHTTP(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, w := startWeb(t)
	c := connectClient(t, h)
	model := writeScript(t, "default: [{calls: [{name: get_run_journal, args: {}}]}, {text: done}]")
	origin := beginRun(t, c, client.RunRequest{Model: model})
	waitFinished(t, c, origin, spec.Completed)
	var accepted client.RunAccepted
	w.post("/api/v1/runs", fmt.Sprintf(`{"fork":"%s@root:1","prompt":"another question"}`, origin), http.StatusCreated, &accepted)
	waitFinished(t, c, accepted.RunID, spec.Completed)
	path := "/api/v1/runs/" + origin + "/comparison"
	var doc httpapi.RunComparison
	w.get(path+"?with="+accepted.RunID, http.StatusOK, &doc)
	if d := doc.First; d == nil || d.Agent != "root" || !strings.Contains(d.B, "another question") || doc.A.RunID != origin || doc.B.Fork != origin+"@root:1" {
		t.Fatalf("%+v", doc)
	}
	marked := 0
	for _, p := range doc.Steps {
		if p.Differs && marked == 0 && p.A == doc.First.A && p.B == doc.First.B && p.Kind == doc.First.Kind {
			marked++
		}
	}
	var same httpapi.RunComparison
	w.get(path+"?with="+origin, http.StatusOK, &same)
	if marked != 1 || same.First != nil || len(same.Steps) != 0 {
		t.Errorf("%d marked; %+v", marked, same)
	}
	var info client.RunInfo
	w.get("/api/v1/runs/"+accepted.RunID+"?describe=true", http.StatusOK, &info)
	if info.Description.Fork != origin+"@root:1" {
		t.Errorf("describe: %q", info.Description.Fork)
	}
	w.get(path, http.StatusBadRequest, nil)
	w.get(path+"?with="+client.NewID(), http.StatusNotFound, nil)
	w.expect(w.request("GET", path+"?with="+origin, "", func(r *http.Request) { r.Header.Del("Authorization") }), http.StatusUnauthorized, nil)
}
