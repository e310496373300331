package openai

// API is the one that the client speaks.
func (c *Client) API() API { return c.cfg.API }
