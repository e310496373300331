package sim

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"sync"
	"unsafe"
)

// valueForm writes values of one type in one way only, so that two values are the same exactly if their bytes are. It
// is compiled from the type once: a seed writes thousands of states.
type valueForm func(b []byte, at unsafe.Pointer) []byte

// valueForms holds the compiled forms by their types.
var valueForms sync.Map

// formOf returns the form of a type.
func formOf(t reflect.Type) valueForm {
	if f, ok := valueForms.Load(t); ok {
		return f.(valueForm)
	}
	f, _ := valueForms.LoadOrStore(t, compileForm(t))
	return f.(valueForm)
}

// compileForm makes the form of a type that holds plain data.
func compileForm(t reflect.Type) valueForm {
	switch t.Kind() {
	case reflect.String:
		return func(b []byte, at unsafe.Pointer) []byte { return appendStrings(b, *(*string)(at)) }
	case reflect.Bool:
		return func(b []byte, at unsafe.Pointer) []byte { return appendBools(b, *(*bool)(at)) }
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return func(b []byte, at unsafe.Pointer) []byte { return appendNumbers(b, *(*int64)(at)) }
	case reflect.Int32, reflect.Uint32:
		return func(b []byte, at unsafe.Pointer) []byte { return appendNumbers(b, int64(*(*int32)(at))) }
	case reflect.Uint8:
		return func(b []byte, at unsafe.Pointer) []byte { return append(b, *(*byte)(at)) }
	case reflect.Float64:
		return func(b []byte, at unsafe.Pointer) []byte {
			return appendNumbers(b, int64(math.Float64bits(*(*float64)(at))))
		}
	case reflect.Slice:
		return compileSlice(t)
	case reflect.Array:
		return compileArray(t)
	case reflect.Map:
		return compileMap(t)
	case reflect.Pointer:
		elem := lazyForm(t.Elem())
		return func(b []byte, at unsafe.Pointer) []byte {
			p := *(*unsafe.Pointer)(at)
			if b = appendBools(b, p == nil); p != nil {
				b = elem()(b, p)
			}
			return b
		}
	case reflect.Struct:
		return compileStruct(t)
	case reflect.Interface:
		return func(b []byte, at unsafe.Pointer) []byte { return appendDynamic(b, reflect.NewAt(t, at).Elem().Elem()) }
	}
	panic("sim: a state holds a " + t.Kind().String())
}

// lazyForm compiles the form of a type when it is first used, since a type may refer to itself.
func lazyForm(t reflect.Type) func() valueForm {
	return sync.OnceValue(func() valueForm { return formOf(t) })
}

func compileSlice(t reflect.Type) valueForm {
	elem, size := lazyForm(t.Elem()), t.Elem().Size()
	raw := t.Elem().Kind() == reflect.Uint8
	return func(b []byte, at unsafe.Pointer) []byte {
		s := *(*sliceHeader)(at)
		b = appendBools(appendNumbers(b, s.length), s.data == nil)
		if raw {
			return append(b, unsafe.Slice((*byte)(s.data), s.length)...)
		}
		return appendElements(b, elem, size, s, 0)
	}
}

// sliceHeader is a slice as it is in memory.
type sliceHeader struct {
	data          unsafe.Pointer
	length, limit int
}

// appendElements writes the elements of a slice from an index on.
func appendElements(b []byte, elem func() valueForm, size uintptr, s sliceHeader, from int) []byte {
	if from >= s.length {
		return b
	}
	form := elem()
	for i := from; i < s.length; i++ {
		b = form(b, unsafe.Add(s.data, uintptr(i)*size))
	}
	return b
}

func compileArray(t reflect.Type) valueForm {
	elem, size, n := formOf(t.Elem()), t.Elem().Size(), t.Len()
	return func(b []byte, at unsafe.Pointer) []byte {
		for i := range n {
			b = elem(b, unsafe.Add(at, uintptr(i)*size))
		}
		return b
	}
}

// compileMap makes the form of a map: its entries in the order of the forms of their keys.
func compileMap(t reflect.Type) valueForm {
	return func(b []byte, at unsafe.Pointer) []byte {
		m := reflect.NewAt(t, at).Elem()
		b = appendNumbers(b, m.Len())
		if m.Len() == 0 {
			return b
		}
		entries := make([][]byte, 0, m.Len())
		for it := m.MapRange(); it.Next(); {
			entries = append(entries, appendDynamic(appendDynamic(nil, it.Key()), it.Value()))
		}
		slices.SortFunc(entries, bytes.Compare)
		for _, e := range entries {
			b = append(b, e...)
		}
		return b
	}
}

// compileStruct makes the form of a struct: its fields in order, those that cannot be seen from outside too.
func compileStruct(t reflect.Type) valueForm {
	type field struct {
		form   valueForm
		offset uintptr
	}
	fields := make([]field, t.NumField())
	for i := range fields {
		fields[i] = field{formOf(t.Field(i).Type), t.Field(i).Offset}
	}
	return func(b []byte, at unsafe.Pointer) []byte {
		for i := range fields {
			b = fields[i].form(b, unsafe.Add(at, fields[i].offset))
		}
		return b
	}
}

// appendDynamic writes a value of any type, and which type it is.
func appendDynamic(b []byte, v reflect.Value) []byte {
	if !v.IsValid() {
		return append(b, "nil"...)
	}
	held := reflect.New(v.Type())
	held.Elem().Set(v)
	return formOf(v.Type())(appendStrings(b, v.Type().String()), held.UnsafePointer())
}

// stateField is a field of a state at its offset.
type stateField struct {
	name         string
	offset, size uintptr
	form         valueForm
	elem         func() valueForm // of a slice
	elemSize     uintptr
}

// visibleFields lists the fields of a struct that can be seen from outside, and those of its embedded structs, but not
// the ones that are written by hand. A new one counts by itself.
func visibleFields(t reflect.Type, offset uintptr, byHand []string) (list []stateField) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := offset + f.Offset
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			list = append(list, visibleFields(f.Type, at, byHand)...)
		case f.IsExported() && !slices.Contains(byHand, f.Name):
			s := stateField{name: f.Name, offset: at, size: f.Type.Size(), form: formOf(f.Type)}
			if f.Type.Kind() == reflect.Slice {
				s.elem, s.elemSize = lazyForm(f.Type.Elem()), f.Type.Elem().Size()
			}
			list = append(list, s)
		}
	}
	return list
}

// isSame reports whether a field of two states is the same bit by bit: then it refers to the same memory.
func (f *stateField) isSame(x, y unsafe.Pointer) bool {
	return string(unsafe.Slice((*byte)(unsafe.Add(x, f.offset)), f.size)) == string(unsafe.Slice((*byte)(unsafe.Add(y, f.offset)), f.size))
}

// isEqual reports whether a field of two states has the same form.
func (f *stateField) isEqual(b []byte, x, y unsafe.Pointer) (bool, []byte) {
	if f.isSame(x, y) {
		return true, b
	}
	b = f.form(b[:0], unsafe.Add(x, f.offset))
	n := len(b)
	b = f.form(b, unsafe.Add(y, f.offset))
	return bytes.Equal(b[:n], b[n:]), b
}

// appendOwn writes what a field refers to in its state and not in the base of that state.
func (f *stateField) appendOwn(b []byte, x, base unsafe.Pointer) []byte {
	if f.isSame(x, base) {
		return b
	}
	if f.elem != nil {
		s, of := *(*sliceHeader)(unsafe.Add(x, f.offset)), *(*sliceHeader)(unsafe.Add(base, f.offset))
		if s.data == of.data && s.data != nil {
			return appendElements(b, f.elem, f.elemSize, s, of.length)
		}
	}
	return f.form(b, unsafe.Add(x, f.offset))
}
