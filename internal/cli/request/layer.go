package request

import (
	"errors"
	"os"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/promptlayer"
	"github.com/troupe-run/troupe/internal/safefile"
)

// textFileMax bounds a file with the text of a flag, in bytes.
const textFileMax = 64 << 10

const layerHint = "--layer NAME=TEXT, or --layer NAME=@FILE"

// ParseLayers makes layers of a system prompt from texts like NAME=TEXT and NAME=@FILE.
func ParseLayers(texts []string) (layers []spec.Layer, err error) {
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || strings.TrimSpace(value) == "" {
			return nil, exit.UsageError(layerHint, "--layer %.80q sets no text", text)
		}
		if value, err = ReadText(value, layerHint); err != nil {
			return nil, err
		}
		l := spec.Layer{Name: name, Text: strings.TrimSpace(value)}
		if err := promptlayer.Validate(l); err != nil {
			return nil, exit.UsageError("docs/context.md explains layers", "%v", err)
		}
		layers = append(layers, l)
	}
	return layers, nil
}

// ReadText returns the text of a flag: TEXT, or that of @FILE.
func ReadText(value, hint string) (string, error) {
	path, isFile := strings.CutPrefix(value, "@")
	if !isFile {
		return value, nil
	}
	raw, err := safefile.Read(path, textFileMax)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", exit.UsageError(hint, "there is no file %s", path)
	case err != nil:
		return "", exit.UsageError(hint, "%v", err)
	}
	return string(raw), nil
}
