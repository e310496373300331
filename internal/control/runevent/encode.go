package runevent

import (
	"encoding/json"
	"fmt"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/control/bounds"
)

// Encode returns the document of an event. One that is larger than a message may be has no texts.
func Encode(e event.Published) ([]byte, error) {
	raw, err := encode(e)
	if err == nil && len(raw) > eventBytesMax {
		e.Data = event.WithoutContent(e.Data)
		return encode(e)
	}
	return raw, err
}

// EncodeWithoutTexts returns the document of an event for observers that are to read no text of people, models and
// tools.
func EncodeWithoutTexts(e event.Published) ([]byte, error) {
	e.Content, e.Data = event.WithoutTexts, event.WithoutContent(e.Data)
	return encode(e)
}

func encode(e event.Published) ([]byte, error) {
	if d, ok := e.Data.(event.Result); ok {
		e.Data = bounds.FitAgents(d)
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("control: event %s: %w", e.ID, err)
	}
	return raw, nil
}

const eventBytesMax = 400 << 10
