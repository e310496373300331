package anthropic

import "github.com/troupe-run/troupe/internal/modelhttp"

// decode decodes an event.
func (e *streamEvent) decode(data []byte) error {
	if e.decodePiece(data) {
		return nil
	}
	*e = streamEvent{}
	return modelhttp.DecodeEvent(data, e)
}

// decodePiece decodes an event that is a piece of a content block, of which there is one for each token, and reports whether
// it is one: it has no message, no block and no usage.
func (e *streamEvent) decodePiece(data []byte) bool {
	was := *e
	*e = streamEvent{}
	c := modelhttp.NewCursor(data)
	for key := range c.Fields {
		switch string(key) {
		case "type":
			c.TextLike(&e.Type, was.Type)
		case "index":
			c.Count(&e.Index)
		case "delta":
			e.Delta.read(&c, was.Delta.Type)
		case "message", "content_block", "usage":
			if !c.SkipNull() {
				c.Fail()
			}
		default:
			c.Skip(key)
		}
	}
	return c.IsWhole()
}

// read reads a delta whose type may be that of the one before.
func (d *blockDelta) read(c *modelhttp.Cursor, kind modelhttp.Text) {
	for key := range c.Fields {
		switch string(key) {
		case "type":
			c.TextLike(&d.Type, kind)
		case "text":
			c.Text(&d.Text)
		case "thinking":
			c.Text(&d.Thinking)
		case "signature":
			c.Text(&d.Signature)
		case "partial_json":
			c.Text(&d.PartialJSON)
		case "stop_reason":
			c.Text(&d.StopReason)
		default:
			c.Skip(key)
		}
	}
}
