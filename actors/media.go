package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// attachMedia adds the bytes of their media to the messages of a request, because no log holds
// them. It fails if one of them is not available, and the request is not sent.
func attachMedia(ctx context.Context, blobs mailbox.Blobs, run string, messages []model.Message) ([]model.Message, error) {
	if !slices.ContainsFunc(messages, func(m model.Message) bool { return len(m.Media) > 0 && !m.Tombstone }) {
		return messages, nil
	}
	messages = slices.Clone(messages)
	for i, m := range messages {
		if m.Tombstone {
			continue
		}
		m.Media = slices.Clone(m.Media)
		for j, d := range m.Media {
			data, err := fetchMedia(ctx, blobs, run, d)
			if err != nil {
				return nil, err
			}
			m.Media[j].Data = data
		}
		messages[i] = m
	}
	return messages, nil
}

// fetchMedia reads the bytes of a medium. If the store does not answer, a later attempt may
// succeed; if the store does not have the medium, it will not have it later either.
func fetchMedia(ctx context.Context, blobs mailbox.Blobs, run string, d model.Media) ([]byte, error) {
	fail := func(class model.ErrorClass, why string) ([]byte, error) {
		return nil, &model.Error{Class: class, Unbilled: true, Message: fmt.Sprintf("not sent: %s %q: %s", d.Type, d.Name, why)}
	}
	if blobs == nil {
		return fail(model.BadRequest, "this node keeps no blobs")
	}
	data, size, err := blobs.Get(ctx, run, d.Ref, 0, model.MediaBytesMax)
	switch {
	case errors.Is(err, mailbox.ErrNoBlob), errors.Is(err, mailbox.ErrBlobRef):
		return fail(model.BadRequest, "its bytes are not in the store")
	case err != nil:
		return fail(model.Network, "the store does not answer: "+err.Error())
	case size != d.Size || int64(len(data)) != size || mailbox.BlobRef(data) != d.Ref:
		return fail(model.BadRequest, "its bytes in the store are not those that were given")
	}
	return data, nil
}
