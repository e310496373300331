package process

import "fmt"

// ends keeps the first headMax and the last tailMax bytes written to it.
type ends struct {
	headMax, tailMax int
	head, tail       []byte
	at               int // where the oldest byte of a full tail is
	total            int64
}

func (e *ends) Write(p []byte) (int, error) {
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
		e.tail, e.at = append(e.tail[:0], p[len(p)-e.tailMax:]...), 0
		return n, nil
	}
	if free := e.tailMax - len(e.tail); free > 0 {
		take := min(free, len(p))
		e.tail = append(e.tail, p[:take]...)
		p = p[take:]
	}
	for len(p) > 0 {
		k := copy(e.tail[e.at:], p)
		p, e.at = p[k:], (e.at+k)%e.tailMax
	}
	return n, nil
}

func (e *ends) lost() int64 { return e.total - int64(len(e.head)) - int64(len(e.tail)) }

// bytes returns the kept bytes, with a mark where bytes are missing between the two ends.
func (e *ends) bytes() []byte {
	out := append([]byte{}, e.head...)
	if lost := e.lost(); lost > 0 && e.headMax > 0 && e.tailMax > 0 {
		out = append(out, fmt.Sprintf("\n[%d bytes not kept]\n", lost)...)
	}
	out = append(out, e.tail[e.at:]...)
	return append(out, e.tail[:e.at]...)
}
