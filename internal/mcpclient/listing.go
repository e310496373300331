package mcpclient

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/schema"
	"github.com/troupe-run/troupe/model"
)

// Offer is a tool as its server describes it now.
type Offer struct {
	Raw  string         // its name at the server; "" : our own, that reads resources
	Spec model.ToolSpec // what a model reads about it
	Hash string         // of all that the server declares about it
}

// Listing is what a server offers.
type Listing struct {
	Offers  []Offer  // sorted by name
	Refused []string // tools that are not available, and why
	Server  string   // the name that it reports
	Version string   // of the protocol
}

// findOffer is the offer of a tool by its name here.
func (l Listing) findOffer(name string) (Offer, bool) {
	i := slices.IndexFunc(l.Offers, func(o Offer) bool { return o.Spec.Name == name })
	if i < 0 {
		return Offer{}, false
	}
	return l.Offers[i], true
}

// listTools asks a server for its tools.
func listTools(ctx context.Context, session *sdk.ClientSession, server string) (Listing, error) {
	var l Listing
	var has *sdk.ServerCapabilities
	if r := session.InitializeResult(); r != nil {
		has, l.Version = r.Capabilities, r.ProtocolVersion
		if r.ServerInfo != nil {
			l.Server = clip.Marked(visibleText(r.ServerInfo.Name+" "+r.ServerInfo.Version), ToolNameMax, "…")
		}
	}
	if has != nil && has.Resources != nil {
		l.Offers = append(l.Offers, resourceReader(server))
	}
	if has == nil || has.Tools == nil {
		return l, nil
	}
	params, pages := &sdk.ListToolsParams{}, 0
	for {
		page, err := session.ListTools(ctx, params)
		if err != nil {
			return l, err
		}
		for _, t := range page.Tools {
			l.addTool(server, t)
		}
		if pages++; page.NextCursor == "" || len(l.Offers) > ToolsMax || pages >= PagesMax {
			break
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
	l.sortOffers()
	return l, nil
}

func (l *Listing) refuseTool(name, format string, args ...any) {
	if len(l.Refused) < ToolsMax {
		l.Refused = append(l.Refused, fmt.Sprintf("%.80q: %s", visibleText(name), fmt.Sprintf(format, args...)))
	}
}

// addTool takes one tool of a page in.
func (l *Listing) addTool(server string, t *sdk.Tool) {
	if t == nil || strings.TrimSpace(t.Name) == "" {
		l.refuseTool("", "a tool without a name")
		return
	}
	raw, err := canonicalJSON(t.InputSchema)
	if err != nil {
		l.refuseTool(t.Name, "its schema has no JSON: %v", err)
		return
	}
	if len(raw) > SchemaBytesMax {
		l.refuseTool(t.Name, "its schema has %d bytes, at most %d are taken", len(raw), SchemaBytesMax)
		return
	}
	o := Offer{Raw: t.Name, Spec: model.ToolSpec{Name: nameTool(server, t.Name), Class: toolClass(t.Annotations), Schema: visibleText(raw),
		Description: clip.Marked(visibleText(strings.ToValidUTF8(t.Description, "")), DescriptionBytesMax, "…")}}
	said := []string{t.Name, t.Description, raw}
	if o.Spec.Description == "" {
		o.Spec.Description, said = clip.Marked(visibleText(t.Title), DescriptionBytesMax, "…"), append(said, t.Title)
	}
	compiled, err := schema.Compile(o.Spec.Schema)
	if err == nil && compiled.Type() != "object" {
		err = fmt.Errorf("its type is %q, not object", compiled.Type())
	}
	if err != nil {
		l.refuseTool(t.Name, "its schema cannot be used: %v", err)
		return
	}
	o.Hash = hashParts(append(said, string(o.Spec.Class))...)
	l.Offers = append(l.Offers, o)
}

// toolClass is the class of a tool unless the operator sets another. Of the hints of its
// server, only those that lower trust count.
func toolClass(a *sdk.ToolAnnotations) model.Class {
	if a != nil && a.DestructiveHint != nil && *a.DestructiveHint && !a.ReadOnlyHint {
		return model.Effect.Stricter(model.Irreversible)
	}
	return model.Effect
}

// sortOffers sorts the offers. It refuses tools beyond ToolsMax, and all tools that share a
// name: neither may impersonate the other.
func (l *Listing) sortOffers() {
	slices.SortStableFunc(l.Offers, func(a, b Offer) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
	var kept []Offer
	for i, o := range l.Offers {
		same := func(j int) bool { return j >= 0 && j < len(l.Offers) && l.Offers[j].Spec.Name == o.Spec.Name }
		switch {
		case o.Raw != "" && (same(i-1) || same(i+1)):
			l.refuseTool(o.Raw, "another tool has the name %s too", o.Spec.Name)
		case len(kept) >= ToolsMax:
			l.refuseTool(o.Raw, "a server may have %d tools", ToolsMax)
		default:
			kept = append(kept, o)
		}
	}
	l.Offers = kept
}

// canonicalJSON returns the JSON of a schema: equal schemas have equal JSON.
func canonicalJSON(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}

func hashParts(parts ...string) string {
	raw, err := json.Marshal(parts)
	if err != nil {
		panic(fmt.Sprintf("mcp: strings have no JSON: %v", err))
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// resourceReader is a tool that troupe adds to those of a server: it reads resources.
func resourceReader(server string) Offer {
	spec := model.ToolSpec{Name: nameTool(server, ReadResource), Class: model.Effect,
		Description: "Read a resource of the MCP server " + server + " by its URI. Without a URI: list what there is.",
		Schema:      `{"type":"object","properties":{"uri":{"type":"string"}},"additionalProperties":false}`}
	return Offer{Spec: spec, Hash: hashParts(spec.Name, spec.Description, spec.Schema)}
}
