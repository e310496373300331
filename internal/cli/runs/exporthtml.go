package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/internal/ui"
)

// pageAgentsMax is of how many agents a page has the transcripts.
const pageAgentsMax = 200

// exportPage writes a run as one page that opens from disk.
func (cs *Commands) exportPage(run string) error {
	if term.IsTTY(cs.Console.Out) {
		return exit.UsageError(fmt.Sprintf("troupe export %s --html > run.html, and open it in a browser", session.QuoteForShell(run)), "a page is for a file, and the output is a terminal")
	}
	return cs.Sessions.VisitRun(session.ToInspect, run, func(ctx context.Context, s *session.Session, run string) error {
		doc, err := readRunFile(ctx, s, run)
		if err != nil {
			return err
		}
		doc.Mask = cs.Sessions.Secrets().MaskText
		page, err := ui.File(doc)
		if errors.Is(err, ui.ErrTooLarge) {
			return exit.UsageError(s.Command("export "+run+" --logs")+" writes all of it", "%w", err)
		}
		if err != nil {
			return err
		}
		return cs.Console.WriteText(page)
	})
}

// pageTitle names a run in the tabs and bookmarks of a browser: by its title, and its id.
func pageTitle(info client.RunInfo) string {
	if title := term.CleanLine(info.Title); title != "" {
		return title + " · " + info.RunID
	}
	return info.RunID
}

// readRunFile reads what a page shows of a run.
func readRunFile(ctx context.Context, s *session.Session, run string) (doc ui.RunFile, err error) {
	info, err := s.Describe(ctx, run)
	if err != nil {
		return doc, err
	}
	if doc.Budget, err = info.Budget(); err != nil {
		return doc, err
	}
	info.Description = nil
	doc.Title = pageTitle(info)
	doc.Info, doc.Left, doc.Transcripts = info, []string{}, map[string]json.RawMessage{}
	doc.Exported = time.Now().UTC().Format(time.RFC3339)
	var t term.Timeline
	err = s.Events(ctx, run, nil, false, func(e client.Event, raw []byte) error {
		t.AddEvent(e)
		doc.Events = append(doc.Events, json.RawMessage(raw))
		return nil
	})
	if err != nil {
		return doc, err
	}
	if info.State == client.RunInterrupted {
		t.Tree().MarkInterrupted()
	}
	for _, span := range t.Spans(time.Now()) {
		raw, err := json.Marshal(span)
		if err != nil {
			return doc, fmt.Errorf("encode the timeline: %w", err)
		}
		doc.Spans = append(doc.Spans, raw)
	}
	agents := session.AgentResults(info.Result)
	if len(agents) > pageAgentsMax {
		doc.Left = append(doc.Left, fmt.Sprintf("There are the transcripts of %d of %d agents.", pageAgentsMax, len(agents)))
		agents = agents[:pageAgentsMax]
	}
	for _, a := range agents {
		raw, err := s.Transcript(ctx, run, string(a.ID))
		if refused := (*client.Error)(nil); errors.As(err, &refused) && refused.Code == client.CodeLimit && refused.Retry == 0 {
			doc.Left = append(doc.Left, fmt.Sprintf("The transcript of %s is not here: %s.", a.ID, refused.Text))
			continue
		}
		if err != nil {
			return doc, err
		}
		doc.Transcripts[string(a.ID)] = raw
	}
	return doc, nil
}
