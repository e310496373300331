package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/troupe-run/troupe/client"
)

// handleJSON decodes a request strictly: an unknown field is a mistake of the
// client, and the answer names it. It refuses owners what belongs to others.
func handleJSON[R, A any](owners *ownerCheck, serve func(context.Context, R) (A, error)) verbHandler {
	return func(ctx context.Context, data []byte) (any, error) {
		var r R
		if err := decodeStrict(data, &r); err != nil {
			return nil, &client.Error{Code: client.CodeBad, Text: err.Error(), Hint: "send a JSON object with the fields of docs/control.md"}
		}
		if err := owners.checkOwner(ctx, &r); err != nil {
			return nil, err
		}
		reply, err := serve(ctx, r)
		if err != nil {
			return nil, err
		}
		return reply, nil
	}
}

func decodeStrict(data []byte, into any) error {
	if len(data) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if _, more := d.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("unexpected data follows the object")
	}
	if err != nil {
		return fmt.Errorf("the request does not decode: %w", err)
	}
	return nil
}
