package openai

import "github.com/troupe-run/troupe/internal/modelhttp"

// decode decodes an event into the chunk, which may hold the one before.
func (k *chatChunk) decode(data []byte) error {
	if k.decodeKnown(data) {
		return nil
	}
	*k = chatChunk{}
	return modelhttp.DecodeEvent(data, k)
}

// decodeKnown decodes an event of the usual form; otherwise it reports false. It makes no value of the fields that are not
// used, and uses the lists and the texts of the chunk before again.
func (k *chatChunk) decodeKnown(data []byte) bool {
	model, choices := k.Model, k.Choices[:0]
	*k = chatChunk{}
	c := modelhttp.NewCursor(data)
	for key := range c.Fields {
		switch string(key) {
		case "model":
			c.TextLike(&k.Model, model)
		case "choices":
			if k.Choices != nil {
				c.Fail() // named twice
			}
			k.Choices = choices
			for range c.Elements {
				k.Choices = append(k.Choices, chunkChoice{})
				k.Choices[len(k.Choices)-1].read(&c)
			}
		case "usage":
			k.Usage.read(&c)
		case "error":
			if !c.SkipNull() {
				c.Fail()
			}
		default:
			c.Skip(key)
		}
	}
	return c.IsWhole()
}

func (k *chunkChoice) read(c *modelhttp.Cursor) {
	for key := range c.Fields {
		switch string(key) {
		case "index":
			c.Count(&k.Index)
		case "delta":
			k.Delta.read(c)
		case "finish_reason":
			c.Text(&k.Finish)
		default:
			c.Skip(key)
		}
	}
}

func (d *chunkDelta) read(c *modelhttp.Cursor) {
	for key := range c.Fields {
		switch string(key) {
		case "content":
			c.Text(&d.Content)
		case "refusal":
			c.Text(&d.Refusal)
		case "reasoning_content":
			c.String(&d.ReasoningContent)
		case "reasoning":
			c.String(&d.Reasoning)
		case "tool_calls":
			if d.ToolCalls != nil {
				c.Fail() // named twice
			}
			for range c.Elements {
				d.ToolCalls = append(d.ToolCalls, callDelta{})
				d.ToolCalls[len(d.ToolCalls)-1].read(c)
			}
		default:
			c.Skip(key)
		}
	}
}

func (d *callDelta) read(c *modelhttp.Cursor) {
	for key := range c.Fields {
		switch string(key) {
		case "index":
			c.Count(&d.Index)
		case "id":
			c.Text(&d.ID)
		case "function":
			for key := range c.Fields {
				switch string(key) {
				case "name":
					c.Text(&d.Function.Name)
				case "arguments":
					c.Text(&d.Function.Arguments)
				default:
					c.Skip(key)
				}
			}
		default:
			c.Skip(key)
		}
	}
}

func (u *chunkUsage) read(c *modelhttp.Cursor) {
	for key := range c.Fields {
		switch string(key) {
		case "prompt_tokens":
			c.Count(&u.Input)
		case "completion_tokens":
			c.Count(&u.Output)
		case "total_tokens":
			c.Count(&u.Total)
		case "prompt_tokens_details":
			for key := range c.Fields {
				switch string(key) {
				case "cached_tokens":
					c.Count(&u.Of.Cached)
				case "cache_write_tokens":
					c.Count(&u.Of.Written)
				default:
					c.Skip(key)
				}
			}
		case "completion_tokens_details":
			for key := range c.Fields {
				if string(key) == "reasoning_tokens" {
					c.Count(&u.To.Reasoning)
				} else {
					c.Skip(key)
				}
			}
		default:
			c.Skip(key)
		}
	}
}
