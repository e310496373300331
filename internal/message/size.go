package message

import "github.com/troupe-run/troupe/model"

// Size is the space that messages take in an entry: their bytes, and their nested
// values, whose number the codec limits in proportion to the bytes.
type Size struct{ Bytes, nested int }

// PartBytesMax is the most bytes of one part of a history, and of what is handed to a child: it must fit an entry, and as
// JSON a request.
const PartBytesMax = 128 << 10

const (
	valueBytes    = 24  // bytes of a value within a value
	nestedCost    = 720 // what the codec counts for one at most, with its fields
	nestedBase    = 112 << 10
	nestedPerByte = 2
)

// SizeOf measures messages.
func SizeOf(messages ...model.Message) Size {
	var w Size
	add := func(sizes ...int) {
		w.nested++
		w.Bytes += valueBytes
		for _, n := range sizes {
			w.Bytes += n
		}
	}
	for _, m := range messages {
		add(len(m.Role), len(m.Text))
		for _, d := range m.Media {
			add(len(d.Kind), len(d.Type), len(d.Name), len(d.Ref), 3*valueBytes)
		}
		for _, c := range m.Calls {
			add(len(c.ID), len(c.Name), len(c.Args))
		}
		for _, r := range m.Results {
			add(len(r.Call), len(r.Text))
		}
		for _, o := range m.Opaque {
			add(len(o.Issuer), len(o.Kind), len(o.Data))
		}
		if m.Usage != nil {
			add()
		}
	}
	return w
}

// Plus is the space that both take.
func (w Size) Plus(v Size) Size { return Size{w.Bytes + v.Bytes, w.nested + v.nested} }

// Fits reports whether an entry can hold the messages.
func (w Size) Fits() bool {
	return w.Bytes <= PartBytesMax && w.nested*nestedCost <= nestedBase+nestedPerByte*w.Bytes
}

// entryBytes is the most bytes of a single message: an entry has room for little more.
const entryBytes = 200 << 10

// FitsAlone reports whether an entry that holds nothing else can hold a message of that size.
func (w Size) FitsAlone() bool {
	return Size{nested: w.nested, Bytes: min(w.Bytes, PartBytesMax)}.Fits() && w.Bytes <= entryBytes
}

// BytesOf is how many bytes a message has.
func BytesOf(m model.Message) int {
	n := len(m.Text)
	for _, c := range m.Calls {
		n += len(c.Name) + len(c.Args)
	}
	for _, r := range m.Results {
		n += len(r.Text)
	}
	for _, o := range m.Opaque {
		n += len(o.Data)
	}
	return n
}

// FitsEntry reports whether an entry can hold the messages; bytes is the space that they take.
func FitsEntry(messages ...model.Message) (bytes int, ok bool) {
	w := SizeOf(messages...)
	return w.Bytes, w.Fits()
}
