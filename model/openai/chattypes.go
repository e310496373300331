package openai

import (
	"encoding/json"

	"github.com/troupe-run/troupe/internal/modelhttp"
)

// chatPart is a part of a message that shows media.
type chatPart struct {
	Type  string    `json:"type"`
	Text  string    `json:"text,omitempty"`
	Image *imageURL `json:"image_url,omitempty"`
	File  *fileData `json:"file,omitempty"`
}

type imageURL struct {
	URL    string `json:"url"`
	Detail string `json:"detail"`
}

type fileData struct {
	Data string `json:"file_data"`
	Name string `json:"filename"`
}

// chosenTool forces a function by its name.
type chosenTool struct {
	Type     string `json:"type"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

type chatFormat struct {
	Type   string       `json:"type"`
	Schema answerFormat `json:"json_schema"`
}

// chatChunk holds the fields that are read of an event of Chat Completions.
type chatChunk struct {
	Model   modelhttp.Text  `json:"model"`
	Choices []chunkChoice   `json:"choices"`
	Usage   chunkUsage      `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type chunkChoice struct {
	Index  modelhttp.Count `json:"index"`
	Delta  chunkDelta      `json:"delta"`
	Finish modelhttp.Text  `json:"finish_reason"`
}

// chunkDelta is a piece of a reply. Reasoning has two names, by server.
type chunkDelta struct {
	Content          modelhttp.Text `json:"content"`
	Refusal          modelhttp.Text `json:"refusal"`
	ReasoningContent string         `json:"reasoning_content"`
	Reasoning        string         `json:"reasoning"`
	ToolCalls        []callDelta    `json:"tool_calls"`
}

type callDelta struct {
	Index    modelhttp.Count `json:"index"`
	ID       modelhttp.Text  `json:"id"`
	Function struct {
		Name      modelhttp.Text `json:"name"`
		Arguments modelhttp.Text `json:"arguments"`
	} `json:"function"`
}

// chunkUsage is usage as Chat Completions reports it: Output includes the reasoning.
type chunkUsage struct {
	Input  modelhttp.Count `json:"prompt_tokens"`
	Output modelhttp.Count `json:"completion_tokens"`
	Total  modelhttp.Count `json:"total_tokens"`
	Of     struct {
		Cached  modelhttp.Count `json:"cached_tokens"`
		Written modelhttp.Count `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	To struct {
		Reasoning modelhttp.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}
