package event

// Progress is the data of tool.progress.
type Progress struct {
	Call    string  `json:"call"`
	Tool    string  `json:"tool"`
	Done    float64 `json:"done"`
	Total   float64 `json:"total,omitempty"` // 0: not known
	Message string  `json:"message,omitempty"`
}

// Delta is the data of message.delta and message.reasoning.
type Delta struct {
	Text string `json:"text"`
}
