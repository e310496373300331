package jetstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/mailbox"
)

// The codes of the JetStream API that explain why an entry was not stored.
const (
	codeNoAccount   = 10002 // the account's storage is used up
	codeNoResources = 10023
	codeNoMemory    = 10028
	codeNoStorage   = 10047
	codeTooLarge    = 10054
	codeChanged     = 10071 // the newest entry of the log is another one
	codeStoreFailed = 10077 // "maximum bytes exceeded" and its like
	codeBusy        = 10167 // too many appends wait; a temporary condition

	// All codes of the API lie between these.
	codeFirst, codeLast     = 10000, 19999
	statusFirst, statusLast = 400, 599
)

const (
	headerStatus       = "Status"
	statusNoResponders = "503"
)

// errLater says that the entry was not stored, or that its fate is unknown, and that sending
// it again is worthwhile.
var errLater = errors.New("jetstream: no answer yet")

// errBusy says that the server has too many appends in flight, perhaps copies of this one.
var errBusy = fmt.Errorf("%w: the server is busy", errLater)

// errForeign says that a message in the inbox of acknowledgements is not from the stream. The
// appender ignores and counts it: it reveals nothing about the append.
var errForeign = errors.New("jetstream: not an acknowledgement of this append")

// ackParser identifies what acknowledges an append: a stream, in the domain of its server.
type ackParser struct {
	stream, domain string
	// head is the beginning of each acknowledgement.
	head []byte
}

func newAcker(stream, domain string) ackParser {
	head := fmt.Appendf(nil, `{"stream":%q,"seq":`, stream)
	if domain != "" {
		head = fmt.Appendf(nil, `{"stream":%q,"domain":%q,"seq":`, stream, domain)
	}
	return ackParser{stream, domain, head}
}

// parseAck reads the stream's answer to an append: {"stream":"…","seq":12}, or
// {"error":{…},"stream":"…","seq":0}. It parses the first form by hand, because there is one
// for every entry. Any other message is errForeign.
func (a *ackParser) parseAck(m *nats.Msg) (uint64, error) {
	if len(m.Data) == 0 {
		if m.Header.Get(headerStatus) == statusNoResponders {
			return 0, fmt.Errorf("%w: no stream stores it now", errLater)
		}
		return 0, errForeign
	}
	if rest, ok := bytes.CutPrefix(m.Data, a.head); ok {
		if digits, ok := bytes.CutSuffix(rest, []byte("}")); ok {
			if seq, err := strconv.ParseUint(string(digits), 10, 64); err == nil && seq > 0 && digits[0] != '0' && digits[0] != '+' {
				return seq, nil
			}
		}
	}
	return a.decodeAck(m.Data)
}

// decodeAck parses an answer that does not have the form of head. An unknown field, including a
// duplicate flag (no append has an id for the broker), makes it errForeign.
func (a *ackParser) decodeAck(data []byte) (uint64, error) {
	var ack struct {
		Stream string      `json:"stream"`
		Domain string      `json:"domain"`
		Seq    uint64      `json:"seq"`
		Error  *storeError `json:"error"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&ack); err != nil || d.InputOffset() != int64(len(data)) {
		return 0, errForeign
	}
	refused := ack.Error != nil
	switch {
	case ack.Stream != a.stream, refused != (ack.Seq == 0), refused && !ack.Error.isKnown(), !refused && ack.Domain != a.domain:
		return 0, errForeign
	case refused:
		return 0, ack.Error.asError()
	}
	return ack.Seq, nil
}

// storeError says why the stream did not store an entry.
type storeError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (r *storeError) isKnown() bool {
	return r.Code >= statusFirst && r.Code <= statusLast && r.ErrCode >= codeFirst && r.ErrCode <= codeLast
}

func (r *storeError) asError() error {
	text := fmt.Sprintf("%s (%d)", r.Description, r.ErrCode)
	switch r.ErrCode {
	case codeNoAccount, codeNoResources, codeNoMemory, codeNoStorage, codeStoreFailed:
		return fmt.Errorf("%w: %s", mailbox.ErrFull, text)
	case codeTooLarge:
		return fmt.Errorf("%w: %s", mailbox.ErrTooLarge, text)
	case codeBusy:
		return fmt.Errorf("%w: %s", errBusy, text)
	case codeChanged:
		return fmt.Errorf("%w: %s", mailbox.ErrLogChanged, text)
	}
	if r.Code >= 500 {
		return fmt.Errorf("%w: %s", errLater, text)
	}
	return fmt.Errorf("%w: %s", ErrRefused, text)
}
