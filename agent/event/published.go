package event

import "time"

// Published is the document of one event on `troupe.evt.<run>.<agent>.<kind>`, with its place in
// the log. Each republication has the same id.
type Published struct {
	V      int    `json:"v"`
	ID     string `json:"id"` // <address>#<n>.<i>
	TS     string `json:"ts"`
	Run    string `json:"run"`
	Agent  string `json:"agent"`
	Parent string `json:"parent,omitempty"`
	Node   string `json:"node,omitempty"`
	Seq    uint64 `json:"seq"` // the entry's index in its log; 0 for a delta
	Kind   string `json:"kind"`
	Turn   int    `json:"turn,omitempty"`
	Data   any    `json:"data,omitempty"`
	// Content is WithoutTexts if the texts of people, models and tools were left out for observers; clients receive the
	// same event with them on another subject.
	Content string `json:"content,omitempty"`
}

// WithoutTexts is the content of an event that was published without the texts of people, models and tools.
const WithoutTexts = "none"

// FormatStamp formats Unix milliseconds as events show them.
func FormatStamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
