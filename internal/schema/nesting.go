package schema

// NestingMax bounds the nesting of a schema's JSON: the time to read it grows with the
// square of the depth.
const NestingMax = 256

// nestingDepth returns the depth of a JSON text.
func nestingDepth(text string) (deepest int) {
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
