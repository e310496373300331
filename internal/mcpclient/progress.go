package mcpclient

import (
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/tool"
)

// Bounds of the progress that a call reports.
const (
	progressPause = 200 * time.Millisecond // between two reports that are passed on
	progressBytes = 200                    // of a message
)

// callProgress is the last progress that a server reported about a call.
type callProgress struct {
	tell func(tool.Progress)

	mu   sync.Mutex
	last *tool.Progress
	told time.Time
	over bool // the end was reported
}

func (p *callProgress) noteProgress(n *sdk.ProgressNotificationParams) {
	now := tool.Progress{Done: n.Progress, Total: n.Total, Message: clip.Marked(visibleText(n.Message), progressBytes, "…")}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = &now
	end := now.Total > 0 && now.Done >= now.Total && !p.over // the end is reported at once, the first time
	if p.tell != nil && (end || time.Since(p.told) > progressPause) {
		p.told, p.over = time.Now(), p.over || end
		p.tell(now)
	}
}

// lastProgress returns the last progress, for the result of a call that did not finish.
func (p *callProgress) lastProgress() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		return ""
	}
	text := fmt.Sprintf("its last word was: %g", p.last.Done)
	if p.last.Total > 0 {
		text += fmt.Sprintf(" of %g", p.last.Total)
	}
	if p.last.Message != "" {
		text += ", " + p.last.Message
	}
	return text
}
