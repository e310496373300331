// Package multimatch finds any of many short words in text in one pass, so that
// only the few lines that hold one need a regular expression.
package multimatch

// WordSet is a compiled list of words (an Aho-Corasick automaton over folded
// bytes). It is safe for concurrent use.
type WordSet struct {
	class   [256]uint8 // byte → column; letters of both cases share one
	columns int
	next    []int32  // state*columns + class → state
	tags    []uint64 // what ends in a state, and in its suffixes
}

// Word is a word and the bit that a hit sets. ASCII case is ignored.
type Word struct {
	Text string
	Tag  uint64
}

// New compiles words; empty words are left out.
func New(words []Word) *WordSet {
	s := &WordSet{columns: 1}
	for _, w := range words {
		for i := range len(w.Text) {
			b := foldCase(w.Text[i])
			if s.class[b] == 0 {
				s.class[b] = uint8(min(s.columns, 255))
				s.columns = min(s.columns+1, 256)
			}
		}
	}
	for b := range 256 {
		s.class[b] = s.class[foldCase(byte(b))]
	}
	s.addState()
	for _, w := range words {
		s.addWord(w)
	}
	s.linkStates()
	return s
}

func foldCase(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

const none = -1

func (s *WordSet) addState() int32 {
	state := int32(len(s.tags))
	s.tags = append(s.tags, 0)
	for range s.columns {
		s.next = append(s.next, none)
	}
	return state
}

func (s *WordSet) addWord(w Word) {
	if w.Text == "" {
		return
	}
	state := int32(0)
	for i := range len(w.Text) {
		at := int(state)*s.columns + int(s.class[w.Text[i]])
		if s.next[at] == none {
			to := s.addState()
			s.next[at] = to
		}
		state = s.next[at]
	}
	s.tags[state] |= w.Tag
}

// linkStates turns the trie into an automaton without dead ends, breadth first.
func (s *WordSet) linkStates() {
	fail := make([]int32, len(s.tags))
	var queue []int32
	for c := range s.columns {
		if to := s.next[c]; to == none {
			s.next[c] = 0
		} else {
			queue = append(queue, to)
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		s.tags[state] |= s.tags[fail[state]]
		for c := range s.columns {
			at := int(state)*s.columns + c
			back := s.next[int(fail[state])*s.columns+c]
			if to := s.next[at]; to == none {
				s.next[at] = back
			} else {
				fail[to] = back
				queue = append(queue, to)
			}
		}
	}
}

// MatchTags returns the union of the tags of all words in text.
func (s *WordSet) MatchTags(text []byte) uint64 {
	var state int32
	var tags uint64
	for _, b := range text {
		state = s.next[int(state)*s.columns+int(s.class[b])]
		tags |= s.tags[state]
	}
	return tags
}

// EachMatch calls hit for every word in text, in the order of their ends: end is the
// offset after the word, tags are those of all words that end there.
func (s *WordSet) EachMatch(text []byte, hit func(end int, tags uint64)) {
	var state int32
	for i, b := range text {
		state = s.next[int(state)*s.columns+int(s.class[b])]
		if tags := s.tags[state]; tags != 0 {
			hit(i+1, tags)
		}
	}
}
