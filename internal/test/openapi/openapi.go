// Package openapi compares the answers of an HTTP server with the OpenAPI document that it serves.
package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Document is an OpenAPI document.
type Document struct {
	Paths      map[string]map[string]operation
	Components struct {
		Schemas map[string]*jsonschema.Schema
	}
}

type operation struct {
	Responses map[string]response
}

type response struct {
	Content map[string]struct{ Schema *jsonschema.Schema }
}

// ErrAnswer says that an answer is not what the document says.
var ErrAnswer = errors.New("openapi: the answer is not as documented")

// Parse reads a document.
func Parse(raw []byte) (*Document, error) {
	var d Document
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	return &d, nil
}

// Check compares an answer with the document. An answer to a path that the document does not have must be
// an error.
func (d *Document) Check(method, path string, status int, header http.Header, body []byte) error {
	op, ok := d.find(method, path)
	if !ok {
		if status < http.StatusBadRequest {
			return fmt.Errorf("%w: %s %s answers %d", ErrAnswer, method, path, status)
		}
		return nil
	}
	reply, ok := op.Responses[strconv.Itoa(status)]
	if !ok {
		if reply, ok = op.Responses["default"]; !ok || status < http.StatusBadRequest {
			return fmt.Errorf("%w: %s %s has no answer %d", ErrAnswer, method, path, status)
		}
		if _, known := d.Components.Schemas["Problem"]; known && isProblem(body) {
			return nil // access is checked before the path is
		}
	}
	if len(reply.Content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("%w: %s %s %d has a body", ErrAnswer, method, path, status)
		}
		return nil
	}
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	content, ok := reply.Content[media]
	if err != nil || !ok {
		return fmt.Errorf("%w: %s %s %d is of the type %q", ErrAnswer, method, path, status, header.Get("Content-Type"))
	}
	if media != "application/json" {
		return nil
	}
	return d.validate(content.Schema, body)
}

// isProblem reports whether a body is the JSON of an error.
func isProblem(body []byte) bool {
	var p struct {
		Error string
		Code  int
	}
	return json.Unmarshal(body, &p) == nil && p.Error != "" && p.Code >= http.StatusBadRequest
}

// find finds the operation of a path.
func (d *Document) find(method, path string) (operation, bool) {
	path, _, _ = strings.Cut(path, "?")
	for template, ops := range d.Paths {
		pattern := regexp.MustCompile(`\\\{[a-z]+\\\}`).ReplaceAllString(regexp.QuoteMeta(template), `[^/]+`)
		if regexp.MustCompile("^" + pattern + "$").MatchString(path) {
			op, ok := ops[strings.ToLower(method)]
			return op, ok
		}
	}
	return operation{}, false
}

// validate checks a body against a schema, which may refer to those of the components.
func (d *Document) validate(s *jsonschema.Schema, body []byte) error {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	list, isList := []any{v}, false
	if s.Ref == "" && s.Type == "array" {
		if list, isList = v.([]any); !isList {
			return fmt.Errorf("%w: no list: %s", ErrAnswer, body)
		}
		s = s.Items
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		if s = d.Components.Schemas[name]; s == nil {
			return fmt.Errorf("%w: there is no schema %s", ErrAnswer, name)
		}
	}
	resolved, err := s.CloneSchemas().Resolve(nil)
	if err != nil {
		return fmt.Errorf("openapi: %w", err)
	}
	for _, item := range list {
		if err := resolved.Validate(item); err != nil {
			return fmt.Errorf("%w: %w: %s", ErrAnswer, err, body)
		}
	}
	return nil
}
