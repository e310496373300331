package nodes

import (
	"errors"
	"io"
	"slices"
	"testing"
)

// node.json has the HTTP address of the first node that lives.
func TestHTTPAddressOfUp(t *testing.T) {
	var announced []string
	w := &lineWriter{to: io.Discard, http: httpAddressBook{announce: func(url string) error { announced = append(announced, url); return nil }}}
	w.writeNodeLine("node-2", "http at http://127.0.0.1:8421; try: echo")
	w.writeNodeLine("node-1", "http at http://127.0.0.1:8420; try: echo")
	w.writeNodeLine("node-3", "http at http://127.0.0.1:8422; try: echo")
	w.writeNodeLine("node-1", "ready")
	w.writeEnd("node-1", "signal: killed")
	w.writeEnd("node-3", "signal: killed")
	w.writeEnd("node-2", "signal: killed")
	if want := []string{"http://127.0.0.1:8421", "http://127.0.0.1:8420", "http://127.0.0.1:8421", ""}; !slices.Equal(announced, want) {
		t.Errorf("%q, want %q", announced, want)
	}
	w.http.announce = func(string) error { return errors.New("disk full") }
	w.writeNodeLine("node-1", "http at http://127.0.0.1:8420; try: echo") // it must not end the node
}
