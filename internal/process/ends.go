package process

import "fmt"

// endsBuffer keeps the first headMax and the last tailMax bytes written to it.
type endsBuffer struct {
	headMax, tailMax int
	head, tail       []byte
	tailStart        int // where the oldest byte of a full tail is
	total            int64
}

func (e *endsBuffer) Write(p []byte) (int, error) {
	n := len(p)
	e.total += int64(n)
	if free := e.headMax - len(e.head); free > 0 {
		take := min(free, len(p))
		e.head = append(e.head, p[:take]...)
		p = p[take:]
	}
	if e.tailMax == 0 || len(p) == 0 {
		return n, nil
	}
	if len(p) >= e.tailMax {
		e.tail, e.tailStart = append(e.tail[:0], p[len(p)-e.tailMax:]...), 0
		return n, nil
	}
	if free := e.tailMax - len(e.tail); free > 0 {
		take := min(free, len(p))
		e.tail = append(e.tail, p[:take]...)
		p = p[take:]
	}
	for len(p) > 0 {
		k := copy(e.tail[e.tailStart:], p)
		p, e.tailStart = p[k:], (e.tailStart+k)%e.tailMax
	}
	return n, nil
}

func (e *endsBuffer) lostBytes() int64 { return e.total - int64(len(e.head)) - int64(len(e.tail)) }

// joinEnds returns the kept bytes, with a mark where bytes are missing between the two ends.
func (e *endsBuffer) joinEnds() []byte {
	out := append([]byte{}, e.head...)
	if lost := e.lostBytes(); lost > 0 && e.headMax > 0 && e.tailMax > 0 {
		out = append(out, fmt.Sprintf("\n[%d bytes not kept]\n", lost)...)
	}
	out = append(out, e.tail[e.tailStart:]...)
	return append(out, e.tail[:e.tailStart]...)
}
