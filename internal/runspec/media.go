package runspec

import (
	"bytes"
	"context"
	"fmt"
	"image"
	_ "image/gif" // image.DecodeConfig knows the formats that are imported
	_ "image/jpeg"
	_ "image/png"
	"mime"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	attachHint = "see docs/media.md"
	// AttachPartsMax is the maximum number of parts in which an attachment may be sent.
	AttachPartsMax = 64
	// AttachedBytesMax bounds all attachments together: as base64 they and the transcript fit
	// the 32 MB that Anthropic accepts in one request.
	AttachedBytesMax = 20 << 20
)

// attachedMedia are the media of a run.
type attachedMedia struct {
	media    []model.Media
	warnings []string
}

// attachMedia turns the attachments of the prompt into media: whole blobs of the run, to which
// the log has references, and the maximum cost of each with any model that the root may
// call.
func (b *Builder) attachMedia(ctx context.Context, req acceptedRequest, m modelSelection, root supervisor.Definition) (a attachedMedia, err error) {
	if len(req.Attach) == 0 {
		return a, nil
	}
	if len(req.Attach) > model.MediaMax {
		return a, refuse.Bad(attachHint, "%d attachments; a prompt can have at most %d", len(req.Attach), model.MediaMax)
	}
	if b.cfg.Blobs == nil {
		return a, refuse.Bad("start the run", "a preview does not show attachments")
	}
	routes, err := b.rootRoutes(ctx, m, root)
	if err != nil {
		return a, err
	}
	var total int64
	for _, f := range req.Attach {
		if total += max(0, f.Size); total > AttachedBytesMax {
			return a, refuse.Bad(attachHint, "the attachments have more than %d bytes in total", AttachedBytesMax)
		}
		data, err := joinParts(ctx, b.cfg.Blobs, req.RunID, f)
		if err != nil {
			return a, err
		}
		if b.cfg.Mask.MayContainValue(data) { // its parts were checked one by one
			return a, refuse.Bad("take it out", "%q holds a secret of this node", f.Name)
		}
		media := model.Media{Kind: model.KindOf(f.Type), Type: f.Type, Name: f.Name, Size: f.Size}
		for _, c := range routes {
			var warnings []string
			if media, warnings, err = priceMedia(media, c, data, req.AllowUnbounded); err != nil {
				return a, err
			}
			a.warnings = append(a.warnings, warnings...)
		}
		if media.Ref, err = b.cfg.Blobs.Put(ctx, req.RunID, data); err != nil {
			return a, fmt.Errorf("runspec: attachment %q: %w", f.Name, err)
		}
		a.media = append(a.media, media)
	}
	return a, nil
}

// rootRoutes returns the models that the root may call.
func (b *Builder) rootRoutes(ctx context.Context, m modelSelection, root supervisor.Definition) ([]provider.Choice, error) {
	first := m.model
	if root.Model != nil {
		first = *root.Model
	}
	var list []provider.Choice
	for _, route := range append([]spec.Model{first}, root.LoopOptions.Merge(m.options).Fallbacks...) {
		c, err := b.cfg.Routes.ChooseModel(ctx, route.Name)
		if err != nil {
			return nil, refuse.Bad("name models as PROVIDER/MODEL", "%v", err)
		}
		list = append(list, c)
	}
	return list, nil
}

// priceMedia adds the cost of an attachment with a model. It refuses an attachment that
// cannot be sent to the model, or whose maximum cost is not published, unless the user
// allows that by name.
func priceMedia(m model.Media, c provider.Choice, data []byte, allowed []string) (priced model.Media, warnings []string, err error) {
	most, bound, ok := c.AcceptsMedia(m)
	switch {
	case !ok:
		return m, nil, refuse.Bad("leave the attachment out, or choose a model that accepts it with -m",
			"model %s does not accept %s (attachment %q)", c.Name(), m.Type, m.Name)
	case bound == provider.None && !slices.Contains(allowed, c.Name()):
		return m, nil, refuse.Bad("allow it with --allow-unbounded "+c.Name()+", or attach its text", "the maximum cost of %q (%s) with %s is not published, so no limit can cover it",
			m.Name, m.Type, c.Name())
	case bound == provider.None:
		warnings = append(warnings, fmt.Sprintf("%s: %d tokens are held for it with %s, and it may cost more", m.Name, most, c.Name()))
	}
	m.Most = max(m.Most, most)
	if size, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		m.Likely = max(m.Likely, c.EstimateImageTokens(size.Width, size.Height))
	}
	return m, warnings, nil
}

// joinParts returns the bytes of an attachment, after checking them against its declaration.
func joinParts(ctx context.Context, blobs mailbox.Blobs, run string, f client.Attachment) ([]byte, error) {
	if f.Size <= 0 || f.Size > model.MediaBytesMax || len(f.Parts) > AttachPartsMax {
		return nil, refuse.Bad(attachHint, "%q has %d bytes, 1 to %d are accepted", f.Name, f.Size, model.MediaBytesMax)
	}
	if f.Name != strings.ToValidUTF8(f.Name, "") || len(f.Name) > model.MediaNameMax || strings.ContainsFunc(f.Name, func(r rune) bool { return r < ' ' }) {
		return nil, refuse.Bad("give it a shorter name, of one line",
			"attachment name %.80q is too long, or is not one line of UTF-8", f.Name)
	}
	var data []byte
	for _, ref := range f.Parts {
		part, size, err := blobs.Get(ctx, run, ref, 0, f.Size-int64(len(data)))
		switch {
		case err != nil:
			return nil, refuse.Bad("send all parts with `attach` before `run`", "%q: part %.80q: %v", f.Name, ref, err)
		case size != int64(len(part)) || size == 0:
			return nil, refuse.Bad("send its parts in order", "%q has more bytes than the declared %d", f.Name, f.Size)
		}
		data = append(data, part...)
	}
	if int64(len(data)) != f.Size {
		return nil, refuse.Bad("send all parts with `attach` before `run`", "%q has %d bytes, and %d were declared", f.Name, len(data), f.Size)
	}
	return data, checkType(f, data)
}

// checkType checks that the bytes are of the declared type.
func checkType(f client.Attachment, data []byte) error {
	found, _, _ := strings.Cut(http.DetectContentType(data), ";")
	if strings.HasPrefix(f.Type, "text/") {
		if found = f.Type; !utf8.Valid(data) || bytes.ContainsRune(data, 0) { // such a text would grow when it is sent
			found = "no text in UTF-8"
		}
	}
	const hint = "attach PNG, JPEG, GIF, WebP, PDF or text in UTF-8"
	switch {
	case f.Type != "" && found != f.Type:
		return refuse.Bad(hint, "attachment %q is %s, not %s as declared", f.Name, found, f.Type)
	case f.Type == "" || model.KindOf(f.Type) == "":
		return refuse.Bad(hint, "attachment %q is %s, which is not accepted", f.Name, found)
	}
	return nil
}

// MediaType returns the media type of a file by its bytes; for text, by its name.
func MediaType(name string, data []byte) string {
	found, _, _ := mime.ParseMediaType(http.DetectContentType(data))
	if strings.HasPrefix(found, "text/") || found == "application/octet-stream" && utf8.Valid(data) {
		found = "text/plain"
		if named, _, _ := mime.ParseMediaType(mime.TypeByExtension(filepath.Ext(name))); strings.HasPrefix(named, "text/") {
			found = named
		}
	}
	return found
}
