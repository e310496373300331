package conformance

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Media is the rule about parts that are not text: each is whole, and of a supported type.
const Media rule = "media"

// checkMedia judges an image or a document that Anthropic is sent.
func (m *judgedMessage) checkMedia(where string, b jsonObject, types ...string) error {
	if err := b.checkFields(where, "type", "source!", "title", "context", "citations", "cache_control"); err != nil {
		return err
	}
	source, err := readField[jsonObject](b, where, "source")
	if err != nil {
		return err
	}
	if err := source.checkFields(where+".source", "type!", "media_type!", "data!"); err != nil {
		return err
	}
	kind, err := readField[string](source, where, "media_type")
	if err != nil {
		return err
	}
	data, err := readField[string](source, where, "data")
	if err != nil {
		return err
	}
	if string(source["type"]) != `"base64"` || !slices.Contains(types, kind) {
		return refuseRequest(Media, where, "a source %s of %q", source["type"], kind)
	}
	return checkBytes(where, data)
}

// checkBytes checks the bytes of a medium.
func checkBytes(where, data string) error {
	if raw, err := base64.StdEncoding.DecodeString(data); err != nil || len(raw) == 0 {
		return refuseRequest(Media, where, "its data are not base64 of something: %v", err)
	}
	return nil
}

// checkParts judges a message of the user to OpenAI that has parts.
func (c *completionRequest) checkParts(where string, m jsonObject) error {
	if err := c.checkAnswers(where, nil); err != nil {
		return err
	}
	if err := m.checkFields(where, "role", "content!", "name"); err != nil {
		return err
	}
	parts, err := readField[[]jsonObject](m, where, "content")
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return refuseRequest(Empty, where, "it has no parts")
	}
	for i, p := range parts {
		if err := checkPart(fmt.Sprintf("%s.content[%d]", where, i), p); err != nil {
			return err
		}
	}
	return nil
}

// checkPart judges one part of a message to OpenAI.
func checkPart(where string, p jsonObject) error {
	kind, err := readField[string](p, where, "type")
	if err != nil {
		return err
	}
	if err := p.checkFields(where, "type", kind+"!"); err != nil {
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
		text, err := readField[string](p, where, "text")
		if err == nil && isBlank(text) {
			err = refuseRequest(Empty, where, "a text that says nothing")
		}
		return err
	case "image_url":
		if json.Unmarshal(p[kind], &is) != nil || !slices.Contains([]string{"", "low", "high", "auto"}, is.Detail) {
			return refuseRequest(Shape, where, "%.80s", p[kind])
		}
		return dataURL(where, is.URL, "image/jpeg", "image/png", "image/gif", "image/webp")
	case "file":
		if json.Unmarshal(p[kind], &is) != nil || is.Filename == "" {
			return refuseRequest(Shape, where, "a file without a name")
		}
		return dataURL(where, is.Data, "application/pdf")
	}
	return refuseRequest(Shape, where, "a part of type %q", kind)
}

func dataURL(where, url string, types ...string) error {
	head, data, ok := strings.Cut(url, ";base64,")
	kind, isData := strings.CutPrefix(head, "data:")
	if !ok || !isData || !slices.Contains(types, kind) {
		return refuseRequest(Media, where, "%.60q is no data of a type that is read", head)
	}
	return checkBytes(where, data)
}

// checkParts judges a message of the user to the Responses API that has parts.
func (r *responsesRequest) checkParts(where string, item jsonObject) error {
	parts, err := readField[[]jsonObject](item, where, "content")
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return refuseRequest(Empty, where, "it has no parts")
	}
	for i, p := range parts {
		if err := checkInput(fmt.Sprintf("%s.content[%d]", where, i), p); err != nil {
			return err
		}
	}
	return item.checkFields(where, "role", "type", "content!")
}

// checkInput judges one part of a message to the Responses API.
func checkInput(where string, p jsonObject) error {
	kind, err := readField[string](p, where, "type")
	if err != nil {
		return err
	}
	field := map[string]string{"input_text": "text", "input_image": "image_url", "input_file": "file_data"}[kind]
	value, err := readField[string](p, where, field)
	if err != nil {
		return err
	}
	switch kind {
	case "input_text":
		if isBlank(value) {
			return refuseRequest(Empty, where, "a text that says nothing")
		}
		return p.checkFields(where, "type", "text!")
	case "input_image":
		if err := p.checkFields(where, "type", "image_url!", "detail!"); err != nil {
			return err
		}
		return dataURL(where, value, "image/jpeg", "image/png", "image/gif", "image/webp")
	case "input_file":
		if err := p.checkFields(where, "type", "file_data!", "filename!"); err != nil {
			return err
		}
		return dataURL(where, value, "application/pdf")
	}
	return refuseRequest(Shape, where, "a part of type %q", kind)
}

// checkInline judges a medium that Gemini is sent.
func checkInline(where string, p jsonObject) error {
	medium, err := readField[jsonObject](p, where, "inlineData")
	if err != nil {
		return err
	}
	if err := medium.checkFields(where, "mimeType!", "data!"); err != nil {
		return err
	}
	kind, err := readField[string](medium, where, "mimeType")
	if err != nil {
		return err
	}
	data, err := readField[string](medium, where, "data")
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf"}, kind) {
		return refuseRequest(Media, where, "data of %q", kind)
	}
	return checkBytes(where, data)
}
