package model

import "strings"

// MediaKind is the kind of a part of a message that is not text.
type MediaKind string

// Kinds of media.
const (
	Image    MediaKind = "image"
	Document MediaKind = "document"
)

// Bounds of media: what each of the providers takes.
const (
	// MediaBytesMax is the most bytes of one: as base64 they are 5 MiB.
	MediaBytesMax = 5 << 20 / 4 * 3
	// MediaMax is how many one message may have.
	MediaMax = 8
	// MediaNameMax is the longest name of one, in bytes.
	MediaNameMax = 128
)

// Media is a part of a user's message that is no text. The bytes are a blob of
// the run: a log has their reference, and only a request has them.
type Media struct {
	Kind MediaKind `msgpack:"k" json:"kind"`
	Type string    `msgpack:"t" json:"type"` // of the media: image/png, …
	Name string    `msgpack:"n,omitempty" json:"name,omitempty"`
	Ref  string    `msgpack:"r" json:"ref"`
	Size int64     `msgpack:"s" json:"size"`
	// Most is the most tokens that any model of the run bills for it, as its provider
	// publishes; Likely is the number by the provider's formula, 0 where there is none.
	Most   int64 `msgpack:"m,omitempty" json:"most_tokens,omitempty"`
	Likely int64 `msgpack:"l,omitempty" json:"likely_tokens,omitempty"`
	// Data is there just before a call, and nowhere else.
	Data []byte `msgpack:"-" json:"-"`
}

// Types of media that some provider takes. Texts are documents, too: each of
// their bytes is at most one token.
const (
	PNG  = "image/png"
	JPEG = "image/jpeg"
	GIF  = "image/gif"
	WebP = "image/webp"
	PDF  = "application/pdf"
)

// KindOf returns the kind of a media type, "" if it cannot be sent.
func KindOf(mime string) MediaKind {
	switch {
	case mime == PNG || mime == JPEG || mime == GIF || mime == WebP:
		return Image
	case mime == PDF || strings.HasPrefix(mime, "text/"):
		return Document
	}
	return ""
}

// IsText reports whether a medium is a text that stands in a prompt as it is.
func (m Media) IsText() bool { return strings.HasPrefix(m.Type, "text/") }
