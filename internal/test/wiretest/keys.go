package wiretest

import (
	"errors"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/model"
)

// BadKeys are keys that no header can carry, as files and shells make them of a good one.
func BadKeys() []string {
	return []string{Key + "\n", Key + "\r", "\x00" + Key, Key + "\t", Key + "\x7f"}
}

// CheckRefusedKey checks that a client was refused for its key: nothing was sent, the operator
// must fix it, and the error does not show the key.
func CheckRefusedKey(t *testing.T, key string, err error) {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.Misconfigured || !e.Unbilled || strings.Contains(err.Error(), Key) {
		t.Errorf("%q: %v", strings.Replace(key, Key, "KEY", 1), err)
	}
}
