package routes

import (
	chain "container/list"
	"iter"
)

// lruCache keeps the most recently used values, at most max of them.
type lruCache[K comparable, V any] struct {
	max   int
	byKey map[K]*chain.Element
	order chain.List // of pairs, the most recently used in front
}

type cacheEntry[K comparable, V any] struct {
	key   K
	value V
}

func newLRUCache[K comparable, V any](most int) *lruCache[K, V] {
	return &lruCache[K, V]{max: most, byKey: map[K]*chain.Element{}}
}

func (r *lruCache[K, V]) len() int { return len(r.byKey) }

// get returns the value of a key, and counts as its use.
func (r *lruCache[K, V]) get(key K) (value V, ok bool) {
	e, ok := r.byKey[key]
	if !ok {
		return value, false
	}
	r.order.MoveToFront(e)
	return e.Value.(cacheEntry[K, V]).value, true
}

// put keeps a value, and drops the least recently used one if there are too many.
func (r *lruCache[K, V]) put(key K, value V) {
	if e, ok := r.byKey[key]; ok {
		r.order.Remove(e)
	}
	r.byKey[key] = r.order.PushFront(cacheEntry[K, V]{key, value})
	if last := r.order.Back(); len(r.byKey) > r.max {
		r.order.Remove(last)
		delete(r.byKey, last.Value.(cacheEntry[K, V]).key)
	}
}

// values yields all values, the most recently used first.
func (r *lruCache[K, V]) values() iter.Seq[V] {
	return func(yield func(V) bool) {
		for e := r.order.Front(); e != nil; e = e.Next() {
			if !yield(e.Value.(cacheEntry[K, V]).value) {
				return
			}
		}
	}
}
