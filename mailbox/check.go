package mailbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"
)

// Limits of one encoded value. The msgpack library allocates the size that a length field
// names before it looks at what follows, and recurses without a bound: five bytes can end a
// process, and recover does not help. So a value reaches the library only after it has been
// walked here.
const (
	// DepthMax is how deep maps and arrays may nest.
	DepthMax = 32
	// ElementsMax is how many array elements and map pairs a value may have in all.
	ElementsMax = 16 << 10
	// allocFactor and allocBase bound the allocation of a decode: allocFactor times the input
	// and allocBase more.
	allocFactor = 4
	allocBase   = 128 << 10
)

// Upper estimates of what a container costs as Go data, in bytes, for the structs that this
// project decodes into: the library grows a slice of structs by allocating the new part
// twice.
const (
	containerCost   = 512
	elementCost     = 48
	pairCost        = 32
	pairCostBig     = 160
	smallMapPairs   = 8
	smallMapCompare = 16
)

var (
	// ErrMalformed says that the bytes are not one well-formed value within the limits. The
	// sentinels below wrap it and name the broken rule.
	ErrMalformed = errors.New("mailbox: malformed")
	// ErrDepth says that a value is nested deeper than DepthMax.
	ErrDepth = fmt.Errorf("%w: nested too deep", ErrMalformed)
	// ErrElements says that a value has more than ElementsMax elements, or more than could be
	// decoded within the allocation bound.
	ErrElements = fmt.Errorf("%w: too many elements", ErrMalformed)
	// ErrDuplicate says that a map has the same key twice.
	ErrDuplicate = fmt.Errorf("%w: duplicate map key", ErrMalformed)
	// ErrTrailing says that bytes follow the value.
	ErrTrailing = fmt.Errorf("%w: trailing bytes", ErrMalformed)
	// ErrLength says that a length extends beyond the end of the input.
	ErrLength = fmt.Errorf("%w: length beyond the input", ErrMalformed)
)

// Check walks data and reports whether it is exactly one value that Unmarshal may pass to the
// library. Apart from 8 bytes a map key, it allocates nothing that grows with the input.
func Check(data []byte) error {
	return walkValue(data, allocBase+(allocFactor-1)*len(data))
}

// walkValue is Check with a given budget for the cost of containers; a negative budget means that
// the caller does not decode the value now.
func walkValue(data []byte, budget int) error {
	w := walkers.Get().(*msgpackWalker)
	w.data, w.pos, w.elements = data, 0, 0
	w.budget, w.counted = budget, budget >= 0
	w.keys = w.keys[:0]
	err := w.walkNext(0)
	if err == nil && w.pos != len(data) {
		err = w.failAt(ErrTrailing)
	}
	w.data = nil
	walkers.Put(w)
	return err
}

var walkers = sync.Pool{New: func() any { return new(msgpackWalker) }}

// msgpackWalker is a cursor over msgpack bytes.
type msgpackWalker struct {
	data     []byte
	pos      int
	elements int
	budget   int
	counted  bool
	// keys is a stack: the keys of the maps now open, the innermost last.
	keys []keySpan
}

type keySpan struct{ from, to uint32 }

func (w *msgpackWalker) failAt(err error) error {
	return fmt.Errorf("%w at byte %d", err, w.pos)
}

// walkNext walks one value; depth is the number of containers open around it.
func (w *msgpackWalker) walkNext(depth int) error {
	h, err := readHeader(w.data, w.pos)
	if err != nil {
		return w.failAt(err)
	}
	switch h.kind {
	case kindArray, kindMap:
		if depth == DepthMax {
			return w.failAt(ErrDepth)
		}
		if err := w.chargeContainer(h); err != nil {
			return err
		}
		w.pos += h.size
		if h.kind == kindArray {
			return w.walkArray(h.n, depth+1)
		}
		return w.walkPairs(h.n, depth+1)
	case kindString, kindBinary:
		w.pos += h.size + h.n
	default:
		w.pos += h.size
	}
	return nil
}

// chargeContainer counts a container against the limits before its contents are read.
func (w *msgpackWalker) chargeContainer(h valueHeader) error {
	least := h.n
	if h.kind == kindMap {
		least = 2 * h.n
	}
	if least > len(w.data)-w.pos-h.size {
		return w.failAt(ErrLength)
	}
	w.elements += h.n
	if w.elements > ElementsMax {
		return w.failAt(ErrElements)
	}
	if !w.counted {
		return nil
	}
	cost := containerCost
	if h.kind == kindArray {
		cost += elementCost * h.n
	} else {
		small := min(h.n, smallMapPairs)
		cost += pairCost*small + pairCostBig*(h.n-small)
	}
	return w.spendBudget(cost)
}

func (w *msgpackWalker) spendBudget(cost int) error {
	w.budget -= cost
	if w.counted && w.budget < 0 {
		return w.failAt(ErrElements)
	}
	return nil
}

func (w *msgpackWalker) walkArray(n, depth int) error {
	for range n {
		// A nil may decode to a whole struct.
		if w.pos < len(w.data) && w.data[w.pos] == codeNil {
			if err := w.spendBudget(containerCost); err != nil {
				return err
			}
		}
		if err := w.walkNext(depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *msgpackWalker) walkPairs(n, depth int) error {
	base := len(w.keys)
	for range n {
		h, err := readHeader(w.data, w.pos)
		if err != nil {
			return w.failAt(err)
		}
		if h.kind != kindString {
			return w.failAt(ErrMalformed)
		}
		from := w.pos + h.size
		key := w.data[from : from+h.n]
		if !utf8.Valid(key) {
			return w.failAt(ErrMalformed)
		}
		w.keys = append(w.keys, keySpan{uint32(from), uint32(from + h.n)})
		w.pos = from + h.n
		if err := w.walkNext(depth); err != nil {
			return err
		}
	}
	if w.hasDuplicates(w.keys[base:]) {
		return w.failAt(ErrDuplicate)
	}
	w.keys = w.keys[:base]
	return nil
}

func (w *msgpackWalker) keyBytes(s keySpan) []byte { return w.data[s.from:s.to] }

func (w *msgpackWalker) hasDuplicates(keys []keySpan) bool {
	if len(keys) <= smallMapCompare {
		for i := range keys {
			for j := range i {
				if bytes.Equal(w.keyBytes(keys[i]), w.keyBytes(keys[j])) {
					return true
				}
			}
		}
		return false
	}
	slices.SortFunc(keys, func(a, b keySpan) int { return bytes.Compare(w.keyBytes(a), w.keyBytes(b)) })
	for i := 1; i < len(keys); i++ {
		if bytes.Equal(w.keyBytes(keys[i-1]), w.keyBytes(keys[i])) {
			return true
		}
	}
	return false
}

type valueKind uint8

const (
	kindBad valueKind = iota // never used, and the extension types, which facts do not have
	kindNil
	kindBool
	kindInt      // not negative
	kindNegative // bits is an int64
	kindFloat
	kindString
	kindBinary
	kindArray
	kindMap
)

const codeNil = 0xc0

// valueHeader is the head of one value: size bytes of head, followed by n bytes (strings, binary)
// or n elements or pairs. bits holds the bits of a number. (With more fields the compiler
// would no longer keep it in registers.)
type valueHeader struct {
	kind valueKind
	size int
	n    int
	bits uint64
}

// byteCode is the meaning of a first byte: wide bytes of number follow it, or n is part of it.
type byteCode struct {
	kind valueKind
	wide uint8
	n    uint8
}

var codes = func() (all [256]byteCode) {
	for c := range 0x80 {
		all[c] = byteCode{kind: kindInt}
	}
	for c := 0xe0; c <= 0xff; c++ {
		all[c] = byteCode{kind: kindNegative}
	}
	for n := range uint8(16) {
		all[0x80|n] = byteCode{kind: kindMap, n: n}
		all[0x90|n] = byteCode{kind: kindArray, n: n}
	}
	for n := range uint8(32) {
		all[0xa0|n] = byteCode{kind: kindString, n: n}
	}
	all[codeNil].kind, all[0xc2].kind, all[0xc3].kind = kindNil, kindBool, kindBool
	for i := range uint8(3) {
		all[0xc4+i] = byteCode{kind: kindBinary, wide: 1 << i}
		all[0xd9+i] = byteCode{kind: kindString, wide: 1 << i}
	}
	for i := range uint8(2) {
		all[0xca+i] = byteCode{kind: kindFloat, wide: 4 << i}
		all[0xdc+i] = byteCode{kind: kindArray, wide: 2 << i}
		all[0xde+i] = byteCode{kind: kindMap, wide: 2 << i}
	}
	for i := range uint8(4) {
		all[0xcc+i] = byteCode{kind: kindInt, wide: 1 << i}
		all[0xd0+i] = byteCode{kind: kindNegative, wide: 1 << i}
	}
	return all
}()

// readHeader reads the head of the value at pos. For strings and binary it checks that the n bytes
// are present.
func readHeader(data []byte, pos int) (valueHeader, error) {
	if uint(pos) >= uint(len(data)) {
		return valueHeader{}, ErrLength
	}
	first := data[pos]
	c := codes[first]
	if c.wide > 0 {
		return wideHead(data[pos:], c)
	}
	h := valueHeader{kind: c.kind, size: 1, n: int(c.n)}
	switch c.kind {
	case kindBad:
		return valueHeader{}, ErrMalformed
	case kindInt:
		h.bits = uint64(first)
	case kindNegative:
		h.bits = uint64(int64(int8(first)))
	case kindString:
		if h.n > len(data)-pos-1 {
			return valueHeader{}, ErrLength
		}
	}
	return h, nil
}

// wideHead reads a head that is followed by 1, 2, 4 or 8 bytes of number.
func wideHead(data []byte, c byteCode) (valueHeader, error) {
	h := valueHeader{kind: c.kind, size: 1 + int(c.wide)}
	if h.size > len(data) {
		return valueHeader{}, ErrLength
	}
	switch c.wide {
	case 1:
		h.bits = uint64(data[1])
	case 2:
		h.bits = uint64(binary.BigEndian.Uint16(data[1:]))
	case 4:
		h.bits = uint64(binary.BigEndian.Uint32(data[1:]))
	case 8:
		h.bits = binary.BigEndian.Uint64(data[1:])
	}
	switch c.kind {
	case kindNegative:
		shift := 64 - 8*int(c.wide)
		h.bits = uint64(int64(h.bits<<shift) >> shift)
		if int64(h.bits) >= 0 {
			h.kind = kindInt
		}
	case kindString, kindBinary, kindArray, kindMap:
		// chargeContainer counts the elements of a container; no value has fewer bytes.
		if h.bits > uint64(len(data)-h.size) {
			return valueHeader{}, ErrLength
		}
		h.n = int(h.bits)
	}
	return h, nil
}

// skipValue returns the end of the value at pos, in bytes that walkValue has accepted.
func skipValue(data []byte, pos int) int {
	for open := 1; open > 0; open-- {
		h, err := readHeader(data, pos)
		if err != nil {
			return len(data)
		}
		pos += h.size
		switch h.kind {
		case kindString, kindBinary:
			pos += h.n
		case kindArray:
			open += h.n
		case kindMap:
			open += 2 * h.n
		}
	}
	return pos
}
