package httpapi

import (
	"net/http"

	"github.com/troupe-run/troupe/client"
)

// conversationsMax is the most conversations of one answer.
const conversationsMax = 1000

const pathConversation = "/api/v1/conversations/{conversation}"

// listConversations is GET /api/v1/conversations; busy=true selects those with a run that is active or waits.
func listConversations(c *client.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := queryReader{values: r.URL.Query()}
		ask := client.ConversationsRequest{Busy: q.flag("busy"), Limit: q.number("limit", 0, 1, conversationsMax)}
		if q.accept(w, "busy", "limit") {
			list, err := c.Conversations().List(r.Context(), ask)
			answer(w, list, err)
		}
	}
}

// getConversation is GET /api/v1/conversations/{conversation}.
func getConversation(c *client.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		doc, err := c.Conversations().Get(r.Context(), r.PathValue("conversation"))
		answer(w, doc, err)
	}
}

// deleteConversation is DELETE /api/v1/conversations/{conversation}, with all its runs.
func deleteConversation(c *client.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		doc, err := c.Conversations().Delete(r.Context(), r.PathValue("conversation"))
		answer(w, doc, err)
	}
}

// changeLane is POST /api/v1/conversations/{conversation}/lane: it moves or drops a run that waits.
func changeLane(c *client.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var doc client.LaneRequest
		id := r.PathValue("conversation")
		if err := readBody(r, &doc, true); err != nil {
			refuseBody(w, err)
			return
		}
		if doc.Conversation != "" && doc.Conversation != id {
			refuse(w, http.StatusBadRequest, "the body names the conversation "+quoteShort(doc.Conversation)+" and the path another", "leave conversation_id out of the body")
			return
		}
		doc.Conversation = id
		for _, run := range []*string{&doc.RunID, &doc.Before} {
			if *run == "" {
				continue
			}
			found, err := c.FindRun(r.Context(), *run)
			if err != nil {
				refuseError(w, err)
				return
			}
			*run = found
		}
		changed, err := c.Conversations().ChangeLane(r.Context(), doc)
		answer(w, changed, err)
	}
}
