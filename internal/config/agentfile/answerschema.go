package agentfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/loopoptions"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/schema"
)

// answerSchema returns the text of a schema that a file contains, or names by a path:
// relative to the file, and below its directory, which openDir opens.
func answerSchema(file string, line int, ref string, openDir func() (*os.Root, error)) (string, error) {
	if ref == "" || strings.HasPrefix(ref, "{") {
		return ref, nil
	}
	fail := func(err error) (string, error) {
		var at *fs.PathError // which says it in the words of a call of the system
		if errors.As(err, &at) {
			err = at.Err
		}
		return "", &Problem{Path: file, Line: line, Err: fmt.Errorf("%w: output_schema %.80q, a file in the same directory: %w", ErrField, ref, err)}
	}
	dir, err := openDir()
	if err != nil {
		return fail(err)
	}
	defer func() { _ = dir.Close() }()
	text, err := safefile.ReadIn(dir, ref, schema.BytesMax)
	if err != nil {
		return fail(reasonWithoutPath(err))
	}
	if err := loopoptions.CheckRequire(spec.Require{Schema: string(text)}); err != nil {
		return fail(err)
	}
	return string(text), nil
}
