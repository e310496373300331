package node

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/httpapi"
	"github.com/troupe-run/troupe/mailbox"
)

// The pages of all logs over HTTP have the entries of the store, each once and in order, with the bytes that `troupe dump` writes.
func TestLogsOverHTTPAreThoseOfTheStore(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, w := startWeb(t)
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: writeScript(t, family)})
	waitFinished(t, c, id, spec.Completed)
	path := "/api/v1/runs/" + id + "/logs"
	var list httpapi.RecordedLogs
	w.get(path, http.StatusOK, &list)
	var got []mailbox.Message
	kinds := map[string]bool{}
	for _, at := range list.Logs {
		for after, more := uint64(0), true; more; {
			var page httpapi.RecordedLogs
			w.get(fmt.Sprintf("%s?log=%s&after=%d&limit=3&data=true", path, url.QueryEscape(string(at)), after), http.StatusOK, &page)
			if len(page.Entries) == 0 || len(page.Entries) > 3 {
				t.Fatalf("%s after %d: %d entries", at, after, len(page.Entries))
			}
			for _, e := range page.Entries {
				data, err := base64.StdEncoding.DecodeString(e.Data)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, mailbox.Message{To: at, Place: e.Place, Data: data})
				for _, f := range e.Facts {
					kinds[f.Kind] = true
				}
				after = e.Place
			}
			more = page.More
		}
	}
	want, err := c.Logs(testContext(t), id)
	if err != nil || len(got) != len(want) || !kinds["submitted"] {
		t.Fatalf("%d entries, want %d (%v), kinds %v", len(got), len(want), err, kinds)
	}
	for i, m := range want {
		if got[i].To != m.To || got[i].Place != m.Place || !bytes.Equal(got[i].Data, m.Data) {
			t.Errorf("entry %d: %s %d, want %s %d", i, got[i].To, got[i].Place, m.To, m.Place)
		}
	}
	other := beginRun(t, c, client.RunRequest{Model: writeScript(t, "default: [{text: done}]")})
	waitFinished(t, c, other, spec.Completed)
	w.get(path+"?log="+other+".root", http.StatusNotFound, nil)
	w.get(path+"?log=_lane.x", http.StatusNotFound, nil)
	w.get(path+"?after=-1", http.StatusBadRequest, nil)
	w.get(path+"?limit=1001", http.StatusBadRequest, nil)
	w.get("/api/v1/runs/"+client.NewID()+"/logs", http.StatusNotFound, nil)
	w.expect(w.request("GET", path, "", func(r *http.Request) { r.Header.Del("Authorization") }), http.StatusUnauthorized, nil)
	w.expect(w.request("POST", path, "{}"), http.StatusMethodNotAllowed, nil)
}
