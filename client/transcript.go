package client

// TranscriptRequest asks for one agent's messages; the agent "" is the root.
type TranscriptRequest struct {
	RunID string `json:"run_id"`
	Agent string `json:"agent,omitempty"`
}

// Fold is a compaction: in later prompts Text replaces the first Upto messages.
type Fold struct {
	Upto int  `json:"upto"`
	Turn int  `json:"turn"`
	Deep bool `json:"deep,omitempty"`
	// Plain says that no model wrote Text: it is an excerpt of the messages.
	Plain bool   `json:"plain,omitempty"`
	Text  string `json:"text"`
}
