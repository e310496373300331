package workdir

import "testing"

func TestIsBelow(t *testing.T) {
	for _, c := range []struct {
		dir, path string
		want      bool
	}{
		{"/a/b", "/a/b", true},
		{"/a/b", "/a/b/", true},
		{"/a/b/", "/a/b", true},
		{"/a/b/", "/a/b/c", true},
		{"/a/b", "/a/b/c/d", true},
		{"/a/b", "/a/bc", false},
		{"/a/b", "/a/b-c/d", false},
		{"/a/b", "/a", false},
		{"/a/b", "/a/b/..", false},
		{"/a/b", "/a/b/../c", false},
		{"/a/b", "/a/c/../b/d", true},
		{"/a/b", "/a/b/..c", true},
		{"/", "/", true},
		{"/", "/a", true},
		{"/a", "/", false},
		{"a", "a/b", true},
		{"a", "b", false},
		{"/a", "a", false},
		{"a", "/a", false},
		{"", "a", false},
		{"", "", false},
		{"/a", "", false},
		{"a", "", false},
	} {
		if got := IsBelow(c.dir, c.path); got != c.want {
			t.Errorf("IsBelow(%q, %q) is %v", c.dir, c.path, got)
		}
	}
}
