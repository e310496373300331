package history

import "github.com/troupe-run/troupe/model"

// size is the space that messages take in an entry: their bytes, and their nested
// values, whose number the codec limits in proportion to the bytes.
type size struct{ Bytes, nested int }

const (
	valueBytes    = 24  // bytes of a value within a value
	nestedCost    = 720 // what the codec counts for one at most, with its fields
	nestedBase    = 112 << 10
	nestedPerByte = 2
)

// sizeOf measures messages.
func sizeOf(messages ...model.Message) size {
	var w size
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

func (w size) plus(v size) size { return size{w.Bytes + v.Bytes, w.nested + v.nested} }

// fits reports whether an entry can hold the messages.
func (w size) fits() bool {
	return w.Bytes <= PartBytesMax && w.nested*nestedCost <= nestedBase+nestedPerByte*w.Bytes
}

// pieces splits a message so that parts can hold it: it may have many large results.
func pieces(m model.Message) []model.Message {
	if m.Role != model.ToolRole || len(m.Results) < 2 || m.Tombstone {
		return []model.Message{m}
	}
	list := make([]model.Message, len(m.Results))
	for i, r := range m.Results {
		list[i] = model.Message{Role: model.ToolRole, Results: []model.ToolResult{r}}
	}
	list[0].Tokens = m.Tokens
	return list
}

// entryBytes is the most bytes of a single piece: an entry has room for little more.
const entryBytes = 200 << 10

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
	w := sizeOf(messages...)
	return w.Bytes, w.fits()
}
