package mailbox

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/vmihailenco/msgpack/v5"
)

// ErrForm says that the form of the entry is newer than this code reads. The bytes are not
// damaged: a newer node wrote them, and this node must give up the shard.
var ErrForm = errors.New("mailbox: entry of a newer form")

// The keys of an entry and of an item, as in the struct tags. Entry and Item are encoded and
// decoded here by hand, without reflection, because every append uses them. codec_test.go
// compares the result with the library's.
const (
	keyForm, keyFrom, keyEpoch, keyStart, keyFloor, keyHash, keyItems = "v", "f", "e", "s", "l", "h", "m"
	keyN, keyI, keyID, keyKind, keyBody                               = "n", "i", "d", "k", "b"
	keyEpochLease, keyEpochStart                                      = "l", "s"
)

// Encode encodes an entry. It rejects (ErrMalformed, ErrTooLarge) what Decode would reject,
// so that every entry of a log can be decoded.
func Encode(e Entry) ([]byte, error) {
	size := 64 + len(e.From) + len(e.Start) + len(e.Hash)
	for i := range e.Items {
		size += 48 + len(e.Items[i].ID) + len(e.Items[i].Kind) + len(e.Items[i].Body)
	}
	if size > 2*EntryBytesMax {
		return nil, fmt.Errorf("mailbox: encode: %w", ErrTooLarge)
	}
	data := appendEntry(make([]byte, 0, size), &e)
	if len(data) > EntryBytesMax {
		return nil, fmt.Errorf("mailbox: encode: %d bytes: %w", len(data), ErrTooLarge)
	}
	if err := walkValue(data, -1); err != nil {
		return nil, fmt.Errorf("mailbox: encode: %w", err)
	}
	if err := checkAllocation(len(e.Items), len(data)); err != nil {
		return nil, fmt.Errorf("mailbox: encode: %w", err)
	}
	return data, nil
}

// checkAllocation keeps the slice of items within the allocation bound.
func checkAllocation(items, input int) error {
	if items*int(unsafe.Sizeof(Item{})) > allocBase/2+(allocFactor-1)*input {
		return ErrElements
	}
	return nil
}

func appendEntry(b []byte, e *Entry) []byte {
	n := 2 + countPresent(e.From != "") + countPresent(e.Epoch != Epoch{}) + countPresent(e.Start != "") +
		countPresent(e.Floor != 0) + countPresent(len(e.Hash) > 0)
	b = appendMap(b, n)
	b = appendInt(appendString(b, keyForm), int64(e.Form))
	if e.From != "" {
		b = appendString(appendString(b, keyFrom), string(e.From))
	}
	if (e.Epoch != Epoch{}) {
		b = appendMap(appendString(b, keyEpoch), 2)
		b = appendUint(appendString(b, keyEpochLease), e.Epoch.Lease)
		b = appendUint(appendString(b, keyEpochStart), e.Epoch.Start)
	}
	if e.Start != "" {
		b = appendString(appendString(b, keyStart), e.Start)
	}
	if e.Floor != 0 {
		b = appendUint(appendString(b, keyFloor), e.Floor)
	}
	if len(e.Hash) > 0 {
		b = appendBinary(appendString(b, keyHash), e.Hash)
	}
	b = appendArray(appendString(b, keyItems), len(e.Items))
	for i := range e.Items {
		b = appendItem(b, &e.Items[i])
	}
	return b
}

func appendItem(b []byte, it *Item) []byte {
	b = appendMap(b, 2+countPresent(it.N != 0)+countPresent(it.I != 0)+countPresent(it.ID != ""))
	if it.N != 0 {
		b = appendUint(appendString(b, keyN), it.N)
	}
	if it.I != 0 {
		b = appendInt(appendString(b, keyI), int64(it.I))
	}
	if it.ID != "" {
		b = appendString(appendString(b, keyID), it.ID)
	}
	b = appendString(appendString(b, keyKind), it.Kind)
	b = appendString(b, keyBody)
	if len(it.Body) == 0 {
		return append(b, codeNil)
	}
	return append(b, it.Body...)
}

func countPresent(present bool) int {
	if present {
		return 1
	}
	return 0
}

// Decode decodes an entry. The bodies and the hash are slices of data, not copies, so data
// must not change afterwards. A nil body decodes to no body. Every error is ErrMalformed,
// except ErrForm.
func Decode(data []byte) (Entry, error) {
	if len(data) > EntryBytesMax {
		return Entry{}, fmt.Errorf("mailbox: decode: %d bytes: %w", len(data), ErrTooLarge)
	}
	if err := walkValue(data, -1); err != nil {
		return Entry{}, fmt.Errorf("mailbox: decode: %w", err)
	}
	r := entryReader{data: data}
	e, err := r.readEntry()
	if err != nil {
		return Entry{}, fmt.Errorf("mailbox: decode: %w", err)
	}
	return e, nil
}

// entryReader decodes an entry from bytes that walkValue has accepted: lengths and nesting are sound,
// so the reader checks only the shape.
type entryReader struct {
	data []byte
	pos  int
}

func (r *entryReader) failAt(err error) error { return fmt.Errorf("%w at byte %d", err, r.pos) }

// expectHeader reads the head of the next value, which must be of kind k, and advances past it.
func (r *entryReader) expectHeader(k valueKind) (valueHeader, error) {
	h, err := readHeader(r.data, r.pos)
	if err != nil {
		return h, r.failAt(err)
	}
	if h.kind != k {
		return h, r.failAt(ErrMalformed)
	}
	r.pos += h.size
	return h, nil
}

// readBytes reads a string or binary without a copy.
func (r *entryReader) readBytes(k valueKind) ([]byte, error) {
	h, err := r.expectHeader(k)
	if err != nil {
		return nil, err
	}
	from := r.pos
	r.pos += h.n
	return r.data[from:r.pos:r.pos], nil
}

func (r *entryReader) readString() (string, error) {
	b, err := r.readBytes(kindString)
	return string(b), err
}

func (r *entryReader) readUint() (uint64, error) {
	h, err := r.expectHeader(kindInt)
	return h.bits, err
}

func (r *entryReader) readInt() (int, error) {
	h, err := readHeader(r.data, r.pos)
	if err != nil || h.kind != kindNegative && (h.kind != kindInt || h.bits > math.MaxInt) {
		return 0, r.failAt(ErrMalformed)
	}
	r.pos += h.size
	return int(h.bits), nil
}

// readRaw returns the next value undecoded.
func (r *entryReader) readRaw() msgpack.RawMessage {
	from := r.pos
	r.pos = skipValue(r.data, from)
	if r.pos == from+1 && r.data[from] == codeNil {
		return nil
	}
	return msgpack.RawMessage(r.data[from:r.pos:r.pos])
}

// The fields that a map must have.
const (
	needForm  = 1
	needItems = 2
	needKind  = 1
	needBody  = 2
)

func (r *entryReader) readEntry() (Entry, error) {
	h, err := r.expectHeader(kindMap)
	if err != nil {
		return Entry{}, err
	}
	form, err := r.findForm(h.n)
	if err != nil {
		return Entry{}, err
	}
	var e Entry
	e.Form = form
	missing := needForm | needItems
	for range h.n {
		key, err := r.readBytes(kindString)
		if err != nil {
			return Entry{}, err
		}
		switch string(key) {
		case keyForm:
			_, err = r.readInt()
			missing &^= needForm
		case keyFrom:
			var from string
			from, err = r.readString()
			e.From = Address(from)
		case keyEpoch:
			e.Epoch, err = r.readEpoch()
		case keyStart:
			e.Start, err = r.readString()
		case keyFloor:
			e.Floor, err = r.readUint()
		case keyHash:
			e.Hash, err = r.readBytes(kindBinary)
			if len(e.Hash) == 0 {
				e.Hash = nil
			}
		case keyItems:
			e.Items, err = r.readItems()
			missing &^= needItems
		default:
			err = r.failAt(ErrMalformed)
		}
		if err != nil {
			return Entry{}, err
		}
	}
	if missing != 0 {
		return Entry{}, r.failAt(ErrMalformed)
	}
	return e, nil
}

// findForm finds the form of an entry of n pairs before the rest is checked, because a newer form
// may have keys that this code does not know.
func (r *entryReader) findForm(n int) (int, error) {
	look := entryReader{data: r.data, pos: r.pos}
	for range n {
		key, err := look.readBytes(kindString)
		if err != nil {
			return 0, err
		}
		if string(key) != keyForm {
			look.pos = skipValue(look.data, look.pos)
			continue
		}
		form, err := look.readInt()
		switch {
		case err != nil:
			return 0, err
		case form > Form:
			return 0, fmt.Errorf("%w: form %d, this node reads up to %d", ErrForm, form, Form)
		case form < 1:
			return 0, look.failAt(ErrMalformed)
		}
		return form, nil
	}
	return 0, r.failAt(ErrMalformed)
}

func (r *entryReader) readEpoch() (Epoch, error) {
	var ep Epoch
	h, err := r.expectHeader(kindMap)
	if err != nil {
		return ep, err
	}
	for range h.n {
		key, err := r.readBytes(kindString)
		if err != nil {
			return ep, err
		}
		switch string(key) {
		case keyEpochLease:
			ep.Lease, err = r.readUint()
		case keyEpochStart:
			ep.Start, err = r.readUint()
		default:
			err = r.failAt(ErrMalformed)
		}
		if err != nil {
			return ep, err
		}
	}
	return ep, nil
}

func (r *entryReader) readItems() ([]Item, error) {
	h, err := r.expectHeader(kindArray)
	if err != nil || h.n == 0 {
		return nil, err
	}
	if err := checkAllocation(h.n, len(r.data)); err != nil {
		return nil, r.failAt(err)
	}
	items := make([]Item, h.n)
	for i := range items {
		if err := r.readItem(&items[i]); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func (r *entryReader) readItem(it *Item) error {
	h, err := r.expectHeader(kindMap)
	if err != nil {
		return err
	}
	missing := needKind | needBody
	for range h.n {
		key, err := r.readBytes(kindString)
		if err != nil {
			return err
		}
		switch string(key) {
		case keyN:
			it.N, err = r.readUint()
		case keyI:
			it.I, err = r.readInt()
		case keyID:
			it.ID, err = r.readString()
		case keyKind:
			it.Kind, err = r.readString()
			missing &^= needKind
		case keyBody:
			it.Body = r.readRaw()
			missing &^= needBody
		default:
			err = r.failAt(ErrMalformed)
		}
		if err != nil {
			return err
		}
	}
	if missing != 0 {
		return r.failAt(ErrMalformed)
	}
	return nil
}
