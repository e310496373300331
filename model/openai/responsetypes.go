package openai

import "encoding/json"

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
	Type     string          `json:"type"`
	Index    int64           `json:"output_index"`
	Delta    json.RawMessage `json:"delta"` // a text in every event that is read
	Item     *outputItem     `json:"item"`
	Response *responseState  `json:"response"`
	Error    json.RawMessage `json:"error"`
	Code     any             `json:"code"`
	Message  any             `json:"message"`
}

// responseState is the whole, as the events about its state hold it.
type responseState struct {
	Model      string          `json:"model"`
	Status     string          `json:"status"`
	Output     []outputItem    `json:"output"`
	Usage      *usageCounts    `json:"usage"`
	Error      json.RawMessage `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// outputItem is an item of a reply.
type outputItem struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Status    string          `json:"status"`
	Phase     string          `json:"phase"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // a text in a function call
	Encrypted string          `json:"encrypted_content"`
	Content   []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
	Summary []struct {
		Text string `json:"text"`
	} `json:"summary"`
}

// usageCounts is usage as this API reports it: Output includes the reasoning.
type usageCounts struct {
	Input  *int64 `json:"input_tokens"`
	Output *int64 `json:"output_tokens"`
	Total  int64  `json:"total_tokens"`
	Of     struct {
		Cached  int64 `json:"cached_tokens"`
		Written int64 `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	To struct {
		Reasoning int64 `json:"reasoning_tokens"`
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
