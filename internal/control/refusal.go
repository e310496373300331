package control

import (
	"encoding/json"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/troupe-run/troupe/client"
)

// newRefusal returns an error as clients see it: with a code, bounded and masked.
func (c *Control) newRefusal(verb string, err error) *client.Error {
	known := *toClientError(c.explainError(err))
	if known.Code == client.CodeLimit {
		c.cfg.Logger.Debug("a request was refused", "verb", verb, "why", known.Text)
	}
	known.Text, known.Hint = string(c.cfg.Redact([]byte(known.Text))), string(c.cfg.Redact([]byte(known.Hint)))
	known.Text = truncateText(known.Text, errorBytesMax)
	return &known
}

func (c *Control) sendRefusal(verb string, r micro.Request, err error) {
	known := c.newRefusal(verb, err)
	header := nats.Header{micro.ErrorCodeHeader: {known.Code}, micro.ErrorHeader: {known.Text}}
	if known.Hint != "" {
		header[client.HintHeader] = []string{known.Hint}
	}
	if known.Reason != "" {
		header[client.ReasonHeader] = []string{known.Reason}
	}
	if known.Retry > 0 {
		header[client.RetryHeader] = []string{strconv.FormatInt(known.Retry.Milliseconds(), 10)}
	}
	// The headers are for programs; `nats req --raw` shows the body only.
	body, err := json.Marshal(map[string]string{"error": known.Text, "code": known.Code, "hint": known.Hint})
	if err == nil {
		err = c.sendReply(r, header, body)
	}
	if err != nil {
		c.cfg.Logger.Warn("a refusal was not delivered", "verb", verb, "error", err)
	}
}
