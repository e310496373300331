package node

import (
	"net/http"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// Conversations and their lanes are listed, shown, changed and deleted over HTTP, as by the commands.
func TestConversationsOverHTTP(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := heldFamily(t)
	h, w := startWeb(t, func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	var runs []string
	for range 4 {
		runs = append(runs, beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss", Conversation: "talk"}))
	}
	awaitEvents(t, c, runs[0], event.KindToolStarted, 2)

	const path = "/api/v1/conversations"
	var list []client.ConversationInfo
	w.get(path+"?busy=true&limit=5", http.StatusOK, &list)
	if len(list) != 1 || list[0].Conversation != "talk" || list[0].Active != runs[0] || list[0].Waiting != 3 {
		t.Errorf("%+v", list)
	}
	w.get(path+"?busy=maybe", http.StatusBadRequest, nil)
	w.get(path+"/none", http.StatusNotFound, nil)
	w.expect(w.request("DELETE", path+"/talk", ""), http.StatusConflict, nil)

	var talk client.ConversationInfo
	w.post(path+"/talk/lane", `{"run_id":"`+runs[3]+`","action":"move","before":"`+runs[1]+`"}`, http.StatusOK, &talk)
	if len(talk.Runs) != 4 || talk.Runs[1].ID != runs[3] {
		t.Errorf("%+v", talk.Runs)
	}
	w.post(path+"/talk/lane", `{"run_id":"`+runs[2]+`","action":"drop"}`, http.StatusOK, &talk)
	if talk.Waiting != 2 {
		t.Errorf("%+v", talk)
	}
	w.post(path+"/talk/lane", `{"run_id":"`+runs[1]+`","action":"raise"}`, http.StatusBadRequest, nil)
	w.post(path+"/talk/lane", `{"conversation_id":"other","run_id":"`+runs[1]+`","action":"drop"}`, http.StatusBadRequest, nil)
	w.post(path+"/talk/lane", `{"run_id":"none","action":"drop"}`, http.StatusNotFound, nil)

	for _, run := range []string{runs[1], runs[3]} {
		w.post(path+"/talk/lane", `{"run_id":"`+run+`","action":"drop"}`, http.StatusOK, nil)
	}
	w.post("/api/v1/runs/"+runs[0]+"/cancel", `{"now":true}`, http.StatusOK, nil)
	openGate(t, gate)
	awaitConversationIdle(t, w, path+"/talk")
	var deleted client.DeletedConversation
	w.expect(w.request("DELETE", path+"/talk", ""), http.StatusOK, &deleted)
	if len(deleted.Runs) != 4 {
		t.Errorf("%+v", deleted)
	}
	w.get(path+"/talk", http.StatusNotFound, nil)
}

// awaitConversationIdle waits until the lane has seen the end of its last run.
func awaitConversationIdle(t *testing.T, w webClient, path string) {
	t.Helper()
	waitUntil(t, "the lane is idle", func() bool {
		var talk client.ConversationInfo
		w.get(path, http.StatusOK, &talk)
		return talk.Active == "" && talk.Waiting == 0
	})
}
