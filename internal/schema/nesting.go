package schema

// NestingMax is how deep the JSON of a schema may be nested: reading it takes time
// that grows with the square of that.
const NestingMax = 256

// nesting is how deep a JSON text is nested.
func nesting(text string) (deepest int) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
