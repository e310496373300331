package conformance

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Media is the rule about parts that are not text: each is whole, and of a supported type.
const Media Rule = "media"

// shown judges an image or a document that Anthropic is sent.
func (m *message) shown(where string, b object, types ...string) error {
	if err := b.fields(where, "type", "source!", "title", "context", "citations", "cache_control"); err != nil {
		return err
	}
	source, err := read[object](b, where, "source")
	if err != nil {
		return err
	}
	if err := source.fields(where+".source", "type!", "media_type!", "data!"); err != nil {
		return err
	}
	kind, err := read[string](source, where, "media_type")
	if err != nil {
		return err
	}
	data, err := read[string](source, where, "data")
	if err != nil {
		return err
	}
	if string(source["type"]) != `"base64"` || !slices.Contains(types, kind) {
		return refuse(Media, where, "a source %s of %q", source["type"], kind)
	}
	return whole(where, data)
}

// whole checks the bytes of a medium.
func whole(where, data string) error {
	if raw, err := base64.StdEncoding.DecodeString(data); err != nil || len(raw) == 0 {
		return refuse(Media, where, "its data are not base64 of something: %v", err)
	}
	return nil
}

// shown judges a message of the user to OpenAI that has parts.
func (c *completion) shown(where string, m object) error {
	if err := c.answer(where, nil); err != nil {
		return err
	}
	if err := m.fields(where, "role", "content!", "name"); err != nil {
		return err
	}
	parts, err := read[[]object](m, where, "content")
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return refuse(Empty, where, "it has no parts")
	}
	for i, p := range parts {
		if err := part(fmt.Sprintf("%s.content[%d]", where, i), p); err != nil {
			return err
		}
	}
	return nil
}

// part judges one part of a message to OpenAI.
func part(where string, p object) error {
	kind, err := read[string](p, where, "type")
	if err != nil {
		return err
	}
	if err := p.fields(where, "type", kind+"!"); err != nil {
		return err
	}
	var is struct {
		URL      string `json:"url"`
		Detail   string `json:"detail"`
		Filename string `json:"filename"`
		Data     string `json:"file_data"`
	}
	switch kind {
	case "text":
		text, err := read[string](p, where, "text")
		if err == nil && blank(text) {
			err = refuse(Empty, where, "a text that says nothing")
		}
		return err
	case "image_url":
		if json.Unmarshal(p[kind], &is) != nil || !slices.Contains([]string{"", "low", "high", "auto"}, is.Detail) {
			return refuse(Shape, where, "%.80s", p[kind])
		}
		return dataURL(where, is.URL, "image/jpeg", "image/png", "image/gif", "image/webp")
	case "file":
		if json.Unmarshal(p[kind], &is) != nil || is.Filename == "" {
			return refuse(Shape, where, "a file without a name")
		}
		return dataURL(where, is.Data, "application/pdf")
	}
	return refuse(Shape, where, "a part of type %q", kind)
}

func dataURL(where, url string, types ...string) error {
	head, data, ok := strings.Cut(url, ";base64,")
	kind, isData := strings.CutPrefix(head, "data:")
	if !ok || !isData || !slices.Contains(types, kind) {
		return refuse(Media, where, "%.60q is no data of a type that is read", head)
	}
	return whole(where, data)
}

// shown judges a message of the user to the Responses API that has parts.
func (r *items) shown(where string, item object) error {
	parts, err := read[[]object](item, where, "content")
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return refuse(Empty, where, "it has no parts")
	}
	for i, p := range parts {
		if err := input(fmt.Sprintf("%s.content[%d]", where, i), p); err != nil {
			return err
		}
	}
	return item.fields(where, "role", "type", "content!")
}

// input judges one part of a message to the Responses API.
func input(where string, p object) error {
	kind, err := read[string](p, where, "type")
	if err != nil {
		return err
	}
	field := map[string]string{"input_text": "text", "input_image": "image_url", "input_file": "file_data"}[kind]
	value, err := read[string](p, where, field)
	if err != nil {
		return err
	}
	switch kind {
	case "input_text":
		if blank(value) {
			return refuse(Empty, where, "a text that says nothing")
		}
		return p.fields(where, "type", "text!")
	case "input_image":
		if err := p.fields(where, "type", "image_url!", "detail!"); err != nil {
			return err
		}
		return dataURL(where, value, "image/jpeg", "image/png", "image/gif", "image/webp")
	case "input_file":
		if err := p.fields(where, "type", "file_data!", "filename!"); err != nil {
			return err
		}
		return dataURL(where, value, "application/pdf")
	}
	return refuse(Shape, where, "a part of type %q", kind)
}

// inline judges a medium that Gemini is sent.
func inline(where string, p object) error {
	medium, err := read[object](p, where, "inlineData")
	if err != nil {
		return err
	}
	if err := medium.fields(where, "mimeType!", "data!"); err != nil {
		return err
	}
	kind, err := read[string](medium, where, "mimeType")
	if err != nil {
		return err
	}
	data, err := read[string](medium, where, "data")
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf"}, kind) {
		return refuse(Media, where, "data of %q", kind)
	}
	return whole(where, data)
}
