package client

import (
	"context"

	"github.com/troupe-run/troupe/internal/lane"
)

// ConversationsRequest asks for the conversations, the most recent first, or for one of them with its runs.
type ConversationsRequest struct {
	Conversation string `json:"conversation_id,omitempty"`
	// Busy selects the conversations with a run that is active or waits.
	Busy bool `json:"busy,omitempty"`
	// Limit is the most conversations that are wanted; 0: all.
	Limit int `json:"limit,omitempty"`
}

// ConversationInfo is one conversation.
type ConversationInfo struct {
	Conversation string `json:"conversation_id"`
	// Active is the run that has begun and not ended; "": none.
	Active  string `json:"active,omitempty"`
	Waiting int    `json:"waiting"`
	Count   int    `json:"count"` // of all its runs
	// HandedTo is the agent that has the conversation by a handoff: it gets the messages that name no agent.
	HandedTo string `json:"handed_to,omitempty"`
	// Changed is when a message was posted, or a run began or ended; RFC 3339.
	Changed string `json:"changed"`
	// Runs are those that have begun or ended, in that order, then those that wait, in the order in which they will
	// begin. Only a request for one conversation or for busy ones gets them; a busy one those that have not ended.
	Runs []ConversationRun `json:"runs,omitempty"`
	// Journal is the run journal with which the next run begins. Only a request for one conversation gets it.
	Journal string `json:"journal,omitempty"`
}

// ConversationRun is a run of a conversation.
type ConversationRun struct {
	lane.Run
	Title string `json:"title,omitempty"`
}

// LaneRequest changes the queue of a conversation: it moves or drops a run that waits.
type LaneRequest struct {
	Conversation string `json:"conversation_id"`
	RunID        string `json:"run_id"`
	// Action is move or drop.
	Action string `json:"action"`
	// Before is the waiting run before which a moved one goes; "": the end of the queue.
	Before string `json:"before,omitempty"`
}

// Actions of a LaneRequest.
const (
	LaneMove = "move"
	LaneDrop = "drop"
)

// DeletedConversation answers a DeleteRequest for a conversation.
type DeletedConversation struct {
	Conversation string   `json:"conversation_id"`
	Runs         []string `json:"runs"`
	// More: some runs are left. Ask again.
	More bool `json:"more,omitempty"`
}

// Conversations are the conversations of all runs that the nodes keep.
type Conversations struct{ client *Client }

// Conversations returns the conversations.
func (c *Client) Conversations() Conversations { return Conversations{c} }

// List lists the conversations, the most recent first.
func (l Conversations) List(ctx context.Context, r ConversationsRequest) ([]ConversationInfo, error) {
	list := []ConversationInfo{}
	err := l.client.askNode(ctx, "conversations", r, &list)
	return list, err
}

// Get returns one conversation with its runs.
func (l Conversations) Get(ctx context.Context, id string) (ConversationInfo, error) {
	list, err := l.List(ctx, ConversationsRequest{Conversation: id})
	if err != nil || len(list) == 0 {
		return ConversationInfo{}, err
	}
	return list[0], nil
}

// ChangeLane moves or drops a run that waits, and returns the conversation.
func (l Conversations) ChangeLane(ctx context.Context, r LaneRequest) (ConversationInfo, error) {
	var i ConversationInfo
	err := l.client.askNode(ctx, "lane", r, &i)
	return i, err
}

// Delete removes a conversation and its runs, which must have ended.
func (l Conversations) Delete(ctx context.Context, id string) (DeletedConversation, error) {
	all := DeletedConversation{Conversation: id, Runs: []string{}}
	for {
		var d DeletedConversation
		if err := l.client.askNode(ctx, "delete", DeleteRequest{Conversation: id}, &d); err != nil {
			return all, err
		}
		all.Runs = append(all.Runs, d.Runs...)
		if !d.More || len(d.Runs) == 0 {
			return all, nil
		}
	}
}
