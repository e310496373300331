// Package history has the transcripts of agents outside of a log, their validation and repair. Check is for a
// transcript, whose small faults the loop repairs; package internal/message checks messages that are sent as they are.
package history

import (
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// Form is the form of an exported transcript.
const Form = 1

// Transcript is the history of an agent outside of its log, with everything that its own
// loop knows of it: the format of an export, and the beginning of a fork or an import.
type Transcript struct {
	Form  int     `json:"form"`
	Run   string  `json:"run,omitempty"`
	Agent spec.ID `json:"agent,omitempty"`
	Name  string  `json:"name,omitempty"`
	Goal  string  `json:"goal,omitempty"`
	// System and Model are those with which the history was made. An agent that
	// recalls it has its own.
	System   string          `json:"system,omitempty"`
	Model    string          `json:"model,omitempty"`
	Turn     int             `json:"turn"`
	Usage    model.Usage     `json:"usage"`
	Messages []model.Message `json:"messages"`
	Fold     *Summary        `json:"fold,omitempty"`
	// Journal is the run journal, for people: an agent that recalls the history
	// rebuilds its journal from the calls that edited it.
	Journal string `json:"journal,omitempty"`
	// Tainted is the text from outside that the agent had read; nil: none.
	Tainted *spec.Taint `json:"tainted,omitempty"`
}

// Summary replaces the first Upto messages of a transcript in prompts.
type Summary struct {
	Upto int    `msgpack:"u" json:"upto"`
	Text string `msgpack:"t" json:"text"`
	Deep bool   `msgpack:"d,omitempty" json:"deep,omitempty"`
}

// Bounds of a recalled history.
const (
	MessagesMax = 4096
	BytesMax    = 8 << 20
	// PartsMax is how many parts a history may take: an agent accepts a
	// bounded number of commands in its life.
	PartsMax = 512
)
