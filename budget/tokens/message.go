package tokens

import "github.com/troupe-run/troupe/model"

// Message estimates the texts of a message: its own text, its calls and its
// results. However many there are, it reads no more of them than of one text.
func Message(m model.Message) int64 {
	texts := []string{m.Text}
	for _, c := range m.Calls {
		texts = append(texts, c.Name, c.Args)
	}
	for _, r := range m.Results {
		texts = append(texts, r.Text)
	}
	var n, read, all int64
	for _, text := range texts {
		all += int64(len(text))
		if sample := text[:min(len(text), sampleBytesMax-int(read))]; sample != "" {
			n, read = n+Count(sample), read+int64(len(sample))
		}
	}
	if read == all {
		return n
	}
	return n * all / read
}
