package openai

import "github.com/troupe-run/troupe/internal/modelhttp"

// decode decodes an event.
func (e *responseEvent) decode(data []byte) error {
	if e.decodePiece(data) {
		return nil
	}
	*e = responseEvent{}
	return modelhttp.DecodeEvent(data, e)
}

// decodePiece decodes an event that is a piece of the reply, of which there is one for each token, and reports whether it is
// one: it has no item, no response and no error.
func (e *responseEvent) decodePiece(data []byte) bool {
	kind := e.Type
	*e = responseEvent{}
	c := modelhttp.NewCursor(data)
	for key := range c.Fields {
		switch string(key) {
		case "type":
			c.TextLike(&e.Type, kind)
		case "output_index":
			c.Count(&e.Index)
		case "delta":
			c.Text(&e.Delta)
		case "item", "response", "error", "code", "message":
			if !c.SkipNull() {
				c.Fail()
			}
		default:
			c.Skip(key)
		}
	}
	return c.IsWhole()
}
