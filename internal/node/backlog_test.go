package node

import (
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// TestPeopleChangeTheBacklogOfARun: over HTTP and from Go, a person adds tasks to the backlog of a live run and drops them. A request
// that is sent again adds nothing more.
func TestPeopleChangeTheBacklogOfARun(t *testing.T) {
	t.Parallel()
	_, gate, agents := heldFamily(t)
	writeFileAt(t, filepath.Join(agents, "holder.md"), "---\nname: holder\ndescription: Holds.\ntools: [wait, \"backlog_*\"]\n---\nHold.\n")
	script := writeScript(t, `
agents:
  holder:
    - calls: [{name: wait}]
    - calls: [{name: backlog_claim}]
    - calls: [{name: backlog_claim}]
    - calls: [{name: backlog_done, args: {task: t3, result: sold}}]
    - text: "{{last}}"
`)
	h, w := startWeb(t, func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: script, Agents: agents, Agent: "holder"})
	awaitEvents(t, c, id, event.KindToolStarted, 1)
	at := "/api/v1/runs/" + id + "/backlog"
	var posted client.Backlog
	for range 2 {
		w.post(at, `{"request_id":"first","title":"Sell boats","text":"All."}`, http.StatusOK, &posted)
	}
	if posted.Posted != "t1" || len(posted.Tasks) != 1 {
		t.Errorf("posted %+v", posted)
	}
	for _, r := range []client.BacklogRequest{{Title: "Nobody needs it"}, {Title: "Buy boats", By: "ann"}, {Drop: "t2", By: "ann"}} {
		r.RunID = id
		if _, err := client.AskBacklog(testContext(t), c, r); err != nil {
			t.Fatal(err)
		}
	}
	for _, body := range []string{`{}`, `{"title":"a\nb"}`, `{"drop":"t9"}`, `{"drop":"t1","title":"x"}`, `{"drop":"t2"}`} {
		w.post(at, body, http.StatusBadRequest, nil)
	}
	openGate(t, gate)
	if text := waitFinished(t, c, id, spec.Completed).Result.Text; text != "t3 is done: 0 open, 1 claimed, 1 done" {
		t.Errorf("the run ends with %q", text)
	}
	w.post(at, `{"title":"late"}`, http.StatusConflict, nil)
	var all client.Backlog
	w.get(at, http.StatusOK, &all)
	var states []string
	for _, task := range all.Tasks {
		states = append(states, task.State)
	}
	if want := []string{"open", "dropped", "done"}; !slices.Equal(states, want) { // the end of the agent opens its task again
		t.Errorf("the tasks are %v, want %v", states, want)
	}
	w.get(at+"?task=t3", http.StatusOK, &all)
	if one := all.Tasks[0]; len(all.Tasks) != 1 || one.Result != "sold" || one.By != "ann" || one.Agent != spec.Root {
		t.Errorf("t3 is %+v", all.Tasks)
	}
}
