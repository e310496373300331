package request

import (
	"errors"
	"os"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/safefile"
)

// layerFileMax bounds a file with the text of a layer, in bytes.
const layerFileMax = 64 << 10

const layerHint = "--layer NAME=TEXT, or --layer NAME=@FILE"

// ParseLayers makes layers of a system prompt from texts like NAME=TEXT and NAME=@FILE.
func ParseLayers(texts []string) (layers []spec.Layer, err error) {
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || strings.TrimSpace(value) == "" {
			return nil, exit.UsageError(layerHint, "--layer %.80q sets no text", text)
		}
		if path, isFile := strings.CutPrefix(value, "@"); isFile {
			raw, err := safefile.Read(path, layerFileMax)
			switch {
			case errors.Is(err, os.ErrNotExist):
				return nil, exit.UsageError(layerHint, "there is no file %s", path)
			case err != nil:
				return nil, exit.UsageError(layerHint, "%v", err)
			}
			value = string(raw)
		}
		l := spec.Layer{Name: name, Text: strings.TrimSpace(value)}
		if err := l.Validate(); err != nil {
			return nil, exit.UsageError("docs/context.md explains layers", "%v", err)
		}
		layers = append(layers, l)
	}
	return layers, nil
}
