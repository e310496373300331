package gemini

import "encoding/json"

// body is the body of a request.
type body struct {
	SystemInstruction *content   `json:"systemInstruction,omitempty"`
	Contents          []content  `json:"contents"`
	Tools             []tools    `json:"tools,omitempty"`
	ToolConfig        *config    `json:"toolConfig,omitempty"`
	Generation        generation `json:"generationConfig"`
}

// content is one message: consecutive parts of one role.
type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

// part is one piece of a message, in requests and in events.
type part struct {
	Text      *string   `json:"text,omitempty"`
	Thought   bool      `json:"thought,omitempty"`
	Signature string    `json:"thoughtSignature,omitempty"`
	Call      *call     `json:"functionCall,omitempty"`
	Response  *response `json:"functionResponse,omitempty"`
	Inline    *inline   `json:"inlineData,omitempty"`
}

type call struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// response answers the call of the same id.
type response struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
}

type tools struct {
	Functions []function `json:"functionDeclarations"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

type config struct {
	Calling calling `json:"functionCallingConfig"`
}

type calling struct {
	Mode    string   `json:"mode"`
	Allowed []string `json:"allowedFunctionNames,omitempty"`
}

type generation struct {
	MaxOutput   int64     `json:"maxOutputTokens"`
	Temperature *float64  `json:"temperature,omitempty"`
	Thinking    *thinking `json:"thinkingConfig,omitempty"`
	Resolution  string    `json:"mediaResolution,omitempty"`
	// A response schema requires a MIME type as well.
	Type   string          `json:"responseMimeType,omitempty"`
	Schema json.RawMessage `json:"responseJsonSchema,omitempty"`
}

// thinking has exactly one of its fields set: Google refuses a request with both.
type thinking struct {
	Level  string `json:"thinkingLevel,omitempty"`
	Budget int64  `json:"thinkingBudget,omitempty"`
}

// event is one event of the stream.
type event struct {
	Candidates []struct {
		Index   int64   `json:"index"`
		Content content `json:"content"`
		Finish  string  `json:"finishReason"`
	} `json:"candidates"`
	Feedback struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage   *counts         `json:"usageMetadata"`
	Version string          `json:"modelVersion"`
	Error   json.RawMessage `json:"error"`
}

// counts are Google's: Prompt holds Cached, Thoughts are not in Candidates, and
// zeros are left out.
type counts struct {
	Prompt     int64 `json:"promptTokenCount"`
	Cached     int64 `json:"cachedContentTokenCount"`
	ToolUse    int64 `json:"toolUsePromptTokenCount"`
	Candidates int64 `json:"candidatesTokenCount"`
	Thoughts   int64 `json:"thoughtsTokenCount"`
}
