package jetstream

// ForgedAcks is how many messages arrived in the inbox of acknowledgements that no stream
// sent. They were ignored.
func (p *Post) ForgedAcks() uint64 {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.out.ignored
}
