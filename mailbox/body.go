package mailbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// Marshal encodes the body of a fact: compact numbers, keys of Go maps in order, fields by
// their `msgpack` tags. It rejects what Unmarshal would reject: maps whose keys are not
// strings, and time.Time (facts carry Unix milliseconds).
func Marshal(v any) (msgpack.RawMessage, error) {
	b := encoders.Get().(*bodyEncoder)
	defer b.releaseEncoder()
	b.enc.Reset(&b.buf)
	b.enc.UseCompactInts(true)
	b.enc.SetSortMapKeys(true)
	if err := b.enc.Encode(v); err != nil {
		return nil, fmt.Errorf("mailbox: marshal %T: %w", v, err)
	}
	data := b.buf.Bytes()
	if len(data) > EntryBytesMax {
		return nil, fmt.Errorf("mailbox: marshal %T: %d bytes: %w", v, len(data), ErrTooLarge)
	}
	if err := Check(data); err != nil {
		return nil, fmt.Errorf("mailbox: marshal %T: %w", v, err)
	}
	if len(data) > 1 && holdsRandomMap(reflect.TypeOf(v)) {
		sorted, _ := appendSorted(make([]byte, 0, len(data)), data)
		return sorted, nil
	}
	return slices.Clone(data), nil
}

// Unmarshal decodes the body of a fact into v, after Check has accepted it. It ignores fields
// that v does not have; an empty body leaves v unchanged.
func Unmarshal(raw []byte, v any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := Check(raw); err != nil {
		return fmt.Errorf("mailbox: unmarshal %T: %w", v, err)
	}
	d := decoders.Get().(*bodyDecoder)
	defer decoders.Put(d)
	d.in.Reset(raw)
	d.dec.Reset(&d.in)
	if err := d.dec.Decode(v); err != nil {
		return fmt.Errorf("mailbox: unmarshal %T: %w: %w", v, ErrMalformed, err)
	}
	return nil
}

type bodyEncoder struct {
	enc *msgpack.Encoder
	buf bytes.Buffer
}

// releaseEncoder returns the encoder to the pool, unless one large value has inflated it.
func (b *bodyEncoder) releaseEncoder() {
	if b.buf.Cap() <= 2*EntryBytesMax {
		b.buf.Reset()
		encoders.Put(b)
	}
}

type bodyDecoder struct {
	dec *msgpack.Decoder
	in  bytes.Reader
}

var (
	encoders = sync.Pool{New: func() any { return &bodyEncoder{enc: msgpack.NewEncoder(nil)} }}
	decoders = sync.Pool{New: func() any { return &bodyDecoder{dec: msgpack.NewDecoder(nil)} }}
)

// holdsRandomMap reports whether a value of type t may hold a Go map whose keys the library writes in
// random order: the library sorts only maps from string itself to string, bool and any.
func holdsRandomMap(t reflect.Type) bool {
	if known, ok := looseTypes.Load(t); ok {
		return known.(bool)
	}
	found := looseIn(t, map[reflect.Type]bool{})
	looseTypes.Store(t, found)
	return found
}

var looseTypes sync.Map

func looseIn(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Map:
		str := reflect.TypeFor[string]()
		if t.Key() != str || t.Elem() != str && t.Elem() != reflect.TypeFor[bool]() {
			return true
		}
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return looseIn(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if looseIn(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// appendSorted copies the first value of src, which Check has accepted, with the keys of
// every map in order, and returns the rest of src.
func appendSorted(dst, src []byte) (out, rest []byte) {
	h, err := readHeader(src, 0)
	if err != nil {
		return dst, nil
	}
	switch h.kind {
	case kindArray:
		dst, src = append(dst, src[:h.size]...), src[h.size:]
		for range h.n {
			dst, src = appendSorted(dst, src)
		}
		return dst, src
	case kindMap:
		return appendSortedMap(append(dst, src[:h.size]...), src[h.size:], h.n)
	}
	size := h.size + h.n
	return append(dst, src[:size]...), src[size:]
}

func appendSortedMap(dst, src []byte, n int) (out, rest []byte) {
	type pair struct{ key, whole []byte }
	pairs := make([]pair, n)
	for i := range pairs {
		h, _ := readHeader(src, 0)
		size := h.size + h.n
		whole, left := appendSorted(slices.Clone(src[:size]), src[size:])
		pairs[i] = pair{whole[h.size:size], whole}
		src = left
	}
	slices.SortFunc(pairs, func(a, b pair) int { return bytes.Compare(a.key, b.key) })
	for _, p := range pairs {
		dst = append(dst, p.whole...)
	}
	return dst, src
}

func appendMap(b []byte, n int) []byte {
	if n < 16 {
		return append(b, 0x80|byte(n))
	}
	return binary.BigEndian.AppendUint32(append(b, 0xdf), uint32(n))
}

func appendArray(b []byte, n int) []byte {
	switch {
	case n < 16:
		return append(b, 0x90|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 0xdc), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, 0xdd), uint32(n))
}

func appendString(b []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		b = append(b, 0xa0|byte(n))
	case n <= math.MaxUint8:
		b = append(b, 0xd9, byte(n))
	case n <= math.MaxUint16:
		b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, s...)
}

func appendBinary(b, s []byte) []byte {
	switch n := len(s); {
	case n <= math.MaxUint8:
		b = append(b, 0xc4, byte(n))
	case n <= math.MaxUint16:
		b = binary.BigEndian.AppendUint16(append(b, 0xc5), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xc6), uint32(n))
	}
	return append(b, s...)
}

func appendUint(b []byte, n uint64) []byte {
	switch {
	case n <= math.MaxInt8:
		return append(b, byte(n))
	case n <= math.MaxUint8:
		return append(b, 0xcc, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), n)
}

func appendInt(b []byte, n int64) []byte {
	switch {
	case n >= 0:
		return appendUint(b, uint64(n))
	case n >= -32:
		return append(b, byte(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(n))
}
