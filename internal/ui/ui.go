// Package ui holds the page of a node: its files, and the same page as one file with the data of one run
// (docs/ui.md). The sources are in web; `go generate` bundles them with build/bundle.
package ui

import (
	"embed"
	"mime"
	"path"
)

//go:generate go run -C ../../build ./bundle ../internal/ui

//go:embed assets
var assets embed.FS

// Page returns the document of the page.
func Page() []byte { return read("index.html") }

// Asset returns a file of the page and its media type; nil if there is none of that name.
func Asset(name string) (kind string, data []byte) {
	switch path.Ext(name) {
	case ".js", ".css", ".svg":
		return mime.TypeByExtension(path.Ext(name)), read(name)
	}
	return "", nil
}

func read(name string) []byte {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		return nil // there is no such file
	}
	return data
}
