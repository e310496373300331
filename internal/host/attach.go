package host

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	_ "image/gif"  // for the size of an image
	_ "image/jpeg" // for the size of an image
	_ "image/png"  // for the size of an image
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/pick"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	attachHint = "see docs/media.md"
	// AttachPartsMax is in how many parts an attachment may be sent.
	AttachPartsMax = 64
	// AttachedBytesMax is the most of all attachments: as base64 they and the
	// transcript fit the 32 MB that Anthropic takes in one request.
	AttachedBytesMax = 20 << 20
)

// attachments makes media of what comes with the prompt: whole blobs of the run, of
// which the log has the references, and the most that each can cost with any
// model that the root may call.
func (h *Host) attachments(ctx context.Context, o *supervisor.Opened, r client.RunRequest, a *client.RunAccepted) error {
	if len(r.Attach) == 0 {
		return nil
	}
	if len(r.Attach) > model.MediaMax {
		return bad(attachHint, "%d attachments, at most %d can come with a prompt", len(r.Attach), model.MediaMax)
	}
	if h.blobs == nil {
		return bad("start the run", "attachments are not shown before a run is started")
	}
	routes, err := h.seers(ctx, o)
	if err != nil {
		return err
	}
	var total int64
	for _, f := range r.Attach {
		if total += max(0, f.Size); total > AttachedBytesMax {
			return bad(attachHint, "the attachments have more than %d bytes together", AttachedBytesMax)
		}
		data, err := h.joined(ctx, r.RunID, f)
		if err != nil {
			return err
		}
		if h.exits.mask.Holds(data) { // its parts were looked at one by one
			return bad("take it out", "%q holds a secret of this node", f.Name)
		}
		m := model.Media{Kind: model.KindOf(f.Type), Type: f.Type, Name: f.Name, Size: f.Size}
		for _, c := range routes {
			if err := admit(&m, c, data, r.AllowUnbounded, a); err != nil {
				return err
			}
		}
		if m.Ref, err = h.blobs.Put(ctx, r.RunID, data); err != nil {
			return fmt.Errorf("host: attachment %q: %w", f.Name, err)
		}
		o.Media = append(o.Media, m)
	}
	return nil
}

// seers are the models that the root may call.
func (h *Host) seers(ctx context.Context, o *supervisor.Opened) ([]pick.Choice, error) {
	models, m := []agent.Model{o.Model}, o.Manners
	for _, d := range o.Definitions {
		if d.Name == o.Root {
			if d.Model != nil {
				models[0] = *d.Model
			}
			m = d.Manners.Over(o.Manners)
		}
	}
	var list []pick.Choice
	for _, route := range append(models, m.Fallbacks...) {
		c, err := h.models.choose(ctx, route.Name)
		if err != nil {
			return nil, bad("name models as PROVIDER/MODEL", "%v", err)
		}
		list = append(list, c)
	}
	return list, nil
}

// admit refuses what a model cannot be sent, or what might cost more there than
// anybody has published, unless that is allowed by name.
func admit(m *model.Media, c pick.Choice, data []byte, allowed []string, a *client.RunAccepted) error {
	most, bound, ok := c.Takes(*m)
	switch {
	case !ok:
		return bad("choose a model that does with -m, or leave it out", "%s cannot be sent %s, which %q is", c.Name(), m.Type, m.Name)
	case bound == pick.None && !slices.Contains(allowed, c.Name()):
		return bad("allow it with --allow-unbounded "+c.Name()+", or attach its text", "nobody has published what %q (%s) costs at most with %s, so no limit can be kept",
			m.Name, m.Type, c.Name())
	case bound == pick.None:
		a.Notes = append(a.Notes, fmt.Sprintf("%s: %d tokens are held for it with %s, and it may cost more", m.Name, most, c.Name()))
	}
	m.Most = max(m.Most, most)
	if size, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		m.Likely = max(m.Likely, c.Likely(size.Width, size.Height))
	}
	return nil
}

// joined are the bytes of an attachment, if they are what it says.
func (h *Host) joined(ctx context.Context, run string, f client.Attachment) ([]byte, error) {
	if f.Size <= 0 || f.Size > model.MediaBytesMax || len(f.Parts) > AttachPartsMax {
		return nil, bad(attachHint, "%q has %d bytes, 1 to %d are taken", f.Name, f.Size, model.MediaBytesMax)
	}
	if f.Name != strings.ToValidUTF8(f.Name, "") || len(f.Name) > model.MediaNameMax || strings.ContainsFunc(f.Name, func(r rune) bool { return r < ' ' }) {
		return nil, bad("give it a shorter name, of one line", "the name %.80q of an attachment", f.Name)
	}
	var data []byte
	for _, ref := range f.Parts {
		part, size, err := h.blobs.Get(ctx, run, ref, 0, f.Size-int64(len(data)))
		switch {
		case err != nil:
			return nil, bad("send all parts with `attach` before `run`", "%q: part %.80q: %v", f.Name, ref, err)
		case size != int64(len(part)) || size == 0:
			return nil, bad("send its parts in order", "%q has more bytes than the %d that it says", f.Name, f.Size)
		}
		data = append(data, part...)
	}
	if int64(len(data)) != f.Size {
		return nil, bad("send all parts with `attach` before `run`", "%q has %d bytes, it says %d", f.Name, len(data), f.Size)
	}
	return data, is(f, data)
}

// is checks that the bytes are of the type that is said.
func is(f client.Attachment, data []byte) error {
	found, _, _ := strings.Cut(http.DetectContentType(data), ";")
	if strings.HasPrefix(f.Type, "text/") {
		if found = f.Type; !utf8.Valid(data) || bytes.ContainsRune(data, 0) { // it would grow when it is sent
			found = "no text in UTF-8"
		}
	}
	if found != f.Type || model.KindOf(f.Type) == "" {
		return bad("attach PNG, JPEG, GIF, WebP, PDF or text in UTF-8", "%q is %s, not %s", f.Name, found, cmp.Or(f.Type, "of any type"))
	}
	return nil
}
