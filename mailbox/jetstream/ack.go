package jetstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/mailbox"
)

// The codes of the JetStream API that say why an entry was not stored.
const (
	codeNoAccount   = 10002 // the account's storage is used up
	codeNoResources = 10023
	codeNoMemory    = 10028
	codeNoStorage   = 10047
	codeTooLarge    = 10054
	codeStoreFailed = 10077 // "maximum bytes exceeded" and its like
	codeBusy        = 10167 // too many appends wait: it passes
)

// errLater: not stored, or not known to be, and worth sending again.
var errLater = errors.New("jetstream: no answer yet")

// errBusy: more is under way than the server takes, copies of this one perhaps.
var errBusy = fmt.Errorf("%w: the server is busy", errLater)

// parseAck reads {"stream":"…","seq":12}, or {"error":{…},…}. The first is
// cut out by hand: there is one for every entry.
func parseAck(m *nats.Msg) (uint64, error) {
	if len(m.Data) == 0 {
		return 0, fmt.Errorf("%w: nobody stores it now", errLater) // status 503: no responders
	}
	const key = `"seq":`
	at := bytes.Index(m.Data, []byte(key))
	if at < 0 || bytes.Contains(m.Data, []byte(`"error":`)) {
		return 0, parseRefusal(m.Data)
	}
	var seq uint64
	for _, c := range bytes.TrimLeft(m.Data[at+len(key):], " ") {
		if c < '0' || c > '9' {
			break
		}
		seq = seq*10 + uint64(c-'0')
	}
	if seq == 0 {
		return 0, parseRefusal(m.Data)
	}
	return seq, nil
}

func parseRefusal(data []byte) error {
	var ack struct {
		Error *struct {
			Code        int    `json:"code"`
			ErrCode     int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(data, &ack); err != nil || ack.Error == nil {
		return errLater
	}
	e := ack.Error
	text := fmt.Sprintf("%s (%d)", e.Description, e.ErrCode)
	switch e.ErrCode {
	case codeNoAccount, codeNoResources, codeNoMemory, codeNoStorage, codeStoreFailed:
		return fmt.Errorf("%w: %s", mailbox.ErrFull, text)
	case codeTooLarge:
		return fmt.Errorf("%w: %s", mailbox.ErrTooLarge, text)
	case codeBusy:
		return fmt.Errorf("%w: %s", errBusy, text)
	}
	if e.Code >= 500 {
		return fmt.Errorf("%w: %s", errLater, text)
	}
	return fmt.Errorf("%w: %s", ErrRefused, text)
}
