package agentprotocol

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/troupe-run/troupe/internal/clip"
)

// foreignAnswer is the answer of an agent of another program, as far as it has arrived.
type foreignAnswer struct {
	text     strings.Builder
	messages int       // of any kind
	ended    bool      // the agent has sent the end of the stream
	ackedAt  time.Time // when the first acknowledgement was read
	progress func(words string)
	// replySubject is where the answer to its open question goes.
	replySubject string
}

var (
	errForeign = errors.New("the agent reports an error")
)

// twinAckWithin is how soon a second acknowledgement must be that of a second agent, as each acknowledges before it
// works. The SDKs of the protocol send later ones to show that the stream is alive, by default every 20 or 30 s.
const twinAckWithin = 500 * time.Millisecond

// wordsShown bounds the words of an agent in an error: a question, or its description of an error.
const wordsShown = 4 << 10

// add adds the next message of a stream. An error ends the call.
func (a *foreignAnswer) add(m *nats.Msg) error {
	a.messages++
	if code := m.Header.Get("Nats-Service-Error-Code"); code != "" {
		return foreignError(code, m.Header.Get("Nats-Service-Error"), m.Data)
	}
	if len(m.Data) == 0 {
		a.ended = len(m.Header) == 0
		return nil
	}
	var chunk struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(m.Data, &chunk); err != nil || chunk.Type == "" {
		return errMalformed
	}
	switch chunk.Type {
	case chunkResponse:
		return a.addResponse(chunk.Data)
	case chunkQuery:
		var q struct {
			ReplySubject string `json:"reply_subject"`
			Prompt       string `json:"prompt"`
		}
		if json.Unmarshal(chunk.Data, &q) != nil {
			return errMalformed
		}
		a.replySubject = q.ReplySubject
		return &Question{ID: strings.ToLower(nuid.Next()), Text: clip.Text(q.Prompt, wordsShown)}
	}
	if chunk.Type == chunkStatus {
		return a.addStatus(chunk.Data)
	}
	return nil // a kind of chunk that a later version has
}

// addStatus reads a status. Agents that are not in one queue group all take a task.
func (a *foreignAnswer) addStatus(data json.RawMessage) error {
	word, ok := readString(data)
	if ok && word == statusAck {
		switch {
		case a.ackedAt.IsZero():
			a.ackedAt = time.Now()
		case time.Since(a.ackedAt) < twinAckWithin:
			return errTwoAgents
		}
	}
	if ok && a.progress != nil {
		a.progress(word)
	}
	return nil
}

// addResponse adds a part of the text: a string, or an object with one.
func (a *foreignAnswer) addResponse(data json.RawMessage) error {
	text, ok := readString(data)
	if !ok {
		var parts map[string]json.RawMessage
		if json.Unmarshal(data, &parts) != nil {
			return errMalformed
		}
		if text, ok = readString(parts["text"]); !ok {
			return errMalformed
		}
	}
	if room := answerBytesMax - a.text.Len(); len(text) > room {
		a.text.WriteString(clip.Prefix(text, room))
		return errTooLong
	}
	a.text.WriteString(text)
	return nil
}

// partial is the text of an answer that did not end, marked as such; "" if there is none.
func (a *foreignAnswer) partial() string {
	if a.text.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("[partial: the first %d bytes of an answer that did not end]\n%s", a.text.Len(), a.text.String())
}

// foreignError describes an error message: its code, and the words of its body or of its header.
func foreignError(code, header string, body []byte) error {
	var details struct {
		Error, Message string
	}
	if json.Unmarshal(body, &details) != nil { // the header has the words then
		details.Error, details.Message = "", ""
	}
	words := cmp.Or(details.Message, header, "no description")
	if details.Error != "" {
		words = details.Error + ": " + words
	}
	return fmt.Errorf("%w: %s %s", errForeign, quoteWords(code), quoteWords(words))
}

// quoteWords quotes words of an agent in an error, so that they do not pass for words of troupe.
func quoteWords(text string) string { return fmt.Sprintf("%q", clip.Text(text, wordsShown)) }
