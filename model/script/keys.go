package script

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing/iotest"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/suggest"
)

// unknownField is how the decoder reports a key that a type does not have.
var unknownField = lazyregexp.New(`^line (\d+): field (.*) not found in type script\.(\w+)$`)

// keyOwners are the parts of a script in the words of its author, by the type that the decoder names.
var keyOwners = map[string]struct {
	name string
	kind reflect.Type
}{
	"Script":  {"a script", reflect.TypeFor[Script]()},
	"Reply":   {"a reply", reflect.TypeFor[Reply]()},
	"Call":    {"a call", reflect.TypeFor[Call]()},
	"Usage":   {"usage", reflect.TypeFor[Usage]()},
	"Failure": {"an error", reflect.TypeFor[Failure]()},
}

// explainDecoding names the first unknown key of a script with the keys that its place may have. Without one it says
// what the first value of another form has to be, or where the file is no YAML.
func explainDecoding(err error, data []byte) error {
	if _, ok := errors.AsType[*safefile.FormError](err); ok || errors.Is(err, io.EOF) {
		return err
	}
	list, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		r := bytes.NewReader(data)
		_ = yaml.NewDecoder(iotest.OneByteReader(r)).Decode(&yaml.Node{}) // what it has taken when it fails is where it failed
		return explainSyntax(err, data[:len(data)-r.Len()])
	}
	for _, text := range list.Errors {
		m := unknownField.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		line, owner := m[1], keyOwners[m[3]]
		if n, err := strconv.Atoi(line); err == nil && owner.kind != nil {
			known := yamlKeys(owner.kind)
			return &safefile.KeyError{Line: n, Key: m[2], Of: owner.name, Known: known, Near: suggest.Nearest(m[2], known)}
		}
	}
	return explainMismatch(list)
}

// yamlKeys lists the keys of a type in YAML.
func yamlKeys(t reflect.Type) (keys []string) {
	for field := range t.Fields() {
		if key, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); key != "" && key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}
