package openai

import (
	"encoding/json"

	"github.com/troupe-run/troupe/internal/modelhttp"
)

// responseBody is the body of a request to the Responses API.
type responseBody struct {
	Model        string           `json:"model"`
	Instructions string           `json:"instructions,omitempty"`
	Input        []inputItem      `json:"input"`
	MaxOutput    int64            `json:"max_output_tokens"`
	Store        bool             `json:"store"`
	Stream       bool             `json:"stream"`
	Include      []string         `json:"include,omitempty"`
	Reasoning    *reasoningConfig `json:"reasoning,omitempty"`
	Tools        []functionTool   `json:"tools,omitempty"`
	ToolChoice   any              `json:"tool_choice,omitempty"` // a word or a namedTool
	Temperature  *float64         `json:"temperature,omitempty"`
	ServiceTier  string           `json:"service_tier,omitempty"`
	Text         *textConfig      `json:"text,omitempty"`
}

type reasoningConfig struct {
	Effort string `json:"effort"`
}

type textConfig struct {
	Format answerFormat `json:"format"`
}

// functionTool declares a tool. Strict is never set: this API would otherwise make every
// parameter required.
type functionTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

type namedTool struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// inputItem is an item of a conversation: a message, which has a role and no type, a call,
// the output of a call, or a thought.
type inputItem struct {
	Type      string        `json:"type,omitempty"`
	Role      string        `json:"role,omitempty"`
	Content   any           `json:"content,omitempty"` // a string or []inputPart
	Phase     string        `json:"phase,omitempty"`
	CallID    string        `json:"call_id,omitempty"`
	Name      string        `json:"name,omitempty"`
	Arguments string        `json:"arguments,omitempty"` // JSON
	Output    string        `json:"output,omitempty"`
	ID        string        `json:"id,omitempty"`
	Summary   []summaryText `json:"summary,omitzero"`
	Encrypted string        `json:"encrypted_content,omitempty"`
}

// inputPart is a part of a message that shows media.
type inputPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	Detail   string `json:"detail,omitempty"`
	FileData string `json:"file_data,omitempty"`
	FileName string `json:"filename,omitempty"`
}

type summaryText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// responseEvent holds the fields that the listener reads of an event of the Responses API.
type responseEvent struct {
	Type     modelhttp.Text  `json:"type"`
	Index    modelhttp.Count `json:"output_index"`
	Delta    modelhttp.Text  `json:"delta"`
	Item     *outputItem     `json:"item"`
	Response *responseState  `json:"response"`
	Error    json.RawMessage `json:"error"`
	Code     json.RawMessage `json:"code"`
	Message  json.RawMessage `json:"message"`
}

// responseState is the whole, as the events about its state hold it.
type responseState struct {
	Model      modelhttp.Text  `json:"model"`
	Status     modelhttp.Text  `json:"status"`
	Output     []outputItem    `json:"output"`
	Usage      usageCounts     `json:"usage"`
	Error      json.RawMessage `json:"error"`
	Incomplete struct {
		Reason modelhttp.Text `json:"reason"`
	} `json:"incomplete_details"`
}

// outputItem is an item of a reply.
type outputItem struct {
	ID        modelhttp.Text `json:"id"`
	Type      modelhttp.Text `json:"type"`
	Status    modelhttp.Text `json:"status"`
	Phase     modelhttp.Text `json:"phase"`
	Name      modelhttp.Text `json:"name"`
	Arguments modelhttp.Text `json:"arguments"` // of a function call
	Encrypted modelhttp.Text `json:"encrypted_content"`
	Content   itemContent    `json:"content"`
	Summary   []struct {
		Text modelhttp.Text `json:"text"`
	} `json:"summary"`
}

// itemContent are the parts of a message. Some servers write its text instead.
type itemContent []outputPart

type outputPart struct {
	Text    modelhttp.Text `json:"text"`
	Refusal modelhttp.Text `json:"refusal"`
}

// UnmarshalJSON accepts a list of parts or a text.
func (c *itemContent) UnmarshalJSON(raw []byte) error {
	if raw[0] != '"' {
		return json.Unmarshal(raw, (*[]outputPart)(c))
	}
	*c = itemContent{{}}
	return (*c)[0].Text.UnmarshalJSON(raw)
}

// usageCounts is usage as this API reports it: Output includes the reasoning.
type usageCounts struct {
	Input  modelhttp.Count `json:"input_tokens"`
	Output modelhttp.Count `json:"output_tokens"`
	Total  modelhttp.Count `json:"total_tokens"`
	Of     struct {
		Cached  modelhttp.Count `json:"cached_tokens"`
		Written modelhttp.Count `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	To struct {
		Reasoning modelhttp.Count `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// Types of items.
const (
	itemMessage  = "message"
	itemCall     = "function_call"
	itemThought  = "reasoning"
	itemOutput   = "function_call_output"
	itemNotWhole = "incomplete" // also the status of a response
)

// reasonLimit is why a reply is not whole that reached the limit of the output.
const reasonLimit = "max_output_tokens"
