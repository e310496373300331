package trust

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// An approval that the user repeats stays when old ones are removed, and one removal makes room for many.
func TestARepeatedApprovalOutlivesOldOnes(t *testing.T) {
	t.Parallel()
	a := approvalStore{dir: t.TempDir(), max: 16}
	name := func(i int) string { return fmt.Sprintf("/agents/%d.md", i) }
	old := time.Now().Add(-time.Hour)
	for i := range a.max {
		if err := a.recordApproval(name(i), "digest"); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(a.approvalPath(name(i), "digest"), old, old.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{0, a.max} {
		if err := a.recordApproval(name(i), "digest"); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.removeOldest(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(a.dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != a.max*7/8 {
		t.Errorf("%d approvals are left, want %d", len(left), a.max*7/8)
	}
	for i, want := range map[int]bool{0: true, 1: false, 3: false, 4: true, a.max: true} {
		if a.isApproved(name(i), "digest") != want {
			t.Errorf("approval %d is kept: %v", i, !want)
		}
	}
}
