package client

// FetchInterval is the pause between two fetches for events without texts.
const FetchInterval = fetchInterval

// ReadNoTexts makes a client one that may read no events with texts.
func ReadNoTexts(c *Client) { c.noTexts = true }
