package script

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/safefile"
)

// malformed is the error of a script that is well-formed YAML. Its cause quotes names and labels alone.
func malformed(why string) error {
	return &safefile.FormError{Why: why, Full: errors.New(why)}
}

var (
	// atLine is how the decoder begins an error.
	atLine = lazyregexp.New(`^(?:yaml: )?line (\d+): (.*)$`)
	// unknownAnchor is how the decoder reports an alias, without its line.
	unknownAnchor = lazyregexp.New(`^yaml: unknown anchor '(.*)' referenced$`)
	// mismatch is how the decoder reports a value of another type.
	mismatch = lazyregexp.New("^line (\\d+): cannot unmarshal .* into (\\S+)$")
)

// expectedForms says by Go type what a value has to be.
var expectedForms = map[string]string{
	"script.Script":             "a script is a mapping with the keys agents, ids or default",
	"map[string][]script.Reply": "agents and ids take names, each with a list of replies",
	"[]script.Reply":            "a list of replies is expected: - text: ...",
	"script.Reply":              "a reply is a mapping with keys such as text and calls",
	"[]script.Call":             "calls takes a list: [{name: read_file, args: {path: go.mod}}]",
	"script.Call":               "a call is a mapping: {name: read_file, args: {path: go.mod}}",
	"script.Usage":              "usage is a mapping with keys such as input_tokens",
	"script.Failure":            "error is a mapping with keys such as class",
	"bool":                      "true or false is expected",
	"int":                       "a whole number is expected",
	"int64":                     "a whole number is expected",
	"string":                    "a text is expected",
	"model.Stop":                "a text is expected",
	"model.ErrorClass":          "a text is expected",
}

// explainMismatch says what a value has to be that the decoder could not read. Only the first one counts.
func explainMismatch(err *yaml.TypeError) error {
	m := mismatch.FindStringSubmatch(err.Errors[0])
	if m == nil {
		return &safefile.FormError{Why: "a value has another form than its key takes", Full: err}
	}
	line, _ := strconv.Atoi(m[1]) // digits
	why, ok := expectedForms[m[2]]
	if !ok {
		why = "a value has another form than its key takes"
	}
	return &safefile.FormError{Line: line, Why: why, Full: err}
}

// incomplete says by the parser's error what an unfinished list or mapping lacks. The parser names the line before the
// one at which that begins; an error of the scanner has the right line.
var incomplete = map[string]string{
	"did not find expected '-' indicator": `"- " is missing, or the indentation is not that of the list that begins at line %d`,
	"did not find expected key":           `a key is missing, or the indentation is not that of the mapping that begins at line %d`,
	"did not find expected ',' or ']'":    `"," or "]" is missing in the list that begins at line %d`,
	"did not find expected ',' or '}'":    `"," or "}" is missing in the mapping that begins at line %d`,
}

// remedies follow an error of the scanner.
var remedies = map[string]string{
	"mapping values are not allowed in this context": `; put texts that contain ": " in quotes, and check the indentation`,
	"found character that cannot start any token":    "; indent with spaces, and put texts that begin with @, % or ` in quotes",
	"found unexpected end of stream":                 "; a text in quotes does not end",
}

// explainSyntax says where the file is no YAML, and why. The line of the last byte that the parser took is that of the
// mistake, or the first after it that shows it.
func explainSyntax(err error, taken []byte) error {
	here := 1 + bytes.Count(bytes.TrimRight(taken, "\r\n"), []byte("\n"))
	m := atLine.FindStringSubmatch(err.Error())
	if m == nil {
		if m := unknownAnchor.FindStringSubmatch(err.Error()); m != nil {
			here = 1 + bytes.Count(taken[:max(0, bytes.LastIndex(taken, []byte("*"+m[1])))], []byte("\n"))
			return &safefile.FormError{Line: here, Why: "a text that begins with * is in quotes, or it is the name of an anchor, and there is none", Full: err}
		}
		return err
	}
	line, _ := strconv.Atoi(m[1]) // digits
	why := m[2] + remedies[m[2]]
	if lacks, ok := incomplete[m[2]]; ok {
		why = fmt.Sprintf(lacks, line+1)
		line = here
	}
	return &safefile.FormError{Line: line, Why: why, Full: fmt.Errorf("line %d: %s", line, why)}
}
