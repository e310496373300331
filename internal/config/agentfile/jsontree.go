package agentfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parseJSON parses JSON to the nodes that a decoder reads. Their lines are one less than in the
// text: a decoder adds one.
func parseJSON(path string, text []byte) (*yaml.Node, error) {
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	wrong := func(offset int, why string) error {
		offset = min(offset, len(text))
		return &Problem{path, 1 + bytes.Count(text[:offset], []byte("\n")), fmt.Errorf("%w: %s", ErrField, why)}
	}
	if !utf8.Valid(text) {
		return nil, wrong(len(bytes.ToValidUTF8(text, nil)), "the file is not UTF-8")
	}
	var raw json.RawMessage
	var syntax *json.SyntaxError
	if err := json.Unmarshal(text, &raw); errors.As(err, &syntax) {
		return nil, wrong(int(syntax.Offset), "it is not JSON: "+syntax.Error())
	} else if err != nil {
		return nil, wrong(len(text), "it is not JSON: "+err.Error())
	}
	t := jsonTree{text: text, tokens: json.NewDecoder(bytes.NewReader(text))}
	t.tokens.UseNumber()
	n, err := t.readNode(0)
	if err != nil {
		return nil, wrong(t.at, err.Error())
	}
	return n, nil
}

// jsonTree reads the tokens of valid JSON.
type jsonTree struct {
	text      []byte
	tokens    *json.Decoder
	at, lines int // the end of the last token, and the line breaks before it
	nodes     int // that were read
}

// jsonNodesMax is how many values a file may have: each takes a hundred times the memory of its shortest text, and a
// directory that anyone brings may have such a file.
const jsonNodesMax = 20_000

var errManyNodes = fmt.Errorf("more than %d values", jsonNodesMax)

var errDeepJSON = fmt.Errorf("nested more than %d levels deep", depthMax)

func (t *jsonTree) readNode(depth int) (*yaml.Node, error) {
	token, err := t.next()
	if err != nil {
		return nil, err
	}
	if t.nodes++; t.nodes > jsonNodesMax {
		return nil, errManyNodes
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: t.lines}
	switch v := token.(type) {
	case json.Delim:
		if n.Kind = yaml.SequenceNode; v == '{' {
			n.Kind = yaml.MappingNode
		}
		if depth >= depthMax {
			return nil, errDeepJSON
		}
		for t.tokens.More() {
			c, err := t.readNode(depth + 1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, c)
		}
		_, err = t.next() // the closing bracket
	case string:
		n.Tag, n.Value = "!!str", v
	case json.Number:
		n.Tag, n.Value = "!!float", v.String()
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(v)
	case nil:
		n.Tag = "!!null"
	}
	return n, err
}

func (t *jsonTree) next() (json.Token, error) {
	token, err := t.tokens.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	to := int(t.tokens.InputOffset())
	t.lines += bytes.Count(t.text[t.at:to], []byte("\n"))
	t.at = to
	return token, err
}
