package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// serveModel is a model behind HTTP: it speaks Chat Completions, streaming, and plays the
// script that the model's name names. It runs in a process of its own, so that its processor
// time is not that of a column. It prints its address and serves until standard input ends.
func serveModel() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("bench: model server: %w", err)
	}
	fmt.Println("http://" + listener.Addr().String() + "/v1")
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // the parent has gone: either way it is over
		os.Exit(0)
	}()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", answerCompletion)
	return http.Serve(listener, mux)
}

// servedRequest is what the script needs of a request.
type servedRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

func answerCompletion(w http.ResponseWriter, r *http.Request) {
	var request servedRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Messages) == 0 || !request.Stream {
		http.Error(w, "the request is no streaming chat completion", http.StatusBadRequest)
		return
	}
	s, err := parseScript(request.Model)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	result := ""
	if last := request.Messages[len(request.Messages)-1]; last.Role == "tool" {
		result = contentText(last.Content)
	}
	if s.kind == scriptWait {
		<-r.Context().Done()
		return
	}
	if s.delay > 0 {
		time.Sleep(s.delay)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range completionEvents(request.Model, s.next(result)) {
		fmt.Fprintf(w, "data: %s\n\n", event)
	}
}

// contentText reads a content that is a string or a list of parts.
func contentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// completionEvents are the events of one reply: its content, its end, the usage, and [DONE].
func completionEvents(name string, r reply) []string {
	delta, finish := map[string]any{"role": "assistant", "content": r.text}, "stop"
	if r.row > 0 {
		call := newFloorCall("c"+strconv.Itoa(r.row), lookName, lookJSON(r.row))
		delta = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"index": 0, "id": call.ID, "type": call.Type, "function": call.Function}}}
		finish = "tool_calls"
	}
	chunk := func(choices []any, usage any) string {
		data, err := json.Marshal(map[string]any{"id": "b1", "object": "chat.completion.chunk", "created": 1, "model": name, "choices": choices, "usage": usage})
		if err != nil {
			panic(err) // maps of strings and numbers
		}
		return string(data)
	}
	return []string{
		chunk([]any{map[string]any{"index": 0, "delta": delta, "finish_reason": nil}}, nil),
		chunk([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}}, nil),
		chunk([]any{}, map[string]any{"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}),
		"[DONE]",
	}
}
