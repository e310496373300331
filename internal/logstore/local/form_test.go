package local

import (
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// A table of a newer form is refused, and the error says which version to use.
func TestNewerFormIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(t.Context(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.table.db.Update(func(tx *bbolt.Tx) error { return putMeta(tx, formKey, tableForm+1) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "a newer version made it") || !strings.Contains(err.Error(), filepath.Base(tableName)) {
		t.Errorf("a table of a newer form: %v", err)
	}
}
