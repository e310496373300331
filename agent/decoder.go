package agent

// decoder decodes the bodies of one kind into an interface F of facts or messages.
type decoder[F any] struct {
	kind string
	read func(body func(into any) error) (F, error)
}

// decoderOf returns the decoder of type T. It panics if T does not implement F, at the start of the program.
func decoderOf[F any, T Fact]() decoder[F] {
	var zero T
	_ = any(zero).(F)
	return decoder[F]{zero.Kind(), func(body func(any) error) (F, error) {
		var v T
		err := body(&v)
		return any(v).(F), err
	}}
}

// byKind indexes decoders by their kind. Two of one kind are a mistake of this package.
func byKind[F any](list ...decoder[F]) map[string]func(func(any) error) (F, error) {
	decoders := make(map[string]func(func(any) error) (F, error), len(list))
	for _, d := range list {
		if decoders[d.kind] != nil {
			panic("agent: two types have the kind " + d.kind)
		}
		decoders[d.kind] = d.read
	}
	return decoders
}
