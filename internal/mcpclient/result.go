package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/tool"
)

// renderResult renders an answer for the model. It names the parts that are not text.
func renderResult(res *sdk.CallToolResult) tool.Result {
	var parts []string
	for _, c := range res.Content {
		parts = append(parts, renderPart(c))
	}
	text := strings.Join(parts, "\n")
	if text == "" && res.StructuredContent != nil {
		if raw, err := canonicalJSON(res.StructuredContent); err == nil {
			text = raw
		}
	}
	if text == "" && res.IsError {
		text = "the tool failed and does not say why"
	}
	return tool.Result{Text: text, Error: res.IsError}
}

func renderPart(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return mediaLine("image", c.MIMEType, len(c.Data))
	case *sdk.AudioContent:
		return mediaLine("audio", c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		return fmt.Sprintf("[resource %s: %s]", clip.Marked(visibleText(c.URI), progressBytes, "…"), clip.Marked(visibleText(c.Name+" "+c.Description), progressBytes, "…"))
	case *sdk.EmbeddedResource:
		return renderResource(c.Resource)
	}
	return fmt.Sprintf("[a part of the kind %T is not shown]", c)
}

func mediaLine(what, kind string, bytes int) string {
	return fmt.Sprintf("[%s, %s, %d bytes: not shown]", what, clip.Marked(visibleText(kind), ToolNameMax, "…"), bytes)
}

func renderResource(r *sdk.ResourceContents) string {
	if r == nil {
		return "[an empty resource]"
	}
	if len(r.Blob) > 0 {
		return mediaLine("resource "+clip.Marked(visibleText(r.URI), progressBytes, "…"), r.MIMEType, len(r.Blob))
	}
	return r.Text
}

// readResource serves our own tool: one resource, or the list of all.
func (l *liveSession) readResource(ctx context.Context, c tool.Call) (tool.Result, error) {
	var in struct{ URI string }
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return tool.Result{}, fmt.Errorf("%w: %w", tool.ErrArgs, err)
	}
	if in.URI == "" {
		return l.listResources(ctx)
	}
	res, err := l.session.ReadResource(ctx, &sdk.ReadResourceParams{URI: in.URI})
	if err != nil {
		return tool.Result{}, err
	}
	var parts []string
	for _, r := range res.Contents {
		parts = append(parts, renderResource(r))
	}
	return tool.Result{Text: strings.Join(parts, "\n")}, nil
}

func (l *liveSession) listResources(ctx context.Context) (tool.Result, error) {
	var lines []string
	line := func(uri, name, description, kind string) {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s  %s %s", clip.Marked(visibleText(uri), progressBytes, "…"), clip.Marked(visibleText(name+" "+description), progressBytes, "…"), clip.Marked(visibleText(kind), ToolNameMax, "…"))))
	}
	for r, err := range l.session.Resources(ctx, nil) {
		if err != nil {
			return tool.Result{}, err
		}
		if line(r.URI, r.Name, r.Description, r.MIMEType); len(lines) >= ResourcesMax {
			lines = append(lines, "[and more]")
			break
		}
	}
	for r, err := range l.session.ResourceTemplates(ctx, nil) {
		if err != nil || len(lines) >= 2*ResourcesMax { // a server may have no resources, and report that as an error
			break
		}
		line(r.URITemplate, r.Name, r.Description, r.MIMEType)
	}
	if len(lines) == 0 {
		lines = []string{"[there are no resources]"}
	}
	return tool.Result{Text: strings.Join(lines, "\n")}, nil
}
