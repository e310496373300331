package anthropic

import (
	"encoding/json"

	"github.com/troupe-run/troupe/internal/modelhttp"
)

// requestBody is the body of a request.
type requestBody struct {
	Model        string            `json:"model"`
	MaxTokens    int64             `json:"max_tokens"`
	Stream       bool              `json:"stream"`
	System       []contentBlock    `json:"system,omitempty"`
	Messages     []chatMessage     `json:"messages"`
	Tools        []toolDeclaration `json:"tools,omitempty"`
	ToolChoice   *toolChoice       `json:"tool_choice,omitempty"`
	Temperature  *float64          `json:"temperature,omitempty"`
	OutputConfig *outputConfig     `json:"output_config,omitempty"`
	Thinking     *thinkingConfig   `json:"thinking,omitempty"`
}

// chatMessage is one message: consecutive blocks of one side.
type chatMessage struct {
	Role    string         `json:"role"`
	Content []contentBlock `json:"content"`
}

// contentBlock is one block of a message, in a request. Its type says which fields it has.
// Pointers are fields that must be sent even if they are empty.
type contentBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	Data      *string         `json:"data,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Content   []contentBlock  `json:"content,omitempty"`
	Title     string          `json:"title,omitempty"`
	Source    *mediaSource    `json:"source,omitempty"`
	Cache     *cacheControl   `json:"cache_control,omitempty"`
}

type mediaSource struct {
	Type  string `json:"type"`
	Media string `json:"media_type"`
	Data  string `json:"data"`
}

type cacheControl struct {
	Type string `json:"type"`
}

type toolDeclaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
}

type toolChoice struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
}

type outputConfig struct {
	Effort string        `json:"effort,omitempty"`
	Format *answerFormat `json:"format,omitempty"`
}

type answerFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

type thinkingConfig struct {
	Type    string       `json:"type"`
	Binding blockBinding `json:"block_binding"`
}

type blockBinding struct {
	OnMismatch string `json:"prefix_mismatch_behavior"`
}

// Types of content blocks.
const (
	typeText       = "text"
	typeToolUse    = "tool_use"
	typeToolResult = "tool_result"
	typeImage      = "image"
	typeDocument   = "document"
)

// Roles on the wire; results are the user's.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// streamEvent holds the fields that are read of an event.
type streamEvent struct {
	Type    modelhttp.Text  `json:"type"`
	Index   modelhttp.Count `json:"index"`
	Message struct {
		Model modelhttp.Text `json:"model"`
		Usage usageCounts    `json:"usage"`
	} `json:"message"`
	Block blockStart  `json:"content_block"`
	Delta blockDelta  `json:"delta"`
	Usage usageCounts `json:"usage"`
}

// blockStart begins a content block.
type blockStart struct {
	Type      modelhttp.Text  `json:"type"`
	Text      modelhttp.Text  `json:"text"`
	Thinking  modelhttp.Text  `json:"thinking"`
	Signature modelhttp.Text  `json:"signature"`
	Data      modelhttp.Text  `json:"data"`
	Name      modelhttp.Text  `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// blockDelta is a piece of a content block, or the end of a message.
type blockDelta struct {
	Type        modelhttp.Text `json:"type"`
	Text        modelhttp.Text `json:"text"`
	Thinking    modelhttp.Text `json:"thinking"`
	Signature   modelhttp.Text `json:"signature"`
	PartialJSON modelhttp.Text `json:"partial_json"`
	StopReason  modelhttp.Text `json:"stop_reason"`
}

// usageCounts is usage as Anthropic reports it: Input is the prompt without what the cache
// had or took.
type usageCounts struct {
	Input      modelhttp.Count `json:"input_tokens"`
	Output     modelhttp.Count `json:"output_tokens"`
	CacheRead  modelhttp.Count `json:"cache_read_input_tokens"`
	CacheWrite modelhttp.Count `json:"cache_creation_input_tokens"`
	Of         struct {
		Thinking modelhttp.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}
