package client

import "context"

// AttachPartBytes is the most bytes of one AttachRequest.
const AttachPartBytes = 256 << 10

// AttachRequest sends a part of a file that belongs to the prompt of a run, before the run is
// opened.
type AttachRequest struct {
	RunID string `json:"run_id"`
	Data  []byte `json:"data"` // base64 in JSON
}

// Attached answers an AttachRequest: the part is stored.
type Attached struct {
	Ref  string `json:"ref"`
	Size int64  `json:"size"`
}

// Attachment is an image or a document of a prompt. Its bytes are the parts that were sent
// before, in order.
type Attachment struct {
	Name  string   `json:"name"`
	Type  string   `json:"type"` // image/png, application/pdf, text/plain, …
	Size  int64    `json:"size"`
	Parts []string `json:"parts"`
}

// Attach sends a file for the prompt of a run. The run's request then refers to it. Sending
// it again is harmless.
func (c *Client) Attach(ctx context.Context, run, name, mime string, data []byte) (Attachment, error) {
	a := Attachment{Name: name, Type: mime, Size: int64(len(data))}
	for len(data) > 0 {
		n := min(len(data), AttachPartBytes)
		var kept Attached
		if err := c.askNode(ctx, "attach", AttachRequest{RunID: run, Data: data[:n]}, &kept); err != nil {
			return a, err
		}
		a.Parts, data = append(a.Parts, kept.Ref), data[n:]
	}
	return a, nil
}
