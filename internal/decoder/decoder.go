// Package decoder decodes what logs hold, by kind. Agents and supervisors each have a table of the kinds that
// their logs may hold.
package decoder

// Decoder decodes the bodies of one kind into an interface F of facts or messages.
type Decoder[F any] struct {
	kind   string
	decode func(body func(into any) error) (F, error)
}

// Of returns the decoder of type T. It panics if T does not implement F, at the start of the program.
func Of[F any, T interface{ Kind() string }]() Decoder[F] {
	var zero T
	_ = any(zero).(F)
	return Decoder[F]{zero.Kind(), func(body func(any) error) (F, error) {
		var v T
		err := body(&v)
		return any(v).(F), err
	}}
}

// Table holds the decoders of one log.
type Table[F any] map[string]func(body func(into any) error) (F, error)

// NewTable makes a table. Two decoders of one kind are a mistake of the caller, and panic at the start of the program.
func NewTable[F any](list ...Decoder[F]) Table[F] {
	t := make(Table[F], len(list))
	for _, d := range list {
		if t[d.kind] != nil {
			panic("decoder: two types have the kind " + d.kind)
		}
		t[d.kind] = d.decode
	}
	return t
}

// Decode decodes a body; ok is false if the table lacks the kind.
func (t Table[F]) Decode(kind string, body func(into any) error) (f F, ok bool, err error) {
	decode, ok := t[kind]
	if !ok {
		return f, false, nil
	}
	f, err = decode(body)
	return f, true, err
}
