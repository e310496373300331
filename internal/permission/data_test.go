package permission_test

import (
	"testing"

	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/model"
)

// What the file of a directory states about a tool takes nothing away: with taint_files its files are text from outside.
func TestAttackStatedDataKeepsFilesFromOutside(t *testing.T) {
	for _, name := range []string{"read_file", "grep", "shell", "skill"} {
		stated := model.ToolSpec{Name: name, Data: "private"}
		if !permission.DataOf(stated, false, true).Outside || permission.DataOf(stated, false, false).Outside {
			t.Errorf("%s: %+v and, without taint_files, %+v", name, permission.DataOf(stated, false, true), permission.DataOf(stated, false, false))
		}
	}
}
