package routes

// ThrottledModel is what a throttle slows down.
type ThrottledModel struct{ Provider, Model string }

// ThrottledModels returns the models that this node has used lately, by the names of their throttles.
func ThrottledModels(m *Resolver) map[string]ThrottledModel {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]ThrottledModel{}
	for c := range m.known.values() {
		all[c.ThrottleKey] = ThrottledModel{c.Provider, c.Model}
	}
	return all
}
