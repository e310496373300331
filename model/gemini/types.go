package gemini

import (
	"encoding/json"

	"github.com/troupe-run/troupe/internal/modelhttp"
)

// requestBody is the body of a request.
type requestBody struct {
	SystemInstruction *messageContent    `json:"systemInstruction,omitempty"`
	Contents          []messageContent   `json:"contents"`
	Tools             []toolDeclarations `json:"tools,omitempty"`
	ToolConfig        *toolConfig        `json:"toolConfig,omitempty"`
	Generation        generationConfig   `json:"generationConfig"`
}

// messageContent is one message: consecutive parts of one role.
type messageContent struct {
	Role  string        `json:"role,omitempty"`
	Parts []contentPart `json:"parts"`
}

// contentPart is one piece of a message.
type contentPart struct {
	Text      *string           `json:"text,omitempty"`
	Thought   bool              `json:"thought,omitempty"`
	Signature string            `json:"thoughtSignature,omitempty"`
	Call      *functionCall     `json:"functionCall,omitempty"`
	Response  *functionResponse `json:"functionResponse,omitempty"`
	Inline    *inlineData       `json:"inlineData,omitempty"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// functionResponse answers the call of the same id.
type functionResponse struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
}

type toolDeclarations struct {
	Functions []functionDeclaration `json:"functionDeclarations"`
}

type functionDeclaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

type toolConfig struct {
	Calling callingConfig `json:"functionCallingConfig"`
}

type callingConfig struct {
	Mode    string   `json:"mode"`
	Allowed []string `json:"allowedFunctionNames,omitempty"`
}

type generationConfig struct {
	MaxOutput   int64           `json:"maxOutputTokens"`
	Temperature *float64        `json:"temperature,omitempty"`
	Thinking    *thinkingConfig `json:"thinkingConfig,omitempty"`
	Resolution  string          `json:"mediaResolution,omitempty"`
	// A response schema requires a MIME type as well.
	Type   string          `json:"responseMimeType,omitempty"`
	Schema json.RawMessage `json:"responseJsonSchema,omitempty"`
}

// thinkingConfig has exactly one of its fields set: Google refuses a request with both.
type thinkingConfig struct {
	Level  string `json:"thinkingLevel,omitempty"`
	Budget int64  `json:"thinkingBudget,omitempty"`
}

// streamEvent holds the fields that are read of an event of the stream.
type streamEvent struct {
	Candidates []struct {
		Index   modelhttp.Count `json:"index"`
		Content struct {
			Parts []receivedPart `json:"parts"`
		} `json:"content"`
		Finish modelhttp.Text `json:"finishReason"`
	} `json:"candidates"`
	Feedback struct {
		Block modelhttp.Text `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage   *usageCounts    `json:"usageMetadata"`
	Version modelhttp.Text  `json:"modelVersion"`
	Error   json.RawMessage `json:"error"`
}

// receivedPart is one piece of a reply.
type receivedPart struct {
	Text      *modelhttp.Text `json:"text"`
	Thought   bool            `json:"thought"`
	Signature modelhttp.Text  `json:"thoughtSignature"`
	Call      *struct {
		Name modelhttp.Text  `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// usageCounts are Google's: Prompt holds Cached, Thoughts are not in Candidates, and
// zeros are left out.
type usageCounts struct {
	Prompt     modelhttp.Count `json:"promptTokenCount"`
	Cached     modelhttp.Count `json:"cachedContentTokenCount"`
	ToolUse    modelhttp.Count `json:"toolUsePromptTokenCount"`
	Candidates modelhttp.Count `json:"candidatesTokenCount"`
	Thoughts   modelhttp.Count `json:"thoughtsTokenCount"`
}
