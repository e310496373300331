package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// floorClient speaks Chat Completions with net/http and encoding/json.
type floorClient struct {
	url   string
	model string
	http  *http.Client
}

// errModelServer: the model server refused a request, or its stream broke off.
var errModelServer = errors.New("bench: model server")

// newHTTPClient keeps as many connections as there are agents. The peers use it, too.
func newHTTPClient(agents int) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = agents, agents
	return &http.Client{Transport: t}
}

func newFloorClient(s setup) *floorClient {
	return &floorClient{url: s.url + "/chat/completions", model: s.script.name, http: newHTTPClient(s.agents)}
}

type floorRequest struct {
	Model    string         `json:"model"`
	Stream   bool           `json:"stream"`
	Messages []floorMessage `json:"messages"`
	Tools    []wireTool     `json:"tools"`
}

type wireTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

const lookSchema = `{"type":"object","properties":{"row":{"type":"integer","description":"number of the row"}},"required":["row"]}`

func lookTool() wireTool {
	t := wireTool{Type: "function"}
	t.Function.Name, t.Function.Description, t.Function.Parameters = lookName, lookDescription, json.RawMessage(lookSchema)
	return t
}

// wireChunk is an event of the stream.
type wireChunk struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
			Calls   []struct {
				Index int `json:"index"`
				floorCall
			} `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
}

// complete makes one model call and reads its stream.
func (c *floorClient) complete(ctx context.Context, history []floorMessage) (floorMessage, error) {
	body, err := json.Marshal(floorRequest{Model: c.model, Stream: true, Messages: history, Tools: []wireTool{lookTool()}})
	if err != nil {
		return floorMessage{}, fmt.Errorf("floor: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return floorMessage{}, fmt.Errorf("floor: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return floorMessage{}, fmt.Errorf("floor: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return floorMessage{}, fmt.Errorf("%w: %s", errModelServer, response.Status)
	}
	return readFloorStream(bufio.NewScanner(response.Body))
}

// readFloorStream reads to the end of the body, or the connection could not be used again.
func readFloorStream(lines *bufio.Scanner) (floorMessage, error) {
	m, done := floorMessage{Role: "assistant"}, false
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !ok || done:
			continue
		case data == "[DONE]":
			done = true
			continue
		}
		var chunk wireChunk
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return m, fmt.Errorf("%w: %w", errModelServer, err)
		}
		for _, choice := range chunk.Choices {
			m.Content += choice.Delta.Content
			for _, c := range choice.Delta.Calls {
				m.Calls = append(m.Calls, c.floorCall)
			}
		}
	}
	if !done {
		return m, errors.Join(errModelServer, lines.Err())
	}
	return m, nil
}
