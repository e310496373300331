package mcpclient

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/toolname"
)

const (
	prefix = toolname.MCPPrefix
	// ReadResource is the tool that reads the resources that a server offers in addition to its tools.
	ReadResource = "read_resource"
)

var (
	notOfNames = lazyregexp.New(`[^a-zA-Z0-9_-]+`)
	manyLines  = lazyregexp.New(`__+`)
)

// ServerName makes a name that can stand in the names of tools: without "__",
// so that two servers cannot meet in one name. "" if there is nothing left.
func ServerName(name string) string {
	name = strings.Trim(manyLines.ReplaceAllString(notOfNames.ReplaceAllString(name, "_"), "_"), "_")
	if len(name) > ServerNameMax {
		return ""
	}
	return name
}

// nameTool is the name by which agents call a server's tool. It replaces characters
// that are not allowed by "_", and ends a name that is too long in a hash.
func nameTool(server, name string) string {
	full := prefix + server + "__" + notOfNames.ReplaceAllString(name, "_")
	if len(full) <= ToolNameMax {
		return full
	}
	sum := sha256.Sum256([]byte(name))
	tail := "_" + hex.EncodeToString(sum[:4])
	return full[:ToolNameMax-len(tail)] + tail
}

// ServerOf is the server of a tool's name.
func ServerOf(tool string) (server string, ok bool) {
	rest, ok := strings.CutPrefix(tool, prefix)
	if !ok {
		return "", false
	}
	server, _, ok = strings.Cut(rest, "__")
	return server, ok && server != ""
}

// IsToolName reports whether a name is meant as that of a server or of its tools.
func IsToolName(name string) bool { return strings.HasPrefix(name, prefix) }

// Means reports whether a word of a list of tools means a tool: its name, or
// mcp__server for all of a server's, or with * for anything.
func Means(word, tool string) bool {
	if before, after, ok := strings.Cut(word, "*"); ok {
		return strings.HasPrefix(word, prefix) && len(tool) >= len(before)+len(after) && strings.HasPrefix(tool, before) && strings.HasSuffix(tool, after)
	}
	server, ok := ServerOf(tool)
	return word == tool || ok && word == prefix+server
}

// visibleText removes characters that a person does not see, and in which instructions
// can hide: controls, format characters, variation selectors, fillers.
func visibleText(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, text)
}
