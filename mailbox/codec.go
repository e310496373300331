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
	if err := walk(data, -1); err != nil {
		return nil, fmt.Errorf("mailbox: encode: %w", err)
	}
	if err := afford(len(e.Items), len(data)); err != nil {
		return nil, fmt.Errorf("mailbox: encode: %w", err)
	}
	return data, nil
}

// afford keeps the slice of items within the allocation bound.
func afford(items, input int) error {
	if items*int(unsafe.Sizeof(Item{})) > AllocBase/2+(AllocFactor-1)*input {
		return ErrElements
	}
	return nil
}

func appendEntry(b []byte, e *Entry) []byte {
	n := 2 + some(e.From != "") + some(e.Epoch != Epoch{}) + some(e.Start != "") +
		some(e.Floor != 0) + some(len(e.Hash) > 0)
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
	b = appendMap(b, 2+some(it.N != 0)+some(it.I != 0)+some(it.ID != ""))
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

func some(present bool) int {
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
	if err := walk(data, -1); err != nil {
		return Entry{}, fmt.Errorf("mailbox: decode: %w", err)
	}
	r := reader{data: data}
	e, err := r.entry()
	if err != nil {
		return Entry{}, fmt.Errorf("mailbox: decode: %w", err)
	}
	return e, nil
}

// reader decodes an entry from bytes that walk has accepted: lengths and nesting are sound,
// so the reader checks only the shape.
type reader struct {
	data []byte
	pos  int
}

func (r *reader) fail(err error) error { return fmt.Errorf("%w at byte %d", err, r.pos) }

// head reads the head of the next value, which must be of kind k, and advances past it.
func (r *reader) head(k kind) (header, error) {
	h, err := head(r.data, r.pos)
	if err != nil {
		return h, r.fail(err)
	}
	if h.kind != k {
		return h, r.fail(ErrMalformed)
	}
	r.pos += h.size
	return h, nil
}

// bytes reads a string or binary without a copy.
func (r *reader) bytes(k kind) ([]byte, error) {
	h, err := r.head(k)
	if err != nil {
		return nil, err
	}
	from := r.pos
	r.pos += h.n
	return r.data[from:r.pos:r.pos], nil
}

func (r *reader) string() (string, error) {
	b, err := r.bytes(kindString)
	return string(b), err
}

func (r *reader) uint() (uint64, error) {
	h, err := r.head(kindInt)
	return h.bits, err
}

func (r *reader) int() (int, error) {
	h, err := head(r.data, r.pos)
	if err != nil || h.kind != kindNegative && (h.kind != kindInt || h.bits > math.MaxInt) {
		return 0, r.fail(ErrMalformed)
	}
	r.pos += h.size
	return int(h.bits), nil
}

// raw returns the next value undecoded.
func (r *reader) raw() msgpack.RawMessage {
	from := r.pos
	r.pos = skip(r.data, from)
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

func (r *reader) entry() (Entry, error) {
	h, err := r.head(kindMap)
	if err != nil {
		return Entry{}, err
	}
	form, err := r.form(h.n)
	if err != nil {
		return Entry{}, err
	}
	var e Entry
	e.Form = form
	missing := needForm | needItems
	for range h.n {
		key, err := r.bytes(kindString)
		if err != nil {
			return Entry{}, err
		}
		switch string(key) {
		case keyForm:
			_, err = r.int()
			missing &^= needForm
		case keyFrom:
			var from string
			from, err = r.string()
			e.From = Address(from)
		case keyEpoch:
			e.Epoch, err = r.epoch()
		case keyStart:
			e.Start, err = r.string()
		case keyFloor:
			e.Floor, err = r.uint()
		case keyHash:
			e.Hash, err = r.bytes(kindBinary)
			if len(e.Hash) == 0 {
				e.Hash = nil
			}
		case keyItems:
			e.Items, err = r.items()
			missing &^= needItems
		default:
			err = r.fail(ErrMalformed)
		}
		if err != nil {
			return Entry{}, err
		}
	}
	if missing != 0 {
		return Entry{}, r.fail(ErrMalformed)
	}
	return e, nil
}

// form finds the form of an entry of n pairs before the rest is checked, because a newer form
// may have keys that this code does not know.
func (r *reader) form(n int) (int, error) {
	look := reader{data: r.data, pos: r.pos}
	for range n {
		key, err := look.bytes(kindString)
		if err != nil {
			return 0, err
		}
		if string(key) != keyForm {
			look.pos = skip(look.data, look.pos)
			continue
		}
		form, err := look.int()
		switch {
		case err != nil:
			return 0, err
		case form > Form:
			return 0, fmt.Errorf("%w: form %d, this node reads up to %d", ErrForm, form, Form)
		case form < 1:
			return 0, look.fail(ErrMalformed)
		}
		return form, nil
	}
	return 0, r.fail(ErrMalformed)
}

func (r *reader) epoch() (Epoch, error) {
	var ep Epoch
	h, err := r.head(kindMap)
	if err != nil {
		return ep, err
	}
	for range h.n {
		key, err := r.bytes(kindString)
		if err != nil {
			return ep, err
		}
		switch string(key) {
		case keyEpochLease:
			ep.Lease, err = r.uint()
		case keyEpochStart:
			ep.Start, err = r.uint()
		default:
			err = r.fail(ErrMalformed)
		}
		if err != nil {
			return ep, err
		}
	}
	return ep, nil
}

func (r *reader) items() ([]Item, error) {
	h, err := r.head(kindArray)
	if err != nil || h.n == 0 {
		return nil, err
	}
	if err := afford(h.n, len(r.data)); err != nil {
		return nil, r.fail(err)
	}
	items := make([]Item, h.n)
	for i := range items {
		if err := r.item(&items[i]); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func (r *reader) item(it *Item) error {
	h, err := r.head(kindMap)
	if err != nil {
		return err
	}
	missing := needKind | needBody
	for range h.n {
		key, err := r.bytes(kindString)
		if err != nil {
			return err
		}
		switch string(key) {
		case keyN:
			it.N, err = r.uint()
		case keyI:
			it.I, err = r.int()
		case keyID:
			it.ID, err = r.string()
		case keyKind:
			it.Kind, err = r.string()
			missing &^= needKind
		case keyBody:
			it.Body = r.raw()
			missing &^= needBody
		default:
			err = r.fail(ErrMalformed)
		}
		if err != nil {
			return err
		}
	}
	if missing != 0 {
		return r.fail(ErrMalformed)
	}
	return nil
}
