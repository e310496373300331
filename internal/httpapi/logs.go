package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	// logEntriesDefault is how many entries an answer has unless the request says otherwise, logEntriesMax the most.
	logEntriesDefault = 100
	logEntriesMax     = 1000
)

// RecordedLogs lists the logs of a run, or holds a page of the entries of one of them. More: the next page follows the
// last entry.
type RecordedLogs struct {
	Logs    []mailbox.Address `json:"logs"`
	Entries []RecordedEntry   `json:"entries"`
	More    bool              `json:"more"`
}

// RecordedEntry is an entry of a log: who appended what, and, if the request asks for them, its bytes.
type RecordedEntry struct {
	Place uint64 `json:"place"`
	TS    string `json:"ts"`
	// From is the actor that sent or appended the entry; "": it is a command of a client.
	From  mailbox.Address `json:"from"`
	Epoch string          `json:"epoch,omitempty"` // LEASE.ACTIVATION of an own entry
	Bytes int             `json:"bytes"`
	Facts []RecordedFact  `json:"facts"`
	// Problem says why the bytes are no entry that this version can decode.
	Problem string `json:"problem,omitempty"`
	Data    string `json:"data,omitempty"` // base64
}

// RecordedFact is a fact of an entry. Text is its body as JSON, in which bytes are base64.
type RecordedFact struct {
	ID      string `json:"id,omitempty"`
	Cause   uint64 `json:"cause,omitempty"` // place of the entry of the sender that caused it
	Kind    string `json:"kind"`
	Bytes   int    `json:"bytes"`
	Text    string `json:"text,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// getLogs is GET /api/v1/runs/{id}/logs: the logs of the run, or entries of log=ADDRESS as the store holds them.
func getLogs(c *client.Client) runHandler {
	return func(w http.ResponseWriter, r *http.Request, run string) {
		q := queryReader{values: r.URL.Query()}
		request := client.LogsRequest{RunID: run, Log: mailbox.Address(q.text("log")), After: q.place("after")}
		limit, whole := q.number("limit", logEntriesDefault, 1, logEntriesMax), q.flag("data")
		if !q.accept(w, "log", "after", "limit", "data") {
			return
		}
		page, err := client.AskLogs(r.Context(), c, request)
		if err != nil {
			refuseError(w, err)
			return
		}
		doc := RecordedLogs{Logs: append([]mailbox.Address{}, page.Logs...), Entries: []RecordedEntry{}, More: page.More}
		if len(page.Entries) > limit {
			page.Entries, doc.More = page.Entries[:limit], true
		}
		for _, e := range page.Entries {
			doc.Entries = append(doc.Entries, describeEntry(e, whole))
		}
		writeJSON(w, http.StatusOK, doc)
	}
}

// describeEntry decodes an entry; whole: with its bytes and the bodies of its facts.
func describeEntry(e client.LogEntry, whole bool) RecordedEntry {
	stamp := time.UnixMilli(e.At).UTC().Format("2006-01-02T15:04:05.000Z07:00")
	d := RecordedEntry{Place: e.Place, TS: stamp, Bytes: len(e.Data), Facts: []RecordedFact{}}
	if whole {
		d.Data = base64.StdEncoding.EncodeToString(e.Data)
	}
	entry, err := mailbox.Decode(e.Data)
	if err != nil {
		d.Problem = err.Error()
		return d
	}
	d.From = entry.From
	if entry.Epoch != (mailbox.Epoch{}) {
		d.Epoch = fmt.Sprintf("%d.%d", entry.Epoch.Lease, entry.Epoch.Start)
	}
	for _, item := range entry.Items {
		f := RecordedFact{ID: item.ID, Cause: item.N, Kind: item.Kind, Bytes: len(item.Body)}
		if whole {
			if f.Text, err = bodyText(item.Body); err != nil {
				f.Problem = err.Error()
			}
		}
		d.Facts = append(d.Facts, f)
	}
	return d
}

// bodyText returns the body of a fact as JSON. As a text it keeps integers that JavaScript would round.
func bodyText(body []byte) (string, error) {
	var value any
	if err := mailbox.Unmarshal(body, &value); err != nil {
		return "", err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSuffix(text.String(), "\n"), nil
}
